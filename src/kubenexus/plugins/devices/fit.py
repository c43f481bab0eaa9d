"""DeviceFit: rejects nodes without enough free devices, and names the devices that a pod gets.

A pod asks for devices by number (`nvidia.com/gpu: 4`), or for a part of a GPU by annotation (`gpu-fraction`,
`gpu-memory`), which only nodes give that share their GPUs. NodeResourcesFit counts the numbers. This plugin counts the
cards behind them: parts that other pods hold, cards that are unhealthy, and pods that another scheduler placed.

The devices that it names travel with the bind. Where the kubelet's device plugin picks the card, they are a plan; where
the pod takes a part, they are what it gets (docs/devices.md).
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import WHOLE, DeviceShare
from kubenexus.api.keys import gpu
from kubenexus.framework.extension_points import Depends
from kubenexus.framework.job import NO_ASSIGNMENT, Assignment
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, Verdict
from kubenexus.plugins.devices.capacity import CountsDevices, unnamed_cards
from kubenexus.plugins.devices.hints import DEVICE_EVENTS
from kubenexus.plugins.devices.pick import pick_parts, pick_whole, slots_of
from kubenexus.plugins.devices.request import FIT, DeviceRequest, available, needs_of, requests_of, suitable
from kubenexus.plugins.devices.shared_columns import units
from kubenexus.state.devices.columns import RowDevices, usable_memory
from kubenexus.state.devices.layout import DeviceLayout
from kubenexus.state.devices.view import OneNodeDevices, part_of
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

NOT_SHARED: Final = Reason("node(s) didn't share their GPUs", Code.UNRESOLVABLE)
TOO_SMALL: Final = Reason("node(s) didn't have a GPU with so much memory to share", Code.UNRESOLVABLE)
NO_PART: Final = Reason("node(s) didn't have enough of a shared GPU free")
NO_DEVICE: Final = Reason("node(s) didn't have enough free devices")
NO_SET: Final = "node(s) didn't have a set of free devices that fits together"
_MAX_SETS: Final = 4096  # choices of devices that are kept for gangs: members on equal nodes get the same


class _Choice(NamedTuple):
    """What members get on equal nodes. It holds what it is found by, so that no other object gets their identity."""

    layout: DeviceLayout
    requests: tuple[DeviceRequest, ...]
    assignments: list[Assignment]


class DeviceFit(CountsDevices):
    name = FIT
    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")
    depends = Depends.USAGE
    supports_one_node = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._sets: dict[Any, _Choice] = {}

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        needs = needs_of(pod)
        if needs is None:
            return None
        part = (needs.share, needs.share_memory)
        return (*part, needs.part_problem) if needs.part_problem else part if any(part) else ()

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Verdict | None:
        problem = (pod.signed.get(FIT) or (0, 0))[2:]
        return Verdict(Code.UNRESOLVABLE, tuple(problem)) if problem else None

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        for request in requests_of(pod):
            if request.is_part:
                self._filter_part(request, nodes.devices, verdict)
            else:
                self._filter_whole(request, nodes, verdict)

    def _filter_whole(self, request: DeviceRequest, nodes: Nodes, verdict: NodeVerdict) -> None:
        """Rejects rows where the kubelet has the number free, but not on cards that are. Under time slicing a pod may
        get several replicas of one card, so the number is all that counts."""
        if isinstance(nodes, OneNode):
            verdict.reject(nodes.devices.units(request.resource) < request.number, NO_DEVICE)
        else:
            verdict.reject(units(request.resource, nodes) < request.number, NO_DEVICE)

    def _filter_part(self, request: DeviceRequest, sets: Any, verdict: NodeVerdict) -> None:
        one = isinstance(sets, OneNodeDevices)
        shared = sets.shared
        large = sets.count(sets.offered(request.resource) & sets.with_usable(request.memory)) >= request.number
        fits = sets.count(available(request, sets)) - unnamed_cards(request, sets) >= request.number
        if one:
            verdict.reject(not shared, NOT_SHARED)
            verdict.reject(shared and not large, TOO_SMALL)
            verdict.reject(shared and large and not fits, NO_PART)
        else:
            verdict.reject(~shared, NOT_SHARED)
            verdict.reject(shared & ~large, TOO_SMALL)
            verdict.reject(shared & large & ~fits, NO_PART)

    # --- names ----------------------------------------------------------------------------------------------------

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        found = self.assign_members(pod, row, nodes, 1)
        return found if isinstance(found, Verdict) else found[0]

    def assign_members(self, pod: PodClass, row: int, nodes: Nodes, members: int) -> list[Assignment] | Verdict:
        """Returns the devices of several members on one row, none of them twice."""
        columns, requests = nodes.columns.devices, requests_of(pod)
        here = columns.of_row(row)
        if not here.node.devices:
            return [NO_ASSIGNMENT] * members
        sets = OneNodeDevices(nodes.columns, row)
        if columns.replicas.item(row) > 1 or any([request.is_part for request in requests]):  # noqa: C419
            return _in_turn(requests, here, columns, row, members, sets)
        free = tuple([available(request, sets) for request in requests])
        could = tuple([suitable(request, sets) for request in requests])
        key = (id(here.layout), id(requests), free, could, members)
        known = self._sets.get(key)
        if known is None:
            found = _whole(requests, here, free, could, members)
            if isinstance(found, Verdict):
                return found
            if len(self._sets) >= _MAX_SETS:
                self._sets.clear()
            known = self._sets[key] = _Choice(here.layout, requests, found)
        return known.assignments

    events_to_register = DEVICE_EVENTS


def _whole(
    requests: tuple[DeviceRequest, ...],
    here: RowDevices,
    free: tuple[int, ...],
    could: tuple[int, ...],
    members: int,
) -> list[Assignment] | Verdict:
    """Returns whole devices for each member in turn. A pod on a node whose devices are not known for a resource gets
    none by name there."""
    left, found = list(free), list[Assignment]()
    for _ in range(members):
        shares: tuple[DeviceShare, ...] = ()
        for i, request in enumerate(requests):
            if not dict(here.layout.resources).get(request.resource):
                continue
            taken = pick_whole(here.layout, left[i], request.number, could[i], joined=request.joined)
            if taken is None:
                return Verdict(Code.UNSCHEDULABLE, (NO_SET,))
            left = [each & ~taken for each in left]
            shares += tuple([DeviceShare(here.layout.names[slot]) for slot in slots_of(taken)])
        found.append(Assignment(device_shares=shares))
    return found


def _in_turn(
    requests: tuple[DeviceRequest, ...],
    here: RowDevices,
    columns: Any,
    row: int,
    members: int,
    sets: OneNodeDevices,
) -> list[Assignment] | Verdict:
    """Returns parts of devices for each member in turn; under time slicing a unit is a part as well.

    Time-sliced units go to the cards with most left, as the device plugin gives them out.
    """
    shares, memory = columns.share[:, row].tolist(), columns.memory[:, row].tolist()
    found: list[Assignment] = []
    for _ in range(members):
        taken: tuple[DeviceShare, ...] = ()
        visible: list[str] = []
        for request in requests:
            slots = _slots(request, here, shares, memory, suitable(request, sets))
            if slots is None:
                if request.is_part:
                    return Verdict(Code.UNSCHEDULABLE, (NO_PART.text,))
                continue  # several replicas of one card: a number without names
            for slot in slots:
                share, bytes_ = _taken(request, here, slot)
                shares[slot] -= share
                memory[slot] -= bytes_
                device = here.node.devices[slot]
                taken += (DeviceShare(device.name, share, bytes_),)
                if request.is_part:
                    visible.append(device.uuid or str(slot))
        notes = ((gpu.VISIBLE_DEVICES.key, ",".join(visible)),) if visible else ()
        found.append(Assignment(device_shares=taken, annotations=notes))
    return found


def _slots(
    request: DeviceRequest, here: RowDevices, shares: list[int], memory: list[int], could: int
) -> list[int] | None:
    fitting = 0
    for slot in slots_of(could):
        share, bytes_ = _taken(request, here, slot)
        if shares[slot] >= share and memory[slot] >= bytes_:
            fitting |= 1 << slot
    if request.is_part:
        taken = pick_parts(here.layout, fitting, shares, request.number, could)
        return None if taken is None else slots_of(taken)
    if fitting.bit_count() < request.number:
        return None
    return sorted(slots_of(fitting), key=lambda slot: (-shares[slot], slot))[: request.number]


def _taken(request: DeviceRequest, here: RowDevices, slot: int) -> tuple[int, int]:
    """Returns the share and the memory that the request takes of a device."""
    device = here.node.devices[slot]
    if request.is_part:
        return part_of(request.share, request.memory, usable_memory(device))
    return WHOLE // device.replicas, 0
