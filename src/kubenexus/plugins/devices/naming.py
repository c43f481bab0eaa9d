"""Names the devices of members on one row: whole ones, and parts of shared ones."""

from typing import Final

from kubenexus.api.devices.device_share import WHOLE, DeviceShare
from kubenexus.api.keys import gpu
from kubenexus.framework.job import Assignment
from kubenexus.framework.verdict import Code, Reason, Verdict
from kubenexus.plugins.devices.pick import pick_island, pick_parts, pick_whole, slots_of
from kubenexus.plugins.devices.request import DeviceRequest, suitable
from kubenexus.state.devices.columns import RowDevices, unit_share
from kubenexus.state.devices.layout import DeviceLayout
from kubenexus.state.devices.one_node import OneNodeDevices
from kubenexus.state.devices.view import part_of

NO_SET: Final = Verdict(Code.UNSCHEDULABLE, ("node(s) didn't have a set of free devices that fits together",))
NO_PART: Final = Reason("node(s) didn't have enough of a shared GPU free")


def name_whole(
    requests: tuple[DeviceRequest, ...],
    layout: DeviceLayout,
    free: tuple[int, ...],
    could: tuple[int, ...],
    members: int,
    *,
    more: tuple[bool, ...] | None,
) -> list[Assignment] | Verdict:
    """Returns whole devices for each member in turn. A pod on a node whose devices are not known for a resource gets
    none by name there, nor does one for which the known ones do not suffice where the kubelet offers `more`."""
    offered = dict(layout.resources)
    left, found = list(free), list[Assignment]()
    for _ in range(members):
        shares: tuple[DeviceShare, ...] = ()
        for i, request in enumerate(requests):
            if request.resource not in offered:
                continue
            taken = pick_whole(layout, left[i], request.number, could[i], joined=request.joined)
            if taken is None and more is not None and more[i]:
                continue
            if taken is None:
                return NO_SET
            left = [each & ~taken for each in left]
            shares += tuple([DeviceShare(layout.names[slot]) for slot in slots_of(taken)])
        found.append(Assignment(device_shares=shares))
    return found


def name_parts(
    requests: tuple[DeviceRequest, ...], here: RowDevices, sets: OneNodeDevices, members: int
) -> list[Assignment] | Verdict:
    """Returns parts of devices for each member in turn; under time slicing a unit is a part as well.

    Time-sliced units go to the cards with most left, as the device plugin gives them out.
    """
    shares, memory, found = list(sets.shares), list(sets.memory), list[Assignment]()
    amounts = [_amounts(request, here, sets) for request in requests]
    for _ in range(members):
        taken: tuple[DeviceShare, ...] = ()
        visible: list[str] = []
        for request, takes in zip(requests, amounts, strict=True):
            slots = _slots(request, here.layout, takes, shares, memory)
            if slots is None and (request.is_part or request.joined):
                return Verdict(NO_PART.code, (NO_PART.text,)) if request.is_part else NO_SET
            for slot in slots or ():  # none: several replicas of one card, a number without names
                share, bytes_ = takes[slot]
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
    request: DeviceRequest,
    layout: DeviceLayout,
    takes: dict[int, tuple[int, int]],
    shares: list[int],
    memory: list[int],
) -> list[int] | None:
    fitting = [slot for slot, (share, bytes_) in takes.items() if shares[slot] >= share and memory[slot] >= bytes_]
    if request.joined:
        island = pick_island(layout, _set_of(fitting), request.number, _set_of(list(takes)))
        fitting = [] if island is None else slots_of(island)
    if len(fitting) < request.number:
        return None
    if request.is_part:
        return pick_parts(layout, fitting, list(takes), shares, request.number)
    return sorted(fitting, key=lambda slot: (-shares[slot], slot))[: request.number]


def _amounts(request: DeviceRequest, here: RowDevices, sets: OneNodeDevices) -> dict[int, tuple[int, int]]:
    """Returns, by slot, the share and the memory that the request takes of each device that could serve it."""
    slots = slots_of(suitable(request, sets))
    if not request.is_part:
        return {slot: (unit_share(here.node.devices[slot]), 0) for slot in slots}
    usable, share, memory = sets.usable, request.share, request.memory
    if share and not memory:
        return {slot: (share, share * usable[slot] // WHOLE) for slot in slots}
    return {slot: part_of(share, memory, usable[slot]) for slot in slots}


def _set_of(slots: list[int]) -> int:
    return sum(1 << slot for slot in slots)
