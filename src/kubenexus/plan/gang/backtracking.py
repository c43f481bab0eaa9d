"""Member by member, for gangs whose members limit each other in ways that only asking again can tell: affinity between
different pods, several spread constraints, volumes. Tries again with other choices, within a counted budget."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.decision import PodPlacement
from kubenexus.framework.job import JobView
from kubenexus.framework.verdict import Code
from kubenexus.plan.gang.member_classes import MemberClass
from kubenexus.plan.place_pod import PodPlacer, PodResult
from kubenexus.state.pods import PodRecord, PodStage, pod_record
from kubenexus.state.snapshot import Snapshot

_DEEPEST = 48  # members up to which choices are taken back one by one


Taken = tuple[tuple[int, int], ...]  # which crew sits on which row, sorted


class MemberError(KubeNexusError):
    """A rule failed for a member: nobody knows what it would have said, so the gang is not placed."""

    def __init__(self, result: PodResult) -> None:
        super().__init__(result.error)
        self.result = result


class SearchResult(msgspec.Struct, gc=False):
    """Who sits where. `refusal` is that of the first member without a seat; `exhausted`: not everything was tried."""

    results: list[PodResult]
    refusal: PodResult | None = None
    exhausted: bool = False


class BacktrackingSearch:
    """For one decision. The columns are written to and restored. `reserved_nodes` are nominated pods that count on
    their nodes already: nobody need make room for them once more."""

    def __init__(self, pod_placer: PodPlacer, snapshot: Snapshot, promised: frozenset[str] = frozenset()) -> None:
        self._pod_placer, self._snapshot, self._promised = pod_placer, snapshot, promised
        self._left = self.keep = 0
        self._followed = pod_placer.depends_on_job or bool(
            snapshot.nominees()
        )  # does anybody ask where the others sit?

    def allow(self, seats: int, keep: int) -> None:
        """So many seats may be looked for, however often the search starts again; `keep` of them not yet."""
        self._left, self.keep = seats, keep

    @property
    def spent(self) -> bool:
        return self._left <= self.keep

    def place(self, member_classes: Sequence[MemberClass], minimum: int, within: Any) -> SearchResult:
        """As many members as can be found seats for on the rows of `within` (None: on all); all, if some order does
        it."""
        best = SearchResult([])
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
        rest = self._thorough(orders[1] if len(member_classes) > 1 else orders[0], within)
        return best if rest is None or not rest.results else rest

    # --- straight on ----------------------------------------------------------------------------------------------

    def _greedy(self, pods: list[Pod], minimum: int, within: Any) -> SearchResult:
        """Each takes the best seat there is when its turn comes; who finds none stays behind."""
        found = SearchResult([])
        with self._snapshot.attempt() as transaction:
            for i, pod in enumerate(pods):
                if self.spent:
                    found.exhausted = True
                    break
                self._left -= 1
                result = self._seat(pod, found.results, len(pods), within)
                if result.placement is not None:
                    found.results.append(result)
                    transaction.add_pod(result.row, member_record(pod, result.placement))
                    continue
                found.refusal = found.refusal or result
                if len(found.results) + len(pods) - i - 1 < minimum:
                    break
        return found

    # --- with second thoughts -------------------------------------------------------------------------------------

    def _thorough(self, member_classes: Sequence[MemberClass], within: Any) -> SearchResult | None:
        """All members or none: where one finds no seat, those before it try their next best."""
        pods = [(i, pod) for i, member_class in enumerate(member_classes) for pod in member_class.pods]
        if len(pods) > _DEEPEST:
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
        crew, pod = pods[len(results)]
        tried = np.ones(self._snapshot.nodes.size, np.bool_) if within is None else np.array(within, np.bool_)
        while not self.spent:
            self._left -= 1
            result = self._seat(pod, results, len(pods), tried)
            if result.placement is None:
                break
            state = tuple(sorted((*taken, (crew, result.row))))
            tried[result.row] = False
            if state in hopeless:
                continue
            with self._snapshot.attempt() as transaction:
                transaction.add_pod(result.row, member_record(pod, result.placement))
                results.append(result)
                if self._next(pods, results, state, hopeless, within):
                    return True
                results.pop()
            hopeless.add(state)
        return False

    def _seat(self, pod: Pod, results: list[PodResult], size: int, within: Any) -> PodResult:
        view = job_view(results, size, self._promised) if self._followed else JobView(size)
        result = self._pod_placer.place(pod, self._snapshot, view, within)
        if result.code is Code.ERROR:
            raise MemberError(result)
        return result


def job_view(results: list[PodResult], size: int, promised: frozenset[str] = frozenset()) -> JobView:
    """What a rule may know of the members before this one; and who waits for a node no longer, besides them."""
    keys = promised.union(result.placement.pod for result in results if result.placement is not None)
    return JobView(size, tuple(result.row for result in results), keys)


def member_record(pod: Pod, placement: PodPlacement) -> PodRecord:
    """A member as it would count on its node."""
    record = pod_record(pod, placement.node, PodStage.ASSUMED, placement.footprint)
    record.device_shares, record.volume_choices = placement.assignment.device_shares, placement.assignment.volumes
    return record
