"""Victims for a single pod: first by amounts of resources over all nodes at once, then exactly, node by node.

A node is tried by removing victims in a transaction that is rolled back, so every filter sees the node without them.
"""

from itertools import combinations
from typing import Any, Final

import msgspec
import numpy as np

from kubenexus.cycle.class_cache import ClassCache, ClassifiedPod
from kubenexus.plan.place_pod import PodPlacer
from kubenexus.plan.preemption.elements import ElementTable
from kubenexus.plan.preemption.free_amounts import FreeAmounts
from kubenexus.plan.preemption.least_cover import Element, least_cover
from kubenexus.plan.preemption.node_trial import NodeTrial
from kubenexus.plan.preemption.victim_choice import ChosenVictims, VictimRules
from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import Snapshot

MAX_MOVES: Final = 600  # pods that are removed or put back in one decision: about 30 ms
MOST_ROWS: Final = 5  # nodes for which the fewest victims are worked out
_ALTERNATIVES: Final = 1  # further results that are verified, for `explain`
_MAX_COMBINATIONS: Final = 40  # of few victims on one node that are tried exactly
_MAX_LEVELS: Final = 64


class PodCandidate(msgspec.Struct, gc=False):
    """A node where the pod fits once these victims are gone."""

    row: int
    victims: ChosenVictims


