"""ResourceFragmentationScore: small pods stay off whole islands of GPUs, and pods without GPUs off GPU nodes.

An island is a set of GPUs joined by NVLink; on a node without any, all its GPUs are one. Score of a pod with whole
GPUs, for the best island of the node:

    100               the pod takes exactly what is free
    90 - what is left the island is in use already
    40                the island is whole and has fewer than four GPUs, or its GPUs are not joined
    20 + quality / 10 the island is whole, and the pod takes three or more, but less than half of it
    0                 the pod would break a whole island, or needs several islands

A part of a GPU scores 100 where it fills a GPU up, 90 and less on a GPU that is shared already, 50 on another GPU of an
island in use, 0 if it breaks a whole island. Pods without GPUs score 100 on nodes without GPUs and 0 on others.

Filter: a node with the label `tenant.kubenexus.io/reserved-tier` takes GPU pods of tenants of that tier and above only.
Pods with device claims are GPU pods here: a claim may be for any device of the node.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.keys import tenant
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import Depends, Normalize
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason
from kubenexus.plugins.devices.demand.scoring import DemandScore
from kubenexus.plugins.devices.hints import DEVICE_EVENTS
from kubenexus.plugins.devices.request import (
    DeviceRequest,
    available,
    may_claim_devices,
    needs_of,
    requests_of,
    suitable,
)
from kubenexus.plugins.devices.reserved_tier import reserved_rank, reserved_ranks
from kubenexus.plugins.devices.shared_columns import by_island, in_use, is_in_use, shared_scores
from kubenexus.plugins.devices.tenant_tier import RANKS, TIER_EVENT, tier_of
from kubenexus.state.demand import Demand
from kubenexus.state.devices.view import part_of, unpacked
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

RESERVED: Final = Reason("node(s) were reserved for tenants of a higher tier", Code.UNRESOLVABLE)
EXACT, IN_USE, SMALL_AND_WHOLE, FRESH_CARD = 100, 90, 40, 50
MIN_ISLAND: Final = 4  # GPUs of an island that is kept whole
MAX_BREAKING: Final = 2  # GPUs of a pod that gets no points for a whole island
_NO_GPUS: Final = 0  # signed for pods without GPUs; the negative rank of the tenant for those with claims alone
_BY_DEMAND: Final = 100  # signed for pods without GPUs where the demand for GPUs counts for them: above every rank
_NOTHING_BEGUN: Final = 1 << 20  # a share that no device has left


class ResourceFragmentationScore:
    name = "ResourceFragmentationScore"
    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")
    depends = Depends.USAGE | Depends.DEMAND
    filter_depends = Depends.NODE
    normalize = Normalize("points")  # by demand there are more than 100
    supports_one_node = True
    signs_template = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._by_demand = DemandScore() if args.get("byDemand", True) else None

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        if needs_of(pod) is not None:
            return RANKS[tier_of(pod, nodes)]
        if may_claim_devices(pod, nodes):
            return -RANKS[tier_of(pod, nodes)]
        demand = nodes.demand
        return _BY_DEMAND if self._by_demand is not None and demand is not None and demand.on_gpu_nodes else _NO_GPUS

    def ignores_usage(self, signed: Any) -> bool:
        """Whether the results for a class depend on the nodes alone: those for pods without GPUs do."""
        return bool(signed <= _NO_GPUS)

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        rank = abs(pod.signed.get(self.name, _NO_GPUS))
        if rank == _NO_GPUS or not nodes.columns.labels.rows_with(tenant.RESERVED_TIER.key):
            return
        if isinstance(nodes, OneNode):
            verdict.reject(reserved_rank(nodes.labels.get(tenant.RESERVED_TIER.key, "")) > rank, RESERVED)
        else:
            verdict.reject(reserved_ranks(nodes) > rank, RESERVED)

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Leaves `capacity` as it is: a reserved node refuses each member alike."""

    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        return {}

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        if isinstance(nodes, OneNode):
            return self.score_row(pod, nodes)
        requests, demand = requests_of(pod), self.demand_for(pod, nodes)
        if self._by_demand is not None and demand is not None:
            return self._by_demand.score(pod, requests[0] if requests else None, nodes, demand)
        if not requests and not nodes.columns.devices.count:
            return EXACT
        if not requests:
            without: IntColumn = EXACT * (nodes.devices.offered("") == 0)
            return without
        request, own = requests[0], self._score_parts if requests[0].is_part else self._score_whole
        return shared_scores(
            request, nodes, self.name, lambda view: own(request, view), lambda node: self._score_row(requests, node)
        )

    def demand_for(self, pod: PodClass, nodes: Nodes) -> Demand | None:
        """Returns the demand by which pods of a class are scored; None if the islands of nodes alone count."""
        if self._by_demand is None or pod.signed.get(self.name, _NO_GPUS) <= _NO_GPUS:
            return None
        return nodes.columns.demand

    def score_row(self, pod: PodClass, node: OneNode) -> int:
        """Returns the score of one row."""
        requests, demand = requests_of(pod), self.demand_for(pod, node)
        if self._by_demand is not None and demand is not None:
            return self._by_demand.score_row(pod, requests[0] if requests else None, node, demand)
        return self._score_row(requests, node)

    def _score_row(self, requests: tuple[DeviceRequest, ...], node: OneNode) -> int:
        """The same as the methods below, for one row."""
        sets = node.devices
        if not requests:
            return 0 if sets.offered("") else EXACT
        request = requests[0]
        used = is_in_use(request.resource, node)
        if request.is_part:
            return _part_points(request, sets, used)
        could, free, quality, count = suitable(request, sets), available(request, sets), sets.quality, request.number
        best = 0
        joined = bool(sets.islands)
        for group in sets.islands or (could,):
            left, total = (free & group).bit_count(), (could & group).bit_count()
            whole = left == total and not used
            best = max(best, island_points(count, left, total, quality, whole=whole, joined=joined))
        return best

    def _score_whole(self, request: DeviceRequest, nodes: Nodes) -> IntColumn:
        count = request.number
        sets = nodes.devices
        total, free = by_island(suitable(request, sets), sets), by_island(available(request, sets), sets)
        whole = (free == total) & ~in_use(request.resource, nodes)
        kept = _kept_whole(total)
        points = np.where(whole, np.where(kept, 0, SMALL_AND_WHOLE), IN_USE + count - free)
        if count > MAX_BREAKING:
            large = whole & kept & (total > 2 * count)
            points = np.where(large, 20 + sets.quality // 10, points)
        points[free == count] = EXACT
        points[free < count] = 0
        best: IntColumn = points.max(axis=0, initial=0)
        return best

    def _score_parts(self, request: DeviceRequest, nodes: Nodes) -> IntColumn:
        sets, devices, where = nodes.devices, nodes.columns.devices, nodes.where
        fitting, could = available(request, sets), suitable(request, sets)
        total, left = by_island(could, sets), by_island(could & sets.free, sets)
        untouched = sets.untouched
        opens = by_island(fitting & untouched, sets) > 0
        in_part = (left < total) | in_use(request.resource, nodes)
        fresh = np.where(in_part, FRESH_CARD, np.where(_kept_whole(total), 0, SMALL_AND_WHOLE)) * opens
        begun = unpacked(fitting & ~untouched, devices.slots)
        rests = devices.share[:, where] - _share_of(request, devices.usable[:, where])
        rest = np.where(begun, rests, _NOTHING_BEGUN).min(axis=0, initial=_NOTHING_BEGUN)
        points = np.where(rest == 0, EXACT, IN_USE - rest // 100)
        best: IntColumn = np.maximum(fresh.max(axis=0, initial=0), np.where(rest < _NOTHING_BEGUN, points, 0))
        return best

    events_to_register = (*DEVICE_EVENTS, TIER_EVENT)


def _kept_whole(total: Any) -> Any:
    """Returns which islands of `by_island` small pods should not break: those of four GPUs and more that are joined."""
    kept = total >= MIN_ISLAND
    kept[-1] = False
    return kept


def island_points(count: int, free: int, total: int, quality: int, *, whole: bool, joined: bool) -> int:
    """Returns the points of one island for a pod with `count` whole GPUs."""
    if free < count:
        return 0
    if free == count:
        return EXACT
    if not whole:
        return IN_USE - (free - count)
    if total < MIN_ISLAND or not joined:
        return SMALL_AND_WHOLE
    return 20 + quality // 10 if count > MAX_BREAKING and 2 * count < total else 0


def _share_of(request: DeviceRequest, usable: Any) -> Any:
    """Returns the share that a part takes of cards with so much usable memory (`part_of`), 0 of those too small."""
    return request.share or -(-request.memory * WHOLE // np.maximum(usable, 1)) * (usable > 0)


def _part_points(request: DeviceRequest, sets: Any, used: bool) -> int:
    """Returns the points of one row for a part of a GPU."""
    fitting, could, free = available(request, sets), suitable(request, sets), sets.free
    untouched, best = sets.untouched, 0
    for group in sets.islands or (could,):
        if fitting & untouched & group:
            total, left = (could & group).bit_count(), (could & free & group).bit_count()
            kept = total >= MIN_ISLAND and sets.islands
            best = max(best, FRESH_CARD if left < total or used else 0 if kept else SMALL_AND_WHOLE)
    begun = fitting & ~untouched
    if begun:
        usable = sets.usable if not request.share else ()
        rest = min(
            share - (request.share or part_of(0, request.memory, usable[slot])[0])
            for slot, share in enumerate(sets.shares)
            if begun >> slot & 1
        )
        best = max(best, EXACT if rest == 0 else IN_USE - rest // 100)
    return best
