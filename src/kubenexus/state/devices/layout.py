"""How the devices of a node are named and joined. Nodes with equal machines share one `DeviceLayout`.

A set of devices is an integer whose bit s is the device in slot s: what is free, what belongs to one island, what a pod
takes. A question about a set is then one operation on a word, for one node or for a column of them.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kubenexus.api.devices.device import UNKNOWN, Device, DeviceKind, Link

JOINED = frozenset({Link.NVSWITCH, Link.NVLINK, Link.XGMI})
# How well the devices of an island work together, in percent.
QUALITY = {Link.NVSWITCH: 100, Link.NVLINK: 80, Link.XGMI: 80, Link.PCIE: 50, Link.UNKNOWN: 30}
# Ways in which devices are close to each other, the closest first.
LEVELS = ISLAND, SWITCH, NUMA = range(3)


class DeviceLayout(NamedTuple):
    """`groups` has, for each level, the sets of devices that are together there, each with two devices or more.

    `neighbours` has the direct links of each device where an island is not fully joined, else it is empty. `resources`
    are the sets of devices by the extended resource that offers them, and `gpus` are all whole GPUs.
    """

    names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    neighbours: tuple[int, ...]
    resources: tuple[tuple[str, int], ...]
    gpus: int

    def connected(self, free: int, island: int) -> int:
        """Returns the size of the largest set of free devices of an island that are joined without the others."""
        left, largest = free & island, 0
        if not self.neighbours:
            return left.bit_count()
        while left:
            found, border = 0, left & -left
            while border:
                found |= border
                reached = 0
                while border:
                    low = border & -border
                    reached |= self.neighbours[low.bit_length() - 1]
                    border ^= low
                border = reached & left & ~found
            left &= ~found
            largest = max(largest, found.bit_count())
        return largest


NO_LAYOUT = DeviceLayout((), ((), (), ()), (), (), 0)


def layout_of(devices: tuple[Device, ...]) -> DeviceLayout:
    """Returns the layout of a node's devices."""
    joined = [(slot, device) for slot, device in enumerate(devices) if device.link in JOINED]
    resources: dict[str, int] = {}
    for slot, device in enumerate(devices):
        if device.resource:
            resources[device.resource] = resources.get(device.resource, 0) | 1 << slot
    return DeviceLayout(
        tuple(device.name for device in devices),
        (
            _sets((slot, device.island) for slot, device in joined),
            _sets((slot, device.switch) for slot, device in enumerate(devices)),
            _sets((slot, device.numa) for slot, device in enumerate(devices)),
        ),
        _neighbours(devices),
        tuple(sorted(resources.items())),
        sum(1 << slot for slot, device in enumerate(devices) if device.kind is DeviceKind.GPU),
    )


def _sets(numbered: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    found: dict[int, int] = {}
    for slot, number in numbered:
        if number != UNKNOWN:
            found[number] = found.get(number, 0) | 1 << slot
    return tuple(group for group in found.values() if group & (group - 1))


def _neighbours(devices: tuple[Device, ...]) -> tuple[int, ...]:
    """Returns the direct links of each device; () if every island is fully joined.

    A device without peers is linked with all of its island. A link that only one side has counts for both.
    """
    if not any(device.peers for device in devices):
        return ()
    slots = {device.name: slot for slot, device in enumerate(devices)}
    islands: dict[int, int] = {}
    for slot, device in enumerate(devices):
        islands[device.island] = islands.get(device.island, 0) | 1 << slot
    links = [
        sum(1 << slots[peer] for peer in set(device.peers) if peer in slots)
        if device.peers
        else (islands[device.island] if device.island != UNKNOWN else 0)
        for device in devices
    ]
    return tuple(
        own | sum(1 << other for other, theirs in enumerate(links) if theirs >> slot & 1)
        for slot, own in enumerate(links)
    )
