"""Chooses the devices of a pod on its node.

Whole devices come from the tightest group that holds them all, of the closest level: an NVLink island, a PCIe switch, a
NUMA node. Groups that the pod fills up come first, then groups that are in use already, so that large ones stay whole
for large pods. A part of a device comes from the device that it fills up most.
"""

from collections.abc import Iterable

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.state.devices.layout import ISLAND, LEVELS, DeviceLayout


def pick_whole(layout: DeviceLayout, free: int, count: int, healthy: int, *, joined: bool) -> int | None:
    """Returns `count` of the free devices as a set; None if there are too few, or if they must be joined and are not.

    `healthy` are all devices that pods could have if nothing were taken: a group of which all are free is whole.
    """
    if free.bit_count() < count:
        return None
    within, found = free, False
    for level in LEVELS:
        part = _tightest(layout, layout.groups[level], within, count, healthy, linked=level == ISLAND or joined)
        if part is not None:
            within, found = part, found or level == ISLAND
        elif level == ISLAND and joined:
            return None
    if joined and not found:
        return None
    return _lowest(within, count) if layout.neighbours == () else _reachable(layout, within, count)


def pick_island(layout: DeviceLayout, free: int, count: int, healthy: int) -> int | None:
    """Returns free devices of one island of which any `count` are joined; None if no island has so many."""
    here = _tightest(layout, layout.groups[ISLAND], free, count, healthy, linked=True)
    return here if here is None or layout.neighbours == () else _reachable(layout, here, count)


def _tightest(
    layout: DeviceLayout, groups: Iterable[int], free: int, count: int, healthy: int, *, linked: bool
) -> int | None:
    """Returns the free devices of the best group that holds `count` of them; None if no group does. `linked`: they
    must be joined without others."""
    best: tuple[tuple[bool, bool, int], int] | None = None
    for group in groups:
        here = free & group
        left = layout.connected(here, group) if linked else here.bit_count()
        if left < count:
            continue
        order = (left != count, here == group & healthy, left)
        if best is None or order < best[0]:
            best = (order, here)
    return None if best is None else best[1]


def _lowest(devices: int, count: int) -> int:
    """Returns the devices in the first `count` slots of a set."""
    taken = 0
    for _ in range(count):
        low = devices & -devices
        taken |= low
        devices ^= low
    return taken


def _reachable(layout: DeviceLayout, devices: int, count: int) -> int:
    """Returns `count` devices of a set, each linked to one before it where that is possible."""
    start, best = devices & -devices, 0
    while start:
        taken = _spread(layout, devices, start, count)
        if taken.bit_count() == count:
            return taken
        best = max(best, taken, key=int.bit_count)
        rest = devices & ~((start << 1) - 1)
        start = rest & -rest
    return best | _lowest(devices & ~best, count - best.bit_count())


def _spread(layout: DeviceLayout, devices: int, start: int, count: int) -> int:
    taken = start
    while taken.bit_count() < count:
        reached = 0
        for slot in slots_of(taken):
            reached |= layout.neighbours[slot]
        border = reached & devices & ~taken
        if not border:
            break
        taken |= border & -border
    return taken


def pick_parts(layout: DeviceLayout, fitting: list[int], known: list[int], shares: list[int], number: int) -> list[int]:
    """Returns the slots of `number` of the fitting devices: those with least left first, and untouched ones of islands
    in use before those of whole islands. `known` are all slots that could serve the request, `shares` what is left of
    each device in thousandths."""
    begun = sorted([slot for slot in fitting if shares[slot] < WHOLE], key=shares.__getitem__)
    if len(begun) >= number:
        return begun[:number]
    touched = sum(1 << slot for slot in known if shares[slot] < WHOLE)
    spoiled = sum(group for group in layout.groups[ISLAND] if group & touched)
    fresh = [slot for slot in fitting if shares[slot] >= WHOLE]
    fresh.sort(key=lambda slot: not spoiled >> slot & 1)
    return (begun + fresh)[:number]


def slots_of(devices: int) -> list[int]:
    """Returns the slots of a set, in order."""
    found = []
    while devices:
        low = devices & -devices
        found.append(low.bit_length() - 1)
        devices ^= low
    return found
