"""What a decision means for devices, as values for metrics: how well placed pods fit, and why others were refused.

Members of a gang on equal nodes share one outcome: a thousand of them take about 2 ms.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.devices.pod_needs import REQUIRED, WHOLE_DEVICES, DeviceNeeds, device_needs, stated_needs
from kubenexus.framework.decision import Decision, PodPlacement
from kubenexus.framework.job import Job
from kubenexus.plugins.devices import fit, fragmentation, naming, topology, vram
from kubenexus.plugins.devices.fragmentation import MAX_BREAKING, MIN_ISLAND, island_points
from kubenexus.state.devices.columns import RowDevices
from kubenexus.state.devices.layout import ISLAND, NUMA, QUALITY, SWITCH
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import OneNode

# How close the cards of a pod are to each other, with the points of GPUTopology.
CLOSENESS: Final = ((ISLAND, "NVLink", 100), (SWITCH, "PCIe", 70), (NUMA, "NUMA", 60))
APART: Final = ("none", 30)
INSUFFICIENT_GPUS, INSUFFICIENT_VRAM, NO_GPU_INFO = "insufficient_gpus", "insufficient_vram", "no_gpu_info"
NOT_JOINED, NO_SHARED_GPU, WRONG_TYPE = "not_joined", "no_shared_gpu", "wrong_type"
RESERVED_TIER, GANG = "reserved_tier", "gang"
_REASONS: Final = {
    vram.NOT_KNOWN.text: NO_GPU_INFO,
    vram.TOO_SMALL.text: INSUFFICIENT_VRAM,
    vram.TAKEN.text: INSUFFICIENT_VRAM,
    topology.WRONG_TYPE.text: WRONG_TYPE,
    topology.TYPE_TAKEN.text: WRONG_TYPE,
    fit.NOT_SHARED.text: NO_SHARED_GPU,
    fit.TOO_SMALL.text: NO_SHARED_GPU,
    naming.NO_PART.text: NO_SHARED_GPU,
    fit.NO_DEVICE.text: INSUFFICIENT_GPUS,
    fragmentation.RESERVED.text: RESERVED_TIER,
}
_INSUFFICIENT: Final = "Insufficient "
_JOINED: Final = "joined by NVLink"


class DeviceOutcome(msgspec.Struct, frozen=True, gc=False):
    """What a placed pod got. It has no names, so that members alike have equal ones.

    number            cards of the pod
    is_part           it takes parts of them
    level, closeness  how close several cards are, with GPUTopology's points; "" and 0 for one card
    link_required     its cards had to be joined
    memory            bytes that it asked for on each card; 0 if it did not
    card_memory       bytes of its smallest card; 0 if not known
    memory_source     the source of that; "" if not known
    sources           all sources of facts about its cards
    island            cards of the island that it takes from, all GPUs of the node if that has no islands
    link              what joins the island
    score             the points of ResourceFragmentationScore for the island; -1 for a part
    fills, breaks     it takes all that was free of an island; it takes less than half of one that was whole
    was_whole         no card of the island was in use before
    """

    number: int
    is_part: bool
    level: str
    closeness: int
    link_required: bool
    memory: int
    card_memory: int
    memory_source: str
    sources: tuple[str, ...]
    island: int
    link: str
    score: int
    fills: bool
    breaks: bool
    was_whole: bool


class DeviceResults(msgspec.Struct, frozen=True, gc=False):
    """The outcomes of a decision with their numbers. `whole_islands`: before it, some island of four or more GPUs was
    whole. `workload` is the kind of work of the job."""

    outcomes: tuple[tuple[DeviceOutcome, int], ...] = ()
    whole_islands: bool = False
    workload: str = ""


NO_RESULTS: Final = DeviceResults()


def device_results(decision: Decision, job: Job, columns: NodeColumns) -> DeviceResults:
    """Returns what placed pods get of devices. Called before the decision is committed."""
    taking = [placement for placement in decision.placements if placement.assignment.device_shares]
    if not taking:
        return NO_RESULTS
    outcomes = Counter(_Outcomes(columns).of(taking, {pod.key: pod for pod in job.pods}))
    small = any(outcome.number <= MAX_BREAKING and not outcome.breaks for outcome in outcomes)
    return DeviceResults(tuple(outcomes.items()), small and _any_whole_island(columns), decision.workload)


def _any_whole_island(columns: NodeColumns) -> bool:
    devices, size = columns.devices, columns.size
    groups = devices.groups[ISLAND][:, :size]
    whole = (groups & devices.free[:size]) == groups
    return bool((whole & (np.bitwise_count(groups) >= MIN_ISLAND)).any())


class _Outcomes:
    """Works out outcomes one after the other: each sees what those before it took."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self._rows: dict[str, tuple[int, RowDevices, bool]] = {}
        self._left: dict[str, int] = {}
        self._known: dict[Any, tuple[DeviceOutcome, int]] = {}
        self._needs: dict[Any, DeviceNeeds] = {(): WHOLE_DEVICES}

    def of(self, placements: Iterable[PodPlacement], pods: dict[str, Pod]) -> Iterable[DeviceOutcome]:
        for placement in placements:
            node, shares = placement.node, placement.assignment.device_shares
            row, here, spoiled = self._rows.get(node) or self._read(node, placement)
            stated, left = stated_needs(pods[placement.pod]), self._left[node]
            key = (id(here.layout), shares, left, spoiled, stated, id(here.node.devices) if stated else 0)
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = self._outcome(placement, row, here, left, self._need(pods[placement.pod]))
            self._left[node] = left & ~known[1]
            yield known[0]

    def _read(self, node: str, placement: PodPlacement) -> tuple[int, RowDevices, bool]:
        row = self._columns.row_of[node]
        here, sets = self._columns.devices.of_row(row), OneNode(self._columns, row).devices
        spoiled = any(sets.unnamed(name) > 0 for name, _ in placement.footprint.amounts if is_device_resource(name))
        self._left[node] = self._columns.devices.free.item(row)
        found = self._rows[node] = (row, here, spoiled)
        return found

    def _need(self, pod: Pod) -> DeviceNeeds:
        stated = stated_needs(pod)
        known = self._needs.get(stated)
        if known is None:
            known = self._needs[stated] = device_needs(pod) or WHOLE_DEVICES
        return known

    def _outcome(
        self, placement: PodPlacement, row: int, here: RowDevices, left: int, need: DeviceNeeds
    ) -> tuple[DeviceOutcome, int]:
        shares = placement.assignment.device_shares
        slots = [here.slots[each.device] for each in shares if each.device in here.slots]
        taken = sum(1 << slot for slot in slots)
        devices = [here.node.devices[slot] for slot in slots]
        layout, healthy = here.layout, self._columns.devices.healthy.item(row)
        groups = layout.groups[ISLAND]
        island = next((group for group in groups if group & taken), 0 if groups else layout.gpus) & healthy
        free, is_part = left & island, any(each.share < WHOLE for each in shares)
        whole = free == island and not self._rows[placement.node][2]
        number, size = len(slots), island.bit_count()
        level, closeness = _closeness(layout.groups, taken) if number > 1 else ("", 0)
        smallest = min(devices, key=lambda device: device.memory, default=None)
        quality = max((QUALITY[device.link] for device in devices), default=0)
        points = island_points(number, free.bit_count(), size, quality, whole=whole, joined=bool(groups))
        outcome = DeviceOutcome(
            number=number,
            is_part=is_part,
            level=level,
            closeness=closeness,
            link_required=number > 1 and (need.link == REQUIRED or need.bandwidth > 0),
            memory=need.card_memory or -(-need.card_memory_total // max(number, 1)),
            card_memory=max(0, smallest.memory) if smallest is not None else 0,
            memory_source=str(smallest.sources.get("memory", "")) if smallest is not None else "",
            sources=tuple(sorted({str(source) for device in devices for source in device.sources.values()})),
            island=size,
            link=str(devices[0].link) if devices else "",
            score=-1 if is_part else points,
            fills=not is_part and bool(island) and taken & island == free,
            breaks=whole and size >= MIN_ISLAND and 2 * number < size,
            was_whole=whole,
        )
        return outcome, taken


def _closeness(groups: tuple[tuple[int, ...], ...], taken: int) -> tuple[str, int]:
    for level, name, points in CLOSENESS:
        if any(taken & ~group == 0 for group in groups[level]):
            return name, points
    return APART


def device_refusal(decision: Decision) -> str:
    """Returns the reason for which a job with devices was refused, of most nodes; "" if devices are not among the
    reasons."""
    gang = decision.gang_diagnosis
    if gang is not None:
        lacking = any(is_device_resource(shortage.resource) for shortage in gang.lacking)
        return GANG if lacking or gang.node_need else ""
    counts: Counter[str] = Counter()
    for text, nodes in decision.diagnosis.counts:
        reason = _REASONS.get(text, "")
        if not reason and text.endswith(_JOINED):
            reason = NOT_JOINED
        if not reason and text.startswith(_INSUFFICIENT) and is_device_resource(text.removeprefix(_INSUFFICIENT)):
            reason = INSUFFICIENT_GPUS
        if reason:
            counts[reason] += nodes
    return max(counts, key=lambda reason: (counts[reason], reason), default="")
