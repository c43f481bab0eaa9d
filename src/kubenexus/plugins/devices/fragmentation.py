"""ResourceFragmentationScore: small pods stay off whole islands of GPUs, and pods without GPUs off GPU nodes.

An island is a set of GPUs joined by NVLink; on a node without any, all its GPUs are one. Score of a pod with whole
GPUs, for the best island of the node:

    100               the pod takes exactly what is free
    90 - what is left the island is in use already
    40                the island is whole and has fewer than four GPUs
    20 + quality / 10 the island is whole, and the pod takes three or more, but less than half of it
    0                 the pod would break a whole island, or needs several islands

A part of a GPU scores 100 where it fills a GPU up, 90 and less on a GPU that is shared already, 50 on another GPU of an
island in use, 0 if it breaks a whole island. Pods without GPUs score 100 on nodes without GPUs and 0 on others.

Filter: a node with the label `tenant.kubenexus.io/reserved-tier` takes GPU pods of tenants of that tier and above only.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.keys import gpu, tenant
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason
from kubenexus.plugins.devices.hints import DEVICE_EVENTS
from kubenexus.plugins.devices.request import DeviceRequest, available, needs_of, requests_of, suitable
from kubenexus.plugins.devices.tenant_tier import RANKS, tier_of
from kubenexus.state.devices.layout import ISLAND
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

RESERVED: Final = Reason("node(s) were reserved for tenants of a higher tier", Code.UNRESOLVABLE)
EXACT, IN_USE, SMALL_AND_WHOLE, FRESH_CARD = 100, 90, 40, 50
MIN_ISLAND: Final = 4  # GPUs of an island that is kept whole
MAX_BREAKING: Final = 2  # GPUs of a pod that gets no points for a whole island
_NO_GPUS: Final = 0  # signed for pods without GPUs


class ResourceFragmentationScore:
    name = "ResourceFragmentationScore"
    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")
    depends = Depends.USAGE
    normalize = AS_IS
    supports_one_node = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        return _NO_GPUS if needs_of(pod) is None else RANKS[tier_of(pod, nodes)]

    def ignores_usage(self, signed: Any) -> bool:
        """Whether the results for a class depend on the nodes alone: those for pods without GPUs do."""
        return bool(signed == _NO_GPUS)

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        rank = pod.signed.get(self.name, _NO_GPUS)
        if rank == _NO_GPUS:
            return
        if isinstance(nodes, OneNode):
            verdict.reject(_reserved_rank(nodes.labels.get(tenant.RESERVED_TIER.key, "")) > rank, RESERVED)
        else:
            verdict.reject(nodes.cached_until_node_change("reserved tiers", _reserved_ranks) > rank, RESERVED)

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Leaves `capacity` as it is: a reserved node refuses each member alike."""

    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        return {}

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        requests = requests_of(pod)
        if isinstance(nodes, OneNode):
            return self._score_row(requests, nodes)
        if not requests:
            without: IntColumn = EXACT * (nodes.devices.offered("") == 0)
            return without
        request = requests[0]
        return self._score_parts(request, nodes) if request.is_part else self._score_whole(request, nodes)

    def _score_row(self, requests: tuple[DeviceRequest, ...], node: OneNode) -> int:
        sets = node.devices
        if not requests:
            return 0 if sets.offered("") else EXACT
        request = requests[0]
        if request.is_part:
            return int(self._score_parts(request, node.as_column())[0])
        could, free = suitable(request, sets), available(request, sets)
        totals, lefts = sets.group_sizes(could, ISLAND), sets.group_sizes(free, ISLAND)
        if not totals:
            totals, lefts = [could.bit_count()], [free.bit_count()]
        used = _label_spoils(node.labels.get(gpu.PRISTINE.key, "")) or sets.sliced or sets.unnamed(request.resource) > 0
        return max(
            island_points(request.number, left, total, left == total and not used, sets.quality)
            for left, total in zip(lefts, totals, strict=True)
        )

    def _score_whole(self, request: DeviceRequest, nodes: Nodes) -> IntColumn:
        sets, count = nodes.devices, request.number
        total, free = _islands(suitable(request, sets), sets), _islands(available(request, sets), sets)
        whole = (free == total) & ~_in_use(request, nodes)
        points = np.where(whole, 0, IN_USE - (free - count))
        points[whole & (total < MIN_ISLAND)] = SMALL_AND_WHOLE
        points = np.where(
            whole & (total >= MIN_ISLAND) & (count > MAX_BREAKING) & (2 * count < total),
            20 + sets.quality // 10,
            points,
        )
        points[free == count] = EXACT
        points[free < count] = 0
        best: IntColumn = points.max(axis=0, initial=0)
        return best

    def _score_parts(self, request: DeviceRequest, nodes: Nodes) -> IntColumn:
        sets, devices, where = nodes.devices, nodes.columns.devices, nodes.where
        fitting, could = available(request, sets), suitable(request, sets)
        untouched = fitting & sets.free
        used = _in_use(request, nodes)
        total, left = _islands(could, sets), _islands(could & sets.free, sets)
        opens = _islands(untouched, sets) > 0
        fresh = np.where(opens & ((left < total) | used), FRESH_CARD, 0)
        fresh = np.maximum(fresh, np.where(opens & (left == total) & (total < MIN_ISLAND), SMALL_AND_WHOLE, 0))
        best: IntColumn = fresh.max(axis=0, initial=0)
        for slot in range(devices.slots):
            begun = (fitting & ~sets.free) >> np.uint64(slot) & np.uint64(1) != 0
            rest = devices.share[slot, where] - request.share
            best = np.maximum(best, np.where(begun, np.where(rest == 0, EXACT, IN_USE - rest // 100), 0))
        return best

    events_to_register = DEVICE_EVENTS


def island_points(count: int, free: int, total: int, whole: bool, quality: int) -> int:
    """Returns the points of one island for a pod with `count` whole GPUs."""
    if free < count:
        return 0
    if free == count:
        return EXACT
    if not whole:
        return IN_USE - (free - count)
    if total < MIN_ISLAND:
        return SMALL_AND_WHOLE
    return 20 + quality // 10 if count > MAX_BREAKING and 2 * count < total else 0


def _islands(devices: Any, sets: Any) -> Any:
    """Returns how many devices of a set are in each island, and in a last row all of a node without islands."""
    counts = sets.group_sizes(devices, ISLAND)
    alone = sets.count(devices) * (sets.group_sizes(_EVERY, ISLAND).sum(axis=0) == 0)
    return np.concatenate([counts, alone[None, :]])


_EVERY: Final = np.uint64(2**64 - 1)


def _in_use(request: DeviceRequest, nodes: Nodes) -> Any:
    """Returns the rows on which no island counts as whole: pods without names hold some device, or the label says so.

    The label `is-pristine` may only spoil an island. It goes stale, so `true` is not believed.
    """
    sets = nodes.devices
    spoiled = nodes.cached_until_node_change("islands in use", _spoiled) | sets.sliced
    return spoiled | (sets.unnamed(request.resource) > 0) if request.resource else spoiled


def _spoiled(nodes: Nodes) -> Any:
    codes, column = nodes.label(gpu.PRISTINE.key)
    return np.array([_label_spoils(value) for value in column.values.names], np.bool_)[codes]


def _label_spoils(value: str) -> bool:
    return value.strip().lower() == "false"


def _reserved_ranks(nodes: Nodes) -> Any:
    codes, column = nodes.label(tenant.RESERVED_TIER.key)
    return np.array([_reserved_rank(value) for value in column.values.names], np.int64)[codes]


def _reserved_rank(value: str) -> int:
    return RANKS.get(value.strip().lower(), 0)
