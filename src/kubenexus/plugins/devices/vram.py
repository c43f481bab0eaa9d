"""VRAMScheduler: GPUs with enough memory, and no more than needed.

A pod states with `scheduling.kubenexus.io/vram-request` what it needs on each of its GPUs, or with
`vram-request-total` on all together. Filter: so many free GPUs must have that memory. Score: by the part of a GPU's
memory that the pod needs, from a table for the tier of its tenant: a gold tenant gets 100 points only for a GPU that it
fills. A large GPU that is well filled gets 10 more, and GPUs that are together get up to 50 more. Pods that state
nothing score 60 everywhere.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason
from kubenexus.plugins.devices.capacity import CountsDevices
from kubenexus.plugins.devices.hints import DEVICE_EVENTS
from kubenexus.plugins.devices.request import VRAM, DeviceRequest, available, needs_of, requests_of, suitable
from kubenexus.plugins.devices.tenant_tier import tier_of
from kubenexus.state.devices.layout import ISLAND, NUMA, SWITCH
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

NOT_KNOWN: Final = Reason("node(s) didn't report the memory of their GPUs", Code.UNRESOLVABLE)
TOO_SMALL: Final = Reason("node(s) didn't have enough GPUs with the requested memory", Code.UNRESOLVABLE)
TAKEN: Final = Reason("node(s) didn't have enough free GPUs with the requested memory")

# By tier: the percent of a GPU's memory that a pod has to need for these points.
POINTS: Final = (100, 80, 60, 30)
THRESHOLDS: Final = {"gold": (98, 85, 70, 50), "silver": (95, 70, 50, 30), "bronze": (90, 60, 40, 20)}
LARGE: Final = 80 << 30  # bytes; a GPU of this size earns LARGE_BONUS if the pod needs FILLED percent of it
FILLED, LARGE_BONUS = 70, 10
TOGETHER: Final = ((NUMA, 15), (ISLAND, 25), (SWITCH, 10))


class VRAMScheduler(CountsDevices):
    name = VRAM
    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")
    depends = Depends.USAGE
    normalize = AS_IS
    supports_one_node = True
    signs_template = True
    default_score = 60

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        signed = needs_of(pod)
        if signed is None:
            return None
        needs = signed.needs
        if not (needs.card_memory or needs.card_memory_total):
            return None
        return (needs.card_memory, needs.card_memory_total, tier_of(pod, nodes))

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        sets, one = nodes.devices, isinstance(nodes, OneNode)
        for request in requests_of(pod):
            known = sets.count(sets.offered(request.resource) & sets.with_card_memory(0)) > 0
            large = sets.count(suitable(request, sets)) >= request.number
            free = sets.count(available(request, sets)) - sets.unnamed_devices(request.resource) >= request.number
            verdict.reject(not known if one else ~known, NOT_KNOWN)
            verdict.reject(known and not large if one else known & ~large, TOO_SMALL)
            verdict.reject(large and not free if one else large & ~free, TAKEN)

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        requests = requests_of(pod)
        if not requests:
            return self.default_score
        request, thresholds = requests[0], THRESHOLDS[pod.signed[VRAM][2]]
        if isinstance(nodes, OneNode):
            fit = fit_points(request.card_memory, _smallest(request, nodes), thresholds)
            return min(fit + self._together(request, nodes), 100) if fit else 0
        smallest = nodes.cached_until_node_change(("smallest card", request), lambda all_: _smallest(request, all_))
        sizes, codes = np.unique(smallest, return_inverse=True)
        fits = np.array([fit_points(request.card_memory, size, thresholds) for size in sizes.tolist()], np.int64)[codes]
        if request.number == 1:
            return fits
        return np.where(fits > 0, np.minimum(fits + self._together(request, nodes), 100), 0)

    @staticmethod
    def _together(request: DeviceRequest, nodes: Nodes) -> Any:
        """Returns the points for free GPUs that are together: on one NUMA node, in one island, on one switch."""
        if request.number == 1:
            return 0
        sets = nodes.devices
        free = available(request, sets)
        total: Any = 0
        for level, points in TOGETHER:
            counts = sets.in_groups(free, level)
            most = max(counts, default=0) if isinstance(counts, list) else counts.max(axis=0, initial=0)
            total = total + points * (most >= request.number)
        return total

    events_to_register = DEVICE_EVENTS


def _smallest(request: DeviceRequest, nodes: Nodes) -> Any:
    """Returns the memory of the smallest GPU that could serve, in use or not."""
    return nodes.devices.smallest_card(suitable(request, nodes.devices))


def fit_points(need: int, card: int, thresholds: tuple[int, ...]) -> int:
    """Returns the points for a GPU with `card` bytes of memory, of which the pod needs `need`; 0 if it is too small."""
    if card < need or not need:
        return 0
    for points, threshold in zip(POINTS, thresholds, strict=True):
        if 100 * need >= threshold * card:
            return min(points + (LARGE_BONUS if card >= LARGE and 100 * need >= FILLED * card else 0), 100)
    return 0