class PodSearch:
    """One search. `cut` is set if not all nodes were tried."""

    def __init__(
        self,
        classified: ClassifiedPod,
        class_cache: ClassCache,
        pod_placer: PodPlacer,
        snapshot: Snapshot,
        *,
        rules: VictimRules,
        free: FreeAmounts,
        need: Any,
        promised: dict[int, list[PodRecord]],
    ) -> None:
        self._classified, self._class_cache, self._pod_placer = classified, class_cache, pod_placer
        self._snapshot, self._rules, self._free, self._need = snapshot, rules, free, need
        self._promised = promised
        self._pool = rules.pool
        self._elements = ElementTable(rules.pool, free, rules.most)
        self._moves = MAX_MOVES
        self.cut = False

    def run(self, potential: Any) -> list[PodCandidate]:
        """Returns candidates, the cheapest first; none if no victims help. `potential` are the rows to look at."""
        enough = (self._free.with_victims() >= self._need).all(axis=0) & potential
        enough &= np.bincount(self._pool.rows, minlength=len(enough)).astype(np.bool_)
        if not enough.any():
            return []
        levels = self._pool.levels
        first = self._first_level(levels, potential)
        found = self._by_amounts(levels[first], potential)
        if found and found[0].victims.cost.priority <= levels[first]:
            return found
        return sorted(found + self._exactly(levels, first, enough), key=self._order)

    def _first_level(self, levels: list[int], potential: Any) -> int:
        """Returns the lowest level, by index, up to which victims free enough on some node."""
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if self._rows_at(levels[middle], potential).any():
                high = middle
            else:
                low = middle + 1
        return low

    def _rows_at(self, level: int, potential: Any) -> Any:
        found: Any = (self._free.with_victims(level) >= self._need).all(axis=0) & potential
        return found

    # --- by amounts -----------------------------------------------------------------------------------------------

    def _by_amounts(self, level: int, potential: Any) -> list[PodCandidate]:
        """Works out the fewest victims on the most promising nodes, and verifies the cheapest results."""
        rows = self._promising(level, potential)
        results = []
        for row in rows:
            chosen = self._fewest(row, level)
            if chosen is not None:
                results.append(PodCandidate(row, chosen))
        results.sort(key=self._order)
        found: list[PodCandidate] = []
        for candidate in results:
            if len(found) > _ALTERNATIVES or self._moves <= 0:
                break
            if self._fits(candidate):
                found.append(candidate)
        return found

    def _order(self, candidate: PodCandidate) -> Any:
        return candidate.victims.cost, int(self._snapshot.nodes.name_hash[candidate.row])

    def _promising(self, level: int, potential: Any) -> list[int]:
        """Returns the nodes that seem to need the fewest victims, and among these the cheapest ones."""
        pool, columns = self._pool, self._snapshot.nodes
        rows = np.flatnonzero(self._rows_at(level, potential))
        if len(rows) > MOST_ROWS:
            among = pool.level <= level
            there = pool.rows[among]
            number = self._fewest_by_row(among, there)[rows]
            rows = rows[number == number.min()]
        if len(rows) > MOST_ROWS:
            size = columns.size
            count = np.maximum(np.bincount(there, minlength=size)[rows], 1)
            rank = np.bincount(there, weights=pool.ranks[among], minlength=size)[rows] / count
            work = np.bincount(there, weights=pool.work[among], minlength=size)[rows] / count
            best = (
                np.lexsort((columns.name_hash[rows], work, rank))
                if len(rows) < 64
                else _least(rank, work, rows, columns)
            )
            rows = rows[best[:MOST_ROWS]]
        found: list[int] = rows.tolist()
        return found

    def _fewest_by_row(self, among: Any, there: Any) -> Any:
        """Returns for each row a lower bound of how many pods have to go, by the largest ones there."""
        size = self._snapshot.nodes.size
        number = np.ones(size)
        for i, each in enumerate(self._free.each):
            lacking = self._need[i, 0] - self._free.now[i]
            if (lacking > 0).any():
                largest = np.full(size, 1e-9)
                np.maximum.at(largest, there, each[among])
                np.maximum(number, np.ceil(lacking / largest), out=number)
        return number

    def _fewest(self, row: int, level: int) -> ChosenVictims | None:
        lacking = tuple((self._need[:, 0] - self._free.now[:, row]).tolist())
        if all(amount <= 0 for amount in lacking):
            return None  # another filter than that of resources refuses the node
        elements = self._elements.of(self._pool.on_row(row, level), frozenset((row,)))
        cover = least_cover(lacking, elements)
        return None if not cover else self._rules.choose(index for element in cover for index in element.pods)

    # --- exactly --------------------------------------------------------------------------------------------------

    def _fits(self, candidate: PodCandidate) -> bool:
        """Whether the pod fits on a node without these victims."""
        removed = [(self._pool.record(index), int(self._pool.rows[index])) for index in candidate.victims.pods]
        self._moves -= len(removed)
        with self._snapshot.attempt() as transaction:
            trial = self._trial(candidate.row, transaction)
            for record, row in removed:
                trial.remove(record, row)
            return self._has_place(trial)

    def _trial(self, row: int, transaction: Any) -> NodeTrial:
        promised = self._promised.get(row, [])
        return NodeTrial(self._classified, self._class_cache, row, self._snapshot, transaction, promised)

    def _has_place(self, trial: NodeTrial) -> bool:
        return trial.refusal() is None and self._pod_placer.assignable(
            self._classified, trial.row, self._snapshot.nodes
        )

    def _exactly(self, levels: list[int], first: int, enough: Any) -> list[PodCandidate]:
        """Tries nodes one by one, those first where amounts suffice at a lower level."""
        best: list[PodCandidate] = []
        tried = np.zeros(len(enough), np.bool_)
        steps = levels[first : first + _MAX_LEVELS - 1]
        for level in [*steps[:-1], levels[-1]] if steps else levels[-1:]:
            if best and best[0].victims.cost.priority < level:
                break  # the other nodes need victims of a higher level
            rows = np.flatnonzero(self._rows_at(level, enough) & ~tried)
            tried[rows] = True
            for row in rows[np.argsort(self._snapshot.nodes.name_hash[rows])].tolist():
                if self._moves <= 0:
                    self.cut = True
                    return sorted(best, key=self._order)
                chosen = self._least_on(row)
                if chosen is not None:
                    best.append(PodCandidate(row, chosen))
                    best.sort(key=self._order)
                    del best[_ALTERNATIVES + 1 :]
        return best

    def _least_on(self, row: int) -> ChosenVictims | None:
        """Removes all possible victims from a node. If the pod fits then, puts back those that it fits beside, the
        dearest first."""
        pool = self._pool
        elements = self._elements.of(pool.on_row(row), frozenset((row,)))
        elements.sort(key=lambda each: (self._elements.level(each), each.cost), reverse=True)
        if 2 * sum(len(each.pods) for each in elements) > self._moves:
            self.cut = True
            return None
        moved = {index: (pool.record(index), int(pool.rows[index])) for each in elements for index in each.pods}
        with self._snapshot.attempt() as transaction:
            trial = self._trial(row, transaction)
            self._move(trial, moved, elements, out=True)
            if not self._has_place(trial):
                return None
            gone = list(elements)
            for order in (elements, sorted(elements, key=self._limited, reverse=True)):
                self._move(trial, moved, [each for each in elements if each not in gone], out=True)
                gone = self._put_back(trial, moved, order)
                chosen = self._rules.choose(index for each in gone for index in each.pods)
                if chosen is not None:
                    break
            fewer = self._fewer(trial, moved, elements, gone, chosen)
        return fewer or chosen

    def _put_back(
        self, trial: NodeTrial, moved: dict[int, tuple[PodRecord, int]], order: list[Element]
    ) -> list[Element]:
        gone = []
        for element in order:
            self._move(trial, moved, [element], out=False)
            if not self._has_place(trial):
                self._move(trial, moved, [element], out=True)
                gone.append(element)
        return gone

    def _limited(self, element: Element) -> bool:
        return any(int(self._pool.budget[index]) >= 0 for index in element.pods)

    def _fewer(
        self,
        trial: NodeTrial,
        moved: dict[int, tuple[PodRecord, int]],
        elements: list[Element],
        gone: list[Element],
        chosen: ChosenVictims | None,
    ) -> ChosenVictims | None:
        """Tries fewer victims, or others if these are more than budgets allow."""
        level = max(self._elements.level(each) for each in gone)
        right = chosen is not None and chosen.cost.priority <= level
        among = [each for each in elements if self._elements.level(each) <= level] if right else elements
        out, tries, best = set(map(id, gone)), _MAX_COMBINATIONS, chosen
        for number in range(1, len(gone) + (not right)):
            for some in combinations(among, number):
                other = self._rules.choose(index for each in some for index in each.pods)
                if other is None or (best is not None and best.cost <= other.cost):
                    continue
                tries -= 1
                if tries < 0 or self._moves <= 0:
                    return best
                wanted = set(map(id, some))
                self._move(trial, moved, [each for each in elements if id(each) in out - wanted], out=False)
                self._move(trial, moved, [each for each in elements if id(each) in wanted - out], out=True)
                out = wanted
                if self._has_place(trial):
                    best = other
        return best

    def _move(
        self, trial: NodeTrial, moved: dict[int, tuple[PodRecord, int]], elements: list[Element], *, out: bool
    ) -> None:
        for element in elements:
            for index in element.pods:
                record, row = moved[index]
                self._moves -= 1
                if out:
                    trial.remove(record, row)
                else:
                    trial.restore(record, row)


def _least(rank: Any, work: Any, rows: Any, columns: Any) -> Any:
    """Returns some of the rows with the least rank, then the least work lost, in order."""
    least = np.flatnonzero(rank == rank.min())
    if len(least) > MOST_ROWS:
        some = work[least]
        least = least[some <= np.partition(some, MOST_ROWS - 1)[MOST_ROWS - 1]]
    if len(least) > MOST_ROWS:
        hashes = columns.name_hash[rows[least]]
        least = least[hashes <= np.partition(hashes, MOST_ROWS - 1)[MOST_ROWS - 1]]
    return least[np.lexsort((columns.name_hash[rows[least]], work[least]))]
