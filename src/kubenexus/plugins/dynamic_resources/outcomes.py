"""What the allocator finds for a class on each row, computed once for rows that are equal.

Counting decides most rows of most claims (`counting`). The others are searched, once for each state of a node that
occurs among them (`row_states`).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubenexus.api.devices.resource_claim import AllocationResult
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.verdict import MAX_REASONS
from kubenexus.plugins.dynamic_resources.allocator import Found, NotOnNode, Place, SearchCut, allocate
from kubenexus.plugins.dynamic_resources.candidates import (
    Candidate,
    PoolShape,
    Reads,
    ShapeTable,
    candidates_at,
    node_candidates,
)
from kubenexus.plugins.dynamic_resources.claim_requests import EQUAL, ClaimError, CompiledClaim
from kubenexus.plugins.dynamic_resources.counting import DeviceCounts, countable_requests
from kubenexus.plugins.dynamic_resources.pod_claims import score_of
from kubenexus.plugins.dynamic_resources.results import Configurations, allocations
from kubenexus.plugins.dynamic_resources.row_states import RowStates, distinct
from kubenexus.plugins.dynamic_resources.work import ROW, Work, WorkMeter
from kubenexus.state.claims.pools import Pool
from kubenexus.state.nodes import NodeColumns

_SPARE: Final = 4096  # outcomes that are kept beyond one for each row
_BYTES: Final = 1024  # of an outcome, with the devices that were found
Rows = NDArray[np.int64]


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What the claims of a class get on a row: devices (`found`), nothing, or an error. `elsewhere`: the reason that
    is the node's alone. `later`: the node was not looked at. `score` is that of the alternatives that were taken."""

    found: Found | None = None
    error: str = ""
    elsewhere: str = ""
    later: bool = False
    score: int = 0


_NOTHING, _LATER = Outcome(), Outcome(later=True)


class ClaimOutcomes:
    """The outcomes of some claims. It hangs on a pod class."""

    def __init__(self, claims: Sequence[CompiledClaim], meter: WorkMeter | None = None) -> None:
        self.claims, self._meter = claims, meter
        self._reads = _joint_reads(claims)
        self._countable = countable_requests(claims)
        self._counts = DeviceCounts(self._countable)
        self._states: RowStates | None = None
        self._columns: NodeColumns | None = None
        self._generation = 0
        self._outcomes: dict[tuple[int, int], Outcome] = {}
        self._configurations: Configurations = {}
        self._work = Work(meter)
        self._refresh_steps = 0  # of the last refresh

    def refusals(self, rows: Rows, columns: NodeColumns) -> Iterator[tuple[Rows, Outcome]]:
        """Yields the positions in `rows` that have no devices for the claims, with the outcome that they share. Looks
        at as many rows that are new as one attempt may; the next call goes on with the others."""
        states = self._refreshed(columns)
        self._work = Work(self._meter, self._refresh_steps)
        left: Rows = np.arange(len(rows))
        if self._countable:
            enough, known = self._counts.decide(rows, states, self._work)
            short = np.flatnonzero(known & ~enough)
            if len(short):
                yield short, _NOTHING
            looked = self._counts.looked_at(rows, states)
            left = np.flatnonzero(~known if looked is None else looked & ~known)
            if looked is not None and not looked.all():
                yield np.flatnonzero(~looked), _LATER
        if len(left):
            for positions, outcome in self._searched_refusals(rows[left], states, columns):
                yield left[positions], outcome

    def refusal(self, row: int, columns: NodeColumns) -> Outcome | None:
        """Returns why one row has no devices for the claims, or None if it has them."""
        states = self._refreshed(columns)
        enough = self._counts.decide_one(row, states) if self._countable else None
        if enough is not None:
            return None if enough else _NOTHING
        outcome = self._own(row, states, columns)
        return outcome if outcome.found is None else None

    def scores(self, rows: Rows, columns: NodeColumns) -> IntColumn:
        """Returns the score of each row, 0 where there are no devices, or `refusals` has not looked at the row."""
        states = self._refreshed(columns)
        examples, which = distinct(states, rows)
        found = [self._known(row, states, columns, self._work).score for row in examples.tolist()]
        return np.array(found, np.int64)[which] if found else np.zeros(0, np.int64)

    def allocations(self, row: int, columns: NodeColumns) -> list[AllocationResult] | str:
        """Returns the allocation of each claim on a row, or why there is none."""
        states = self._refreshed(columns)
        outcome = self._outcomes.get((states.shapes.item(row), states.held.item(row)))
        if outcome is None or outcome.error:
            outcome = self._own(row, states, columns)
        return _named(self.claims, outcome, states.pools_of(row), row, columns, self._configurations)

    @property
    def held_bytes(self) -> int:
        """The memory that this object takes, about."""
        states = 0 if self._states is None else self._states.held_bytes
        return states + _BYTES * len(self._outcomes)

    def _refreshed(self, columns: NodeColumns) -> RowStates:
        """Returns the states of the rows, up to date, shared with the classes whose claims read the same."""
        states = self._states
        if states is None or columns is not self._columns:
            question = ("DynamicResources", self._reads)
            states = self._states = columns.shared_while_used(question, lambda: RowStates(self._reads))
            self._columns, self._generation = columns, -1
            self._counts = DeviceCounts(self._countable)
        looked_at = states.refresh(columns)
        self._refresh_steps = looked_at * ROW
        if looked_at and self._meter is not None:
            self._meter.add(self._refresh_steps)
        if states.generation != self._generation:
            self._generation = states.generation
            self._outcomes.clear()
        return states

    def _searched_refusals(self, rows: Rows, states: RowStates, columns: NodeColumns) -> Iterator[tuple[Rows, Outcome]]:
        examples, which = distinct(states, rows)
        refused: dict[Outcome, list[int]] = {}
        for i, row in enumerate(examples.tolist()):
            outcome = self._known(row, states, columns, self._work)
            if outcome.found is None:
                refused.setdefault(outcome, []).append(i)
        for outcome, positions in refused.items():
            mask = np.zeros(len(examples), np.bool_)
            mask[positions] = True
            alike = np.flatnonzero(mask[which])
            if outcome.error:  # it names devices: each row has its own, as far as they can be reported
                for position in alike[:MAX_REASONS].tolist():
                    if self._work.ended:
                        break
                    own = self._search(int(rows[position]), states, columns, self._work)
                    if own.later:
                        break
                    yield np.array([position]), own
                    alike = alike[1:]
            if len(alike):
                yield alike, outcome

    def _known(self, row: int, states: RowStates, columns: NodeColumns, work: Work) -> Outcome:
        key = states.shapes.item(row), states.held.item(row)
        known = self._outcomes.get(key)
        if known is None:
            if work.ended:
                return _LATER
            known = self._search(row, states, columns, work)
            if known.later:
                return known
            if len(self._outcomes) >= columns.size + _SPARE:
                self._outcomes.clear()
            self._outcomes[key] = known
        return known

    def _own(self, row: int, states: RowStates, columns: NodeColumns) -> Outcome:
        """Returns the outcome of one row; an error names the devices of this row, not those of an equal one."""
        work = Work(self._meter)
        outcome = self._known(row, states, columns, work)
        return self._search(row, states, columns, work) if outcome.error and not work.searched else outcome

    def _search(self, row: int, states: RowStates, columns: NodeColumns, work: Work) -> Outcome:
        return _searched(self.claims, *states.pools(row), row, columns, work)


