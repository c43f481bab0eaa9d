"""GPUTopology: pods with several GPUs get GPUs that are joined.

Filter: `gpu.kubenexus.io/type` must be the type of the GPUs. With `gpu.kubenexus.io/prefer-nvlink: required` or
`gpu.kubenexus.io/min-nvlink-bandwidth` the pod's GPUs must be free in one NVLink island. Where pods of another
scheduler hold GPUs that are not known, an island counts only if it holds the pod whichever these are.

Score: 100 if the free GPUs of one island suffice, 70 for one PCIe switch, 60 for one NUMA node, 30 otherwise. Pods with
one GPU score 50 everywhere.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip
from kubenexus.plugins.devices.capacity import CountsDevices
from kubenexus.plugins.devices.hints import DEVICE_EVENTS
from kubenexus.plugins.devices.request import TOPOLOGY, DeviceRequest, available, needs_of, requests_of, suitable
from kubenexus.plugins.devices.shared_columns import shared_scores
from kubenexus.state.devices.layout import ISLAND, NUMA, SWITCH
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

WRONG_TYPE = Reason("node(s) didn't have enough GPUs of the requested type", Code.UNRESOLVABLE)
TYPE_TAKEN = Reason("node(s) didn't have enough free GPUs of the requested type")
IN_ISLAND, ON_SWITCH, ON_NUMA_NODE, APART = 100, 70, 60, 30


class GPUTopology(CountsDevices):
    name = TOPOLOGY
    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")
    depends = Depends.USAGE
    normalize = AS_IS
    supports_one_node = True
    signs_template = True
    default_score = 50  # of pods that need no more than one GPU, and of any type

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        signed = needs_of(pod)
        if signed is None:
            return None
        needs = signed.needs
        if not (signed.several or needs.type or needs.link or needs.bandwidth):
            return None
        return (needs.type, needs.link, needs.bandwidth)

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | None:
        """Skips pods whose GPUs may be of any type and need not be joined: no node is refused."""
        return None if any(request.words or request.joined for request in requests_of(pod)) else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        for request in requests_of(pod):
            if request.words:
                self._filter_type(request, nodes, verdict)
            if request.joined:
                self._filter_joined(request, nodes, verdict)

    def _filter_type(self, request: DeviceRequest, nodes: Nodes, verdict: NodeVerdict) -> None:
        sets = nodes.devices
        wrong = sets.count(suitable(request, sets)) < request.number
        taken = sets.count(available(request, sets)) - sets.unnamed_devices(request.resource) < request.number
        verdict.reject(wrong, WRONG_TYPE)
        verdict.reject(taken and not wrong if isinstance(nodes, OneNode) else taken & ~wrong, TYPE_TAKEN)

    def _filter_joined(self, request: DeviceRequest, nodes: Nodes, verdict: NodeVerdict) -> None:
        sets, count = nodes.devices, request.number
        never = _most(sets.in_groups(suitable(request, sets), ISLAND)) < count
        # A pod without names spoils an island if it holds all but `count - 1` of its free GPUs.
        spare = _spare(sets.in_groups(available(request, sets), ISLAND), count)
        taken = spare <= _positive(sets.unnamed_devices(request.resource))
        verdict.reject(never, Reason(f"node(s) didn't have {count} GPUs joined by NVLink", Code.UNRESOLVABLE))
        verdict.reject(
            taken and not never if isinstance(nodes, OneNode) else taken & ~never,
            Reason(f"node(s) didn't have {count} free GPUs joined by NVLink"),
        )

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        several = [request for request in requests_of(pod) if request.number > 1]
        if not several:
            return self.default_score
        scores = [self._scores(request, nodes) for request in several]
        least: IntColumn | int = min(scores) if nodes.single else np.minimum.reduce(scores)
        return least

    def _scores(self, request: DeviceRequest, nodes: Nodes) -> Any:
        if nodes.single:
            return self._closeness(request, nodes)
        closeness = partial(self._closeness, request)
        return shared_scores(request, nodes, self.name, closeness, closeness)

    def _closeness(self, request: DeviceRequest, nodes: Nodes) -> Any:
        sets, count = nodes.devices, request.number
        if isinstance(nodes, OneNode):
            free = available(request, sets)
            for level, points in ((ISLAND, IN_ISLAND), (SWITCH, ON_SWITCH), (NUMA, ON_NUMA_NODE)):
                if _most(sets.in_groups(free, level)) >= count:
                    return points
            return APART
        score = np.full(nodes.width, APART, np.int64)
        for level, points in ((NUMA, ON_NUMA_NODE), (SWITCH, ON_SWITCH), (ISLAND, IN_ISLAND)):
            score[_most(sets.in_groups(available(request, sets), level)) >= count] = points
        return score

    events_to_register = DEVICE_EVENTS


def _most(counts: Any) -> Any:
    return max(counts, default=0) if isinstance(counts, list) else counts.max(axis=0, initial=0)


def _spare(counts: Any, count: int) -> Any:
    """Returns how many free GPUs can be lost before no group holds `count` any more."""
    if isinstance(counts, list):
        return sum(max(each - count + 1, 0) for each in counts)
    return np.maximum(counts - (count - 1), 0).sum(axis=0)


def _positive(number: Any) -> Any:
    return max(number, 0) if isinstance(number, int) else np.maximum(number, 0)
