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
from kubenexus.plugins.dynamic_resources.allocator import Found, NotOnNode, Place, allocate
from kubenexus.plugins.dynamic_resources.candidates import Candidate, Reads, candidates_at, node_candidates
from kubenexus.plugins.dynamic_resources.claim_requests import ClaimError, CompiledClaim
from kubenexus.plugins.dynamic_resources.counting import DeviceCounts, countable_requests
from kubenexus.plugins.dynamic_resources.pod_claims import score_of
from kubenexus.plugins.dynamic_resources.results import allocations
from kubenexus.plugins.dynamic_resources.row_states import RowStates, distinct
from kubenexus.state.nodes import NodeColumns

_MAX_OUTCOMES: Final = 4096
Rows = NDArray[np.int64]


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What the claims of a class get on a row: devices (`found`), nothing, or an error. `elsewhere`: the reason that
    is the node's alone. `score` is that of the alternatives that were taken."""

    found: Found | None = None
    error: str = ""
    elsewhere: str = ""
    score: int = 0


_NOTHING: Final = Outcome()


class ClaimOutcomes:
    """The outcomes of some claims. It hangs on a pod class."""

    def __init__(self, claims: Sequence[CompiledClaim]) -> None:
        self.claims = claims
        self._reads = _joint_reads(claims)
        self._countable = countable_requests(claims)
        self._counts = DeviceCounts(self._countable)
        self._states: RowStates | None = None
        self._columns: NodeColumns | None = None
        self._generation = 0
        self._outcomes: dict[tuple[int, int], Outcome] = {}

    def refusals(self, rows: Rows, columns: NodeColumns) -> Iterator[tuple[Rows, Outcome]]:
        """Yields the positions in `rows` that have no devices for the claims, with the outcome that they share."""
        states = self._refreshed(columns)
        left: Rows = np.arange(len(rows))
        if self._countable:
            enough, known = self._counts.decide(rows, states)
            short = np.flatnonzero(known & ~enough)
            if len(short):
                yield short, _NOTHING
            left = np.flatnonzero(~known)
        if len(left):
            for positions, outcome in self._searched_refusals(rows[left], states, columns):
                yield left[positions], outcome

    def refusal(self, row: int, columns: NodeColumns) -> Outcome | None:
        """Returns why one row has no devices for the claims, or None if it has them."""
        states = self._refreshed(columns)
        enough = self._counts.decide_one(row, states) if self._countable else None
        if enough is not None:
            return None if enough else _NOTHING
        outcome = self._known(row, states, columns)
        if outcome.error:
            outcome = self._search(row, states, columns)
        return outcome if outcome.found is None else None

    def scores(self, rows: Rows, columns: NodeColumns) -> IntColumn:
        """Returns the score of each row, 0 where there are no devices."""
        states = self._refreshed(columns)
        examples, which = distinct(states, rows)
        found = [self._known(row, states, columns).score for row in examples.tolist()]
        return np.array(found, np.int64)[which] if found else np.zeros(0, np.int64)

    def allocations(self, row: int, columns: NodeColumns) -> list[AllocationResult] | str:
        """Returns the allocation of each claim on a row, or why there is none."""
        states = self._refreshed(columns)
        outcome = self._known(row, states, columns)
        if outcome.error:
            outcome = self._search(row, states, columns)
        if outcome.found is None:
            return outcome.error or outcome.elsewhere
        chosen = (choice.candidate for choices in outcome.found.choices for choice in choices)
        candidates = candidates_at(states.pools(row)[0], chosen)
        try:
            return allocations(self.claims, outcome.found, candidates, columns.claims.classes, columns.names[row])
        except ClaimError as error:
            return str(error)

    def _refreshed(self, columns: NodeColumns) -> RowStates:
        """Returns the states of the rows, up to date, shared with the classes whose claims read the same."""
        states = self._states
        if states is None or columns is not self._columns:
            question = ("DynamicResources", self._reads)
            states = self._states = columns.shared_while_used(question, lambda: RowStates(self._reads))
            self._columns, self._generation = columns, -1
            self._counts = DeviceCounts(self._countable)
        states.refresh(columns)
        if states.generation != self._generation:
            self._generation = states.generation
            self._outcomes.clear()
        return states

    def _searched_refusals(self, rows: Rows, states: RowStates, columns: NodeColumns) -> Iterator[tuple[Rows, Outcome]]:
        examples, which = distinct(states, rows)
        refused: dict[Outcome, list[int]] = {}
        for i, row in enumerate(examples.tolist()):
            outcome = self._known(row, states, columns)
            if outcome.found is None:
                refused.setdefault(outcome, []).append(i)
        for outcome, positions in refused.items():
            mask = np.zeros(len(examples), np.bool_)
            mask[positions] = True
            alike = np.flatnonzero(mask[which])
            if outcome.error:  # it names devices: each row has its own, as far as they can be reported
                for position in alike[:MAX_REASONS].tolist():
                    yield np.array([position]), self._search(int(rows[position]), states, columns)
                alike = alike[MAX_REASONS:]
            if len(alike):
                yield alike, outcome

    def _known(self, row: int, states: RowStates, columns: NodeColumns) -> Outcome:
        key = states.shapes.item(row), states.held.item(row)
        known = self._outcomes.get(key)
        if known is None:
            known = self._search(row, states, columns)
            if len(self._outcomes) >= _MAX_OUTCOMES:
                self._outcomes.clear()
            self._outcomes[key] = known
        return known

    def _search(self, row: int, states: RowStates, columns: NodeColumns) -> Outcome:
        pools, shapes = states.pools(row)
        place = Place(columns.names[row], columns.labels.of_row(row))
        candidates: Sequence[Candidate] = node_candidates(pools, shapes, columns.claims.allocated)
        try:
            found = allocate(self.claims, pools, candidates, columns.claims.allocated, place)
        except ClaimError as error:
            return Outcome(error=str(error))
        except NotOnNode as reason:
            return Outcome(elsewhere=str(reason))
        return _NOTHING if found is None else Outcome(found, score=self._score(found))

    def _score(self, found: Found) -> int:
        taken = ({choice.request.full_name for choice in choices} for choices in found.choices)
        return sum(score_of(claim.spec, names) for claim, names in zip(self.claims, taken, strict=True))


def _joint_reads(claims: Sequence[CompiledClaim]) -> Reads:
    found: set[Any] = set()
    for each in claims:
        if each.reads is None:
            return None
        found |= each.reads
    return frozenset(found)
