"""What the allocator finds for a class on each row, computed once for rows that are equal.

Two rows with equal pools (`PoolShape`) and equally many devices held, at the same places, have the same outcome. So
5,000 nodes with the same machine cost one search for each state that occurs among them.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kubenexus.api.devices.resource_claim import AllocationResult
from kubenexus.plugins.dynamic_resources.allocator import Found, NotOnNode, Place, allocate
from kubenexus.plugins.dynamic_resources.candidates import (
    Candidate,
    PoolShape,
    Reads,
    ShapeTable,
    node_candidates,
    pool_state,
)
from kubenexus.plugins.dynamic_resources.claim_requests import ClaimError, CompiledClaim
from kubenexus.plugins.dynamic_resources.pod_claims import score_of
from kubenexus.plugins.dynamic_resources.results import allocations
from kubenexus.state.claims.pools import Pool
from kubenexus.state.nodes import NodeColumns

_MAX_OUTCOMES: Final = 4096


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What the claims of a class get on a row: devices (`found`), nothing, or an error. `elsewhere`: the reason that
    is the node's alone. `score` is that of the alternatives that were taken."""

    found: Found | None = None
    error: str = ""
    elsewhere: str = ""
    score: int = 0


class ClaimOutcomes:
    """The outcomes of some claims. It hangs on a pod class."""

    def __init__(self, claims: Sequence[CompiledClaim]) -> None:
        self.claims = claims
        self._reads = _joint_reads(claims)
        self._shapes = ShapeTable()
        self._outcomes: dict[Any, Outcome] = {}

    def at(self, row: int, columns: NodeColumns) -> Outcome:
        """Returns the outcome on a row."""
        pools, shapes, place = self._node(row, columns)
        states = [pool_state(each, columns.claims.allocated) for each in pools]
        key = (tuple(shapes), tuple(states), _depends_on_node(pools) and place.name)
        known = self._outcomes.get(key)
        if known is None:
            known = self._search(pools, shapes, columns, place)
            if not known.error:  # an error has names in it
                if len(self._outcomes) >= _MAX_OUTCOMES:
                    self._outcomes.clear()
                self._outcomes[key] = known
        return known

    def allocations(self, row: int, columns: NodeColumns) -> list[AllocationResult] | str:
        """Returns the allocation of each claim on a row, or why there is none."""
        outcome = self.at(row, columns)
        if outcome.found is None:
            return outcome.error or outcome.elsewhere
        pools, shapes, place = self._node(row, columns)
        candidates = node_candidates(pools, shapes, columns.claims.allocated)
        try:
            return allocations(self.claims, outcome.found, candidates, columns.claims.classes, place.name)
        except ClaimError as error:
            return str(error)

    def _node(self, row: int, columns: NodeColumns) -> tuple[tuple[Pool, ...], list[PoolShape], Place]:
        place = Place(columns.names[row], columns.labels.of_row(row))
        pools = columns.claims.pools(*place)
        return pools, [self._shapes.of(each, self._reads) for each in pools], place

    def _search(
        self, pools: Sequence[Pool], shapes: Sequence[PoolShape], columns: NodeColumns, place: Place
    ) -> Outcome:
        candidates: Sequence[Candidate] = node_candidates(pools, shapes, columns.claims.allocated)
        try:
            found = allocate(self.claims, pools, candidates, columns.claims.allocated, place)
        except ClaimError as error:
            return Outcome(error=str(error))
        except NotOnNode as reason:
            return Outcome(elsewhere=str(reason))
        return Outcome() if found is None else Outcome(found, score=self._score(found))

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


def _depends_on_node(pools: Sequence[Pool]) -> bool:
    """Whether devices have selections of their own, so that the node's labels count."""
    return any(each.selection is None for pool in pools for each in pool.slices)
