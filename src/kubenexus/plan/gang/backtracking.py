"""Places a gang member by member, and backtracks within a counted budget.

For gangs whose members limit each other so that plugins have to be called again after each member: affinity between
different pods, several spread constraints, volumes, device claims. A member that finds no devices is also tried beside
members that were placed before it, with devices that are chosen for all of them together.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import BoolColumn
from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.decision import PodPlacement
from kubenexus.framework.job import JobView
from kubenexus.framework.verdict import Code
from kubenexus.plan.gang.member_classes import MemberClass
from kubenexus.plan.gang.shared_claims import (
    MAX_REACHES,
    Reach,
    SharingMembers,
    claim_keys,
    preferred_rows,
    sharing_members,
)
from kubenexus.plan.place_pod import PodPlacer, PodResult
from kubenexus.state.claims.assigned import claim_allocations
from kubenexus.state.claims.store import ClaimAllocation, ClaimChoice
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord, PodStage, pod_record
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.transaction import Transaction

_MAX_BACKTRACKING_MEMBERS = 48  # members up to which the search backtracks
# Rows that plugins report of their own work: those that a placement may cost, and those that cost as much as another.
_FREE_ROWS, _ROWS_OF_PLACEMENT = 600, 500
_MAX_ROWS_BESIDE = 8  # rows of other members that are tried without backtracking


Taken = tuple[tuple[int, int], ...]  # pairs of member class and row, sorted


class MemberError(KubeNexusError):
    """A plugin failed for a member. Its result is not known, so the gang is not placed."""

    def __init__(self, result: PodResult) -> None:
        super().__init__(result.error)
        self.result = result


class SearchResult(msgspec.Struct, gc=False):
    """The members that were placed. `refusal` is that of the first one that was not; `exhausted`: more may fit."""

    results: list[PodResult]
    refusal: PodResult | None = None
    exhausted: bool = False


class BacktrackingSearch:
    """The search for one decision. It writes to the columns, and restores them.

    `promised` are the keys of nominated pods that are in the columns already, and must not be counted again.
    `bound_rows` are the rows of members that are bound already.
    """

    def __init__(
        self,
        pod_placer: PodPlacer,
        snapshot: Snapshot,
        promised: frozenset[str] = frozenset(),
        bound_rows: tuple[int, ...] = (),
    ) -> None:
        self._pod_placer, self._snapshot, self._promised, self._bound_rows = pod_placer, snapshot, promised, bound_rows
        self._left = self.keep = 0
        self._pods: dict[str, Pod] = {}
        self._sharing: tuple[Sequence[MemberClass], SharingMembers | None] = ((), None)
        # Whether the check of nominated pods, or a plugin, reads the keys or the rows of the other members. Both are
        # collected again for each member, which takes time by their number.
        self._needs_keys = bool(snapshot.nominees())
        self._needs_rows = pod_placer.depends_on_job

    def allow(self, placements: int, keep: int) -> None:
        """Sets how many pods the search may place in all its attempts; `keep` of them are not to be used yet."""
        self._left, self.keep = placements, keep

    @property
    def spent(self) -> bool:
        return self._left <= self.keep

    def place(self, member_classes: Sequence[MemberClass], minimum: int, within: Any) -> SearchResult:
        """Returns placements for as many members as the search finds on the rows of `within` (None: on all).

        Tries up to three orders of the classes, then backtracks.
        """
        best = SearchResult([])
        self._pods = {pod.metadata.uid: pod for member_class in member_classes for pod in member_class.pods}
        orders = [
            list(member_classes),
            sorted(member_classes, key=lambda member_class: int(np.count_nonzero(member_class.capacity))),
            list(member_classes)[::-1],
        ]
        for order in orders if len(member_classes) > 1 else orders[:1]:
            pods = [pod for member_class in order for pod in member_class.pods]
            found = self._greedy(pods, minimum, within)
            best = found if len(found.results) > len(best.results) or best.refusal is None else best
            if len(best.results) == len(pods) or found.exhausted:
                return best
        shared = self._around_shared_claim(member_classes, minimum, within)
        if shared is not None and len(shared.results) > len(best.results):
            best = shared
        if len(best.results) == len(self._pods):
            return best
        rest = self._thorough(orders[1] if len(member_classes) > 1 else orders[0], within)
        return best if rest is None or not rest.results else rest

    # --- without backtracking -------------------------------------------------------------------------------------

    def _greedy(self, pods: list[Pod], minimum: int, within: Any, reach: Reach | None = None) -> SearchResult:
        """Places each member on the best node in turn; members that find none are left out."""
        found = SearchResult([])
        with self._snapshot.attempt() as transaction:
            for i, pod in enumerate(pods):
                if self.spent:
                    found.exhausted = True
                    break
                self._left -= 1
                rows = within if reach is None else reach.of(pod, within)
                result = self._place_one(pod, found.results, len(pods), rows)
                if result.placement is None:
                    result = self._beside(pod, found.results, len(pods), rows, transaction) or result
                if result.placement is not None:
                    found.results.append(result)
                    transaction.add_pod(result.row, member_record(pod, result.placement, self._snapshot.nodes))
                    continue
                found.refusal = found.refusal or result
                if len(found.results) + len(pods) - i - 1 < minimum:
                    break
        return found

    # --- around a claim that members share ------------------------------------------------------------------------

    def _around_shared_claim(
        self, member_classes: Sequence[MemberClass], minimum: int, within: Any
    ) -> SearchResult | None:
        """Places the members where one place for the claim that they share is within reach, one place after the
        other. Returns the best result, or None if they share none."""
        if self._sharing[0] is not member_classes:  # the same in all domains that are tried
            self._sharing = member_classes, sharing_members(member_classes, self._snapshot.nodes.claims)
        sharing = self._sharing[1]
        if sharing is None:
            return None
        pods, best = list(self._pods.values()), SearchResult([])
        for reach in self._reaches(sharing, sharing.needed(minimum, len(pods)), within):
            found = self._greedy(pods, minimum, within, reach)
            best = found if len(found.results) > len(best.results) else best
            if len(best.results) == len(pods) or found.exhausted:
                break
        return best

    def _reaches(self, sharing: SharingMembers, needed: int, within: Any) -> Iterator[Reach]:
        """Yields the rows that a place for the claim is within reach of, if so many members may fit there."""
        first, second = sharing.pods[:2]
        members, size = frozenset(pod.metadata.uid for pod in sharing.pods), len(self._pods)
        tries = MAX_REACHES
        for rows in preferred_rows(sharing, needed, within):
            while tries and not self.spent and rows.any():
                tries, self._left = tries - 1, self._left - 1
                result = self._place_one(first, [], size, rows)
                if result.placement is None:
                    break
                with self._snapshot.attempt() as transaction:
                    transaction.add_pod(result.row, member_record(first, result.placement, self._snapshot.nodes))
                    reached = self._pod_placer.feasible_rows(second, self._snapshot.nodes, self._view([result], size))
                reached[result.row] = True
                np.bitwise_and(rows, ~reached, out=rows)
                if int(sharing.capacity[reached].sum()) >= needed:
                    yield Reach(reached if within is None else reached & within, members)

    # --- with backtracking ----------------------------------------------------------------------------------------

    def _thorough(self, member_classes: Sequence[MemberClass], within: Any) -> SearchResult | None:
        """Places all members or none: where one finds no node, the members before it try their next best ones."""
        pods = [(i, pod) for i, member_class in enumerate(member_classes) for pod in member_class.pods]
        if len(pods) > _MAX_BACKTRACKING_MEMBERS:
            return None
        results: list[PodResult] = []
        done = self._next(pods, results, (), set(), within)
        return SearchResult(results) if done else None

    def _next(
        self,
        pods: list[tuple[int, Pod]],
        results: list[PodResult],
        taken: Taken,
        hopeless: set[Taken],
        within: Any,
    ) -> bool:
        if len(results) == len(pods):
            return True
        member_class, pod = pods[len(results)]
        tried = np.ones(self._snapshot.nodes.size, np.bool_) if within is None else np.array(within, np.bool_)
        while not self.spent:
            self._left -= 1
            result = self._place_one(pod, results, len(pods), tried)
            if result.placement is None:
                break
            state = tuple(sorted((*taken, (member_class, result.row))))
            tried[result.row] = False
            if state in hopeless:
                continue
            with self._snapshot.attempt() as transaction:
                transaction.add_pod(result.row, member_record(pod, result.placement, self._snapshot.nodes))
                results.append(result)
                if self._next(pods, results, state, hopeless, within):
                    return True
                results.pop()
            hopeless.add(state)
        return self._next_beside(pods, results, taken, hopeless, within)

    def _next_beside(
        self, pods: list[tuple[int, Pod]], results: list[PodResult], taken: Taken, hopeless: set[Taken], within: Any
    ) -> bool:
        """Goes on with the member beside others of its gang, whose devices are exchanged for that."""
        member_class, pod = pods[len(results)]
        before = list(results)
        for row in self._rows_with_claims(pod, results, within):
            state = tuple(sorted((*taken, (member_class, row))))
            if state in hopeless or self.spent:
                continue
            with self._snapshot.attempt() as transaction:
                result = self._exchange(pod, row, results, len(pods), transaction)
                if result is not None and result.placement is not None:
                    transaction.add_pod(row, member_record(pod, result.placement, self._snapshot.nodes))
                    results.append(result)
                    if self._next(pods, results, state, hopeless, within):
                        return True
            results[:] = before
            hopeless.add(state)
        return False

    # --- devices of several members together ----------------------------------------------------------------------

    def _beside(
        self, pod: Pod, results: list[PodResult], size: int, within: Any, transaction: Transaction
    ) -> PodResult | None:
        """Returns a place for a member beside others, the claims of which are exchanged in `results`."""
        for row in self._rows_with_claims(pod, results, within)[:_MAX_ROWS_BESIDE]:
            found = None if self.spent else self._exchange(pod, row, results, size, transaction)
            if found is not None:
                return found
        return None

    def _rows_with_claims(self, pod: Pod, results: list[PodResult], within: Any) -> list[int]:
        """Returns the rows on which members hold devices for claims, if the pod has claims itself."""
        if not pod.spec.resource_claims:
            return []
        rows = {each.row for each in results if each.placement is not None and each.placement.assignment.claims}
        return sorted(row for row in rows if within is None or within[row])

    def _exchange(
        self, pod: Pod, row: int, results: list[PodResult], size: int, transaction: Transaction
    ) -> PodResult | None:
        """Places a member on a row, with devices that are chosen for it and the members there together. On success
        `results` has what these get instead; the caller adds the member itself."""
        own = [i for i, each in enumerate(results) if each.row == row and _claims_of(each)]
        pods = [self._pods[_uid(results[i])] for i in own]
        self._left -= len(own) + 1
        claims = self._snapshot.nodes.claims
        brought = [claim_allocations(each, _claims_of(results[i]), claims) for i, each in zip(own, pods, strict=True)]
        kept = self._shared_uids(pod, brought)
        held = [_without(each, kept) for each in brought]
        for allocations in held:
            transaction.exchange_claims(row, allocations, ())
        only: BoolColumn = np.zeros(self._snapshot.nodes.size, np.bool_)
        only[row] = True
        result = self._place_one(pod, results, size, only)
        given = None
        if result.placement is not None:
            view = self._view(results, size)
            given = self._pod_placer.claims_together([*pods, pod], row, self._snapshot.nodes, view)
        if given is None:
            for allocations in held:
                transaction.exchange_claims(row, (), allocations)
            return None
        for i, member, choices in zip(own, pods, given, strict=False):
            results[i] = _with_claims(results[i], choices)
            transaction.exchange_claims(row, (), _without(claim_allocations(member, choices, claims), kept))
        return _with_claims(result, given[-1])

    def _shared_uids(self, pod: Pod, brought: list[tuple[ClaimAllocation, ...]]) -> set[str]:
        """Returns the UIDs of claims that are not to be exchanged, because members share them, or the pod has them."""
        claims = self._snapshot.nodes.claims
        stored = [claims.claims.get(key) for key in claim_keys(pod)]
        several = {each.uid for allocations in brought for each in allocations if claims.pending[each.uid].pods > 1}
        return several | {each.claim.metadata.uid for each in stored if each is not None}

    def _place_one(self, pod: Pod, results: list[PodResult], size: int, within: Any) -> PodResult:
        before = self._pod_placer.reported_work
        result = self._pod_placer.place(pod, self._snapshot, self._view(results, size), within)
        self._left -= max(0, self._pod_placer.reported_work - before - _FREE_ROWS) // _ROWS_OF_PLACEMENT
        if result.code is Code.ERROR:
            raise MemberError(result)
        return result

    def _view(self, results: list[PodResult], size: int) -> JobView:
        """Returns what plugins get of the members before this one."""
        rows, keys = self._bound_rows, self._promised
        if self._needs_rows:
            rows += tuple([result.row for result in results])
        if self._needs_keys:
            keys = keys.union([result.placement.pod for result in results if result.placement is not None])
        return JobView(size + len(self._bound_rows), rows, keys)


def _claims_of(result: PodResult) -> tuple[ClaimChoice, ...]:
    return () if result.placement is None else result.placement.assignment.claims


def _without(allocations: tuple[ClaimAllocation, ...], kept: set[str]) -> tuple[ClaimAllocation, ...]:
    return tuple(each for each in allocations if each.uid not in kept)


def _uid(result: PodResult) -> str:
    return "" if result.placement is None else result.placement.uid


def _with_claims(result: PodResult, claims: tuple[ClaimChoice, ...]) -> PodResult:
    placement = result.placement
    if placement is None:
        return result
    assignment = msgspec.structs.replace(placement.assignment, claims=claims)
    return msgspec.structs.replace(result, placement=msgspec.structs.replace(placement, assignment=assignment))


def member_record(pod: Pod, placement: PodPlacement, columns: NodeColumns) -> PodRecord:
    """Returns the record of a member on the node of its placement."""
    record, given = pod_record(pod, placement.node, PodStage.ASSUMED, placement.footprint), placement.assignment
    record.device_shares, record.volume_choices = given.device_shares, given.volumes
    if given.claims:
        record.claims = claim_allocations(pod, given.claims, columns.claims)
    return record