def allocations_on_row(
    claims: Sequence[CompiledClaim], row: int, columns: NodeColumns, meter: WorkMeter | None = None
) -> list[AllocationResult] | str:
    """Returns the allocation of each claim on a row, or why there is none. Unlike `ClaimOutcomes` it looks at no other
    row: for claims that are asked about once."""
    store, table = columns.claims, ShapeTable(_joint_reads(claims))
    pools = store.pools(columns.names[row], columns.labels.of_row(row) if store.labels_matter else {})
    shapes = tuple([table.of(each) for each in pools])
    return _named(claims, _searched(claims, pools, shapes, row, columns, Work(meter)), pools, row, columns, {})


def _searched(
    claims: Sequence[CompiledClaim],
    pools: tuple[Pool, ...],
    shapes: tuple[PoolShape, ...],
    row: int,
    columns: NodeColumns,
    work: Work,
) -> Outcome:
    place = Place(columns.names[row], columns.labels.of_row(row))
    candidates: Sequence[Candidate] = node_candidates(pools, shapes, columns.claims.allocated)
    try:
        found = allocate(claims, pools, candidates, columns.claims.allocated, place, work)
    except ClaimError as error:
        return Outcome(error=str(error))
    except NotOnNode as reason:
        return Outcome(elsewhere=str(reason))
    except SearchCut:
        return _LATER
    return _NOTHING if found is None else Outcome(found, score=_score(claims, found))


def _named(
    claims: Sequence[CompiledClaim],
    outcome: Outcome,
    pools: tuple[Pool, ...],
    row: int,
    columns: NodeColumns,
    known: Configurations,
) -> list[AllocationResult] | str:
    """Returns the allocations of an outcome, with the names that the devices have on a row."""
    if outcome.found is None:
        return outcome.error or outcome.elsewhere
    try:
        candidates = candidates_at(pools, [choice.candidate for choices in outcome.found.choices for choice in choices])
        return allocations(claims, outcome.found, candidates, columns.claims.classes, columns.names[row], known)
    except ClaimError as error:
        return str(error)


def _score(claims: Sequence[CompiledClaim], found: Found) -> int:
    taken = ({choice.request.full_name for choice in choices} for choices in found.choices)
    return sum(score_of(claim.spec, names) for claim, names in zip(claims, taken, strict=True))


def _joint_reads(claims: Sequence[CompiledClaim]) -> Reads:
    found: set[Any] = set()
    for each in claims:
        if each.reads is None:
            return None
        found |= each.reads
    # A value that is read says which devices have equal ones, too.
    return frozenset(each for each in found if each.map != EQUAL or each._replace(map="attributes") not in found)
