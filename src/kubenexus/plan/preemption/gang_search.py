"""Victims for a gang: levels and domains by counting, then a set of victims that is planned exactly and made smaller.

lowest level       by counting: up to which priority pods must go so that a domain may take the gang
victims            members of one class: node by node, where one more member needs the fewest victims;
                   else all possible victims of the domain
fewer victims      put back what the plan does not need, first by amounts, then by planning again
"""

import heapq
from itertools import chain, combinations, islice
from typing import Any, Final

import msgspec
import numpy as np

from kubenexus.plan.preemption.elements import ElementTable
from kubenexus.plan.preemption.gang_trials import GangTrials, Placements
from kubenexus.plan.preemption.least_cover import Element, least_cover
from kubenexus.plan.preemption.member_counts import MemberCounts
from kubenexus.plan.preemption.member_states import NodeState, PlacedState
from kubenexus.plan.preemption.victim_choice import ChosenVictims, VictimRules
from kubenexus.state.nodes import NodeColumns

_MAX_DOMAINS: Final = 3  # of a level, that are tried
_MAX_LEVELS: Final = 16
_FEW: Final = 14  # elements of which small sets are tried
_MAX_SETS: Final = 2_000
_MAX_OFFERS: Final = 2_000  # times that the fewest victims on a node are worked out: about 40 us each
_PODS: Final = 5  # pods of a node that count as one more time


# What one more member on a node costs, the hash of the node's name, its row, the version of its state, the victims.
_Option = tuple[Any, int, int, int, list[Element]]


class GangCandidate(msgspec.Struct, gc=False):
    """Victims, and where the members go without them."""

    victims: ChosenVictims
    placements: Placements


class GangSearch:
    """One search. `cut` is set if not everything was tried."""

    def __init__(
        self, counts: MemberCounts, trials: GangTrials, rules: VictimRules, columns: NodeColumns, *, alike: bool
    ) -> None:
        self._counts, self._trials, self._rules, self._columns = counts, trials, rules, columns
        self._pool, self._alike = rules.pool, alike
        self._elements = ElementTable(rules.pool, counts.free, rules.most)
        self._offers = _MAX_OFFERS
        self.cut = False

    def run(self) -> list[GangCandidate]:
        """Returns candidates, the cheapest first; none if no victims help."""
        if not self._counts.suffices(self._counts.free.with_victims()):
            return []
        levels, found = self._pool.levels, list[GangCandidate]()
        if self._needs_too_many(levels[-1]):
            return []
        first = self._first_level(levels)
        for i, level in enumerate(levels[first:]):
            if i == _MAX_LEVELS or not self._trials.left or self._offers < 0:
                self.cut = True
                break
            found += self._at_level(level)
            # What has to go with the chosen ones may be of a higher level: then a later level may be cheaper.
            if any(each.victims.cost.priority <= level for each in found):
                break
        return sorted(found, key=lambda each: each.victims.cost)

    def _needs_too_many(self, level: int) -> bool:
        """Whether more pods than allowed would have to go, even if all of them might. Known for one domain alone."""
        domains = self._counts.domains
        if not self._alike or domains.size > 2:
            return False
        inside = domains.codes > 0
        return not self._nodes_to_try(level, inside, NodeState(self._counts, inside))

    def _first_level(self, levels: list[int]) -> int:
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if self._counts.suffices(self._counts.free.with_victims(levels[middle])):
                high = middle
            else:
                low = middle + 1
        return low

    def _at_level(self, level: int) -> list[GangCandidate]:
        counts, found = self._counts, list[GangCandidate]()
        without = counts.by_domain(counts.free.with_victims(level))
        codes = np.flatnonzero(without >= counts.minimum).tolist()
        fit, names = counts.by_domain(counts.free.now), counts.domains.names
        self.cut |= len(codes) > _MAX_DOMAINS
        for code in heapq.nsmallest(_MAX_DOMAINS, codes, key=lambda code: (-fit[code], names[code])):
            if not self._trials.left:
                self.cut = True
                break
            candidate = self._in_domain(level, code)
            if candidate is not None:
                found.append(candidate)
        return found

    def _in_domain(self, level: int, code: int) -> GangCandidate | None:
        """Returns victims up to a level in one domain, or None."""
        rows = self._counts.domains.codes == code
        if self._alike:
            chosen = self._by_node(level, rows)
            placements = self._trials.plan(chosen.pods) if chosen is not None else ()
            if chosen is not None and placements:
                return self._fewer(self._reduced(GangCandidate(chosen, placements)), level)
        return self._from_all(level, rows)

    # --- node by node ---------------------------------------------------------------------------------------------

    def _by_node(self, level: int, inside: Any) -> ChosenVictims | None:
        """Chooses victims for one more member after the other, each time on the node where that takes the fewest."""
        counts = self._counts
        state = NodeState(counts, inside)
        rows = self._nodes_to_try(level, inside, state)
        members_of: dict[int, list[int]] = {row: [] for row in rows}
        among = np.flatnonzero((self._pool.level <= level) & np.isin(self._pool.rows, rows))
        for index, row in zip(among.tolist(), self._pool.rows[among].tolist(), strict=True):
            members_of[row].append(index)
        taken: dict[tuple[int, ...], Element] = {}
        options: list[_Option] = []
        for row in rows:
            self._offer(options, row, members_of[row], taken, state)
        while state.total < counts.minimum and options:
            if len(taken) > self._rules.most:
                self.cut = True
                return None
            _, _, row, version, cover = heapq.heappop(options)
            if version == state.version(row) and any(each.pods not in taken for each in cover):
                for element in cover:
                    if element.pods not in taken:
                        taken[element.pods] = element
                        state.free_up(self._pool, element)
            self._offer(options, row, members_of[row], taken, state)
        if state.total < counts.minimum:
            return None
        for element in sorted(taken.values(), key=self._dear, reverse=True):
            if state.can_put_back(self._pool, element):
                del taken[element.pods]
        return self._rules.choose(index for pods in taken for index in pods)

    def _nodes_to_try(self, level: int, inside: Any, state: NodeState) -> list[int]:
        """Returns the nodes of the domain that gain members, those that seem to need the fewest victims first."""
        counts, pool, size = self._counts, self._pool, self._columns.size
        now, then = state.members, np.where(inside, counts.by_row(counts.free.with_victims(level))[0], 0)
        state.limit(then)
        rows = np.flatnonzero(inside & (then > now))
        missing = counts.minimum - int(state.total)
        most = missing + min(missing, 128) + 16
        if len(rows) <= most and missing <= self._rules.most:
            return self._by_hash(rows)
        among = pool.level <= level
        there = pool.rows[among]
        lacking = counts.needs[0] * (now + 1) - counts.free.now
        number = np.ones(size)
        for i, each in enumerate(counts.free.each):
            largest = np.full(size, 1e-9)
            np.maximum.at(largest, there, each[among])
            np.maximum(number, np.ceil(lacking[i] / largest), out=number)
        work = np.bincount(there, weights=pool.work[among], minlength=size)
        gained = np.maximum(then - now, 1)[rows]
        best = np.lexsort((self._columns.name_hash[rows], work[rows], number[rows] / gained))[:most]
        needed = int(np.searchsorted(np.cumsum(gained[best]), missing)) + 1
        if number[rows][best][:needed].sum() > self._rules.most:  # as many pods must go at least
            self.cut = True
            return []
        return self._by_hash(rows[best])

    def _by_hash(self, rows: Any) -> list[int]:
        found: list[int] = rows[np.argsort(self._columns.name_hash[rows])].tolist()
        return found

    def _offer(
        self,
        options: list[_Option],
        row: int,
        indices: list[int],
        taken: dict[tuple[int, ...], Element],
        state: NodeState,
    ) -> None:
        """Adds what one more member on a node costs, if victims there allow for one."""
        self._offers -= 1 + len(indices) // _PODS
        if self._offers < 0 or not state.may_gain(row):
            self.cut |= self._offers < 0
            return
        left = [each for each in self._elements.of(indices, frozenset((row,))) if each.pods not in taken]
        cover = least_cover(state.lacking(row), left)
        if cover:
            cost = (len(cover), *(sum(parts) for parts in zip(*(each.cost for each in cover), strict=True)))
            draw = self._columns.name_hash.item(row)  # rows depend on the order in which nodes came
            heapq.heappush(options, (cost, draw, row, state.version(row), cover))

    def _dear(self, element: Element) -> Any:
        return self._elements.level(element), element.cost

    # --- from all possible victims --------------------------------------------------------------------------------

    def _from_all(self, level: int, inside: Any) -> GangCandidate | None:
        """Removes all possible victims up to a level from the domain, and puts back what the gang does not need."""
        pool = self._pool
        everything = np.flatnonzero((pool.level <= level) & inside[pool.rows]).tolist()
        if len(everything) > self._trials.moves or not self._trials.left:
            self.cut = True
            return None
        elements = self._elements.of(everything, frozenset(np.flatnonzero(inside).tolist()))
        pods = {index for each in elements for index in each.pods}
        placements = self._trials.plan(pods)
        if not placements:
            return None
        for order in (self._dear, self._limited):
            gone = sorted(elements, key=order, reverse=True)
            gone, placed = self._put_back_by_amounts(gone, placements)
            gone, placed = self._put_back(gone, placed)
            chosen = self._rules.choose(index for each in gone for index in each.pods)
            if chosen is not None:
                return self._fewer(GangCandidate(chosen, placed), level)
        found = self._smallest(elements, None)
        self.cut |= found is None
        return found

    def _limited(self, element: Element) -> Any:
        return any(int(self._pool.budget[index]) >= 0 for index in element.pods), *self._dear(element)

    def _put_back_by_amounts(self, elements: list[Element], placements: Placements) -> tuple[list[Element], Placements]:
        """Puts back elements that leave enough for the members where they were placed. Checked by planning again."""
        state = PlacedState(self._counts, self._columns, self._pool, elements, placements)
        kept = [each for each in elements if not state.can_put_back(self._pool, each)]
        if len(kept) == len(elements):
            return elements, placements
        found = self._trials.plan(index for each in kept for index in each.pods) if kept else ()
        return (kept, found) if found else (elements, placements)

    def _put_back(self, elements: list[Element], placements: Placements) -> tuple[list[Element], Placements]:
        """Puts back one element after the other while the gang still fits, as long as plans are allowed."""
        gone = list(elements)
        for element in elements if len(elements) > 1 else ():
            if not self._trials.left:
                break
            without = [each for each in gone if each is not element]
            found = self._trials.plan(index for each in without for index in each.pods) if without else ()
            if found:
                gone, placements = without, found
        return gone, placements

    # --- fewer ----------------------------------------------------------------------------------------------------

    def _reduced(self, candidate: GangCandidate) -> GangCandidate:
        """Puts back victims that are not needed, if they are few enough to plan again for each."""
        pods = candidate.victims.pods
        elements = self._elements.of(sorted(pods), frozenset())
        elements = [each for each in elements if pods.issuperset(each.pods)]
        if len(elements) > min(_FEW, self._trials.left):
            return candidate
        gone, placements = self._put_back(sorted(elements, key=self._dear, reverse=True), candidate.placements)
        chosen = self._rules.choose(index for each in gone for index in each.pods)
        return (
            candidate if chosen is None or chosen.cost > candidate.victims.cost else GangCandidate(chosen, placements)
        )

    def _fewer(self, candidate: GangCandidate, level: int) -> GangCandidate:
        """Tries other sets of victims, if there are few possible ones and fewer jobs or a lower priority might do."""
        among = np.flatnonzero(self._pool.level <= level).tolist()
        cost = candidate.victims.cost
        if len(among) > 4 * _FEW or (cost.jobs == 1 and cost.priority <= level):
            return candidate
        return self._smallest(self._elements.of(among, frozenset()), candidate) or candidate

    def _smallest(self, elements: list[Element], best: GangCandidate | None) -> GangCandidate | None:
        """Returns the cheapest set of few elements, or `best` if none is cheaper."""
        if len(elements) > _FEW:
            return best
        jobs = [int(self._pool.jobs[each.pods[0]]) for each in elements]
        sets = islice(chain.from_iterable(combinations(range(len(elements)), n + 1) for n in range(_FEW)), _MAX_SETS)
        levels = [self._elements.level(each) for each in elements]
        for some in sets:
            # Before all that has to go with them is known, which only adds to the cost.
            least = (max(levels[i] for i in some), len({jobs[i] for i in some}))
            if best is not None and (best.victims.cost.priority, best.victims.cost.jobs) < least:
                continue
            chosen = self._rules.choose(index for i in some for index in elements[i].pods)
            if chosen is None or (best is not None and best.victims.cost <= chosen.cost):
                continue
            if not self._counts.suffices(self._without(chosen.pods)):
                continue
            if not self._trials.left:
                return best
            placements = self._trials.plan(chosen.pods)
            if placements:
                best = GangCandidate(chosen, placements)
        return best

    def _without(self, pods: frozenset[int]) -> Any:
        free = self._counts.free.now.copy()
        for index in pods:
            free[:, int(self._pool.rows[index])] += self._counts.free.of_victim(index)
        return free
