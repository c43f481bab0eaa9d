"""Devices as columns. Sets of devices are words with a bit for each slot; amounts are slot-major, `share[s, n]`.

`share` and `memory` are what is free of the device in slot s of row n, in thousandths and in bytes. `free` has the bits
of devices of which one more unit can be taken: a whole device, or one of its replicas under time slicing. A rule over
5,000 nodes reads a word of each (docs/adr/0013).

Where the kubelet's device plugin picks the card, the names that a pod was given are a plan; the numbers are exact.
`attributed` counts the units of a resource that pods hold by name. What a row uses beyond that is held by pods without
names (placed by another scheduler), on cards that are not known.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubenexus.api.devices.device import MAX_MEMORY, NO_DEVICES, UNKNOWN, Device, NodeDevices
from kubenexus.api.devices.device_share import WHOLE, DeviceShare
from kubenexus.api.devices.device_types import type_words
from kubenexus.api.devices.hardware_tier import devices_tier
from kubenexus.api.resource_names import Amounts
from kubenexus.base.arrays import BoolColumn, grow
from kubenexus.state.devices.layout import LEVELS, NO_LAYOUT, QUALITY, DeviceLayout, layout_of
from kubenexus.state.undo_log import UndoLog

Words = NDArray[np.uint64]
# What the driver keeps of the memory of a card that pods share. NVIDIA's keeps 250 to 600 MiB (docs/devices.md).
DRIVER_MEMORY: Final = 512 << 20
# Device resources with a column: 12 bytes a row each. A cluster offers a handful, and twenty with all MIG profiles.
MAX_RESOURCES: Final = 64
_NEAR: Final = 9  # tenths of the nominal memory from which on a card counts as one of that size


class Hardware(NamedTuple):
    """The devices of a machine without what tells them apart from those of another machine of the same kind: whether
    each is healthy, its replicas, and the memory that pods can share. Equal machines share one object. `sliced`: some
    device has several replicas."""

    layout: DeviceLayout
    shared: bool = False
    sliced: bool = False
    quality: int = 0
    devices: tuple[tuple[bool, int, int], ...] = ()


class RowDevices(msgspec.Struct, frozen=True, gc=False):
    """The devices of one row, the kind of machine, their layout, and their slots by name."""

    node: NodeDevices
    hardware: Hardware
    layout: DeviceLayout
    slots: dict[str, int]


NO_ROW: Final = RowDevices(NO_DEVICES, Hardware(NO_LAYOUT), NO_LAYOUT, {})


class DeviceColumns:
    """Device columns. Placements change `share`, `memory`, `free` and `attributed`; the others describe hardware.

    `usable` is the memory that pods can share of a card, 0 if unknown. `card_memory` is the memory of a whole card and
    `bandwidth` that of its links in bits a second, -1 if unknown. `words` is the code of its type. `groups[level]` has
    as many sets of devices for each row as the row with most groups has.
    """

    def __init__(self, capacity: int) -> None:
        self.share: NDArray[np.int32] = np.zeros((0, capacity), np.int32)
        self.memory: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self.usable: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self.card_memory: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self.bandwidth: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self.words: NDArray[np.int32] = np.zeros((0, capacity), np.int32)
        self.free: Words = np.zeros(capacity, np.uint64)
        self.healthy: Words = np.zeros(capacity, np.uint64)
        self.gpus: Words = np.zeros(capacity, np.uint64)
        self.shared: BoolColumn = np.zeros(capacity, np.bool_)
        self.mesh: NDArray[np.int32] = np.zeros(capacity, np.int32)  # in `meshes`; 0 where all islands are fully joined
        self.replicas: NDArray[np.int32] = np.ones(capacity, np.int32)
        self.quality: NDArray[np.int8] = np.zeros(capacity, np.int8)  # of the best link, see `layout.QUALITY`
        self.tiers: NDArray[np.uint8] = np.zeros(capacity, np.uint8)  # `HardwareTier` of the devices, labels aside
        self.groups: list[Words] = [np.zeros((0, capacity), np.uint64) for _ in LEVELS]
        self.offered: dict[str, Words] = {}
        self.units: dict[str, NDArray[np.int32]] = {}  # that healthy devices give, replicas included
        self.unhealthy_units: dict[str, NDArray[np.int32]] = {}
        self.attributed: dict[str, NDArray[np.int32]] = {}
        self.types: list[frozenset[str]] = [frozenset()]
        self.meshes: list[tuple[int, ...]] = [()]  # `DeviceLayout.neighbours` of machines whose islands are meshes
        self.count = 0  # devices of all rows
        self._left: dict[int, tuple[int, ...]] = {}  # see `left`
        self._type_codes: dict[frozenset[str], int] = {frozenset(): 0}
        self._mesh_codes: dict[tuple[int, ...], int] = {(): 0}
        self.rows: dict[int, RowDevices] = {}  # those with devices
        self._layouts: dict[DeviceLayout, tuple[DeviceLayout, dict[str, int]]] = {}
        self._hardware: dict[Hardware, Hardware] = {}
        self._capacity = capacity

    @property
    def slots(self) -> int:
        return len(self.share)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for name in (*_AMOUNTS, *_SETS, "shared", "mesh", "quality", "tiers"):
            setattr(self, name, grow(getattr(self, name), capacity))
        self.replicas = grow(self.replicas, capacity, 1)
        self.groups = [grow(each, capacity) for each in self.groups]
        self.offered = {name: grow(each, capacity) for name, each in self.offered.items()}
        self.units = {name: grow(each, capacity) for name, each in self.units.items()}
        self.unhealthy_units = {name: grow(each, capacity) for name, each in self.unhealthy_units.items()}
        self.attributed = {name: grow(each, capacity) for name, each in self.attributed.items()}

    def of_row(self, row: int) -> RowDevices:
        return self.rows.get(row, NO_ROW)

    def left(self, row: int) -> tuple[int, ...]:
        """Returns `share` and then `memory` of each slot of a row. Once read it follows what pods take and give back:
        the cells of a row are far apart, so that reading them takes several us."""
        known = self._left.get(row)
        if known is None:
            known = self._left[row] = (*self.share[:, row].tolist(), *self.memory[:, row].tolist())
        return known

    # --- hardware -------------------------------------------------------------------------------------------------

    def set(self, row: int, node: NodeDevices) -> None:
        """Replaces the devices of a row, all free. The ledger then counts the pods that hold some of them."""
        self.clear(row)
        devices = node.devices
        if not devices:
            return
        layout, slots = self._layout(devices)
        quality = max(QUALITY[device.link] for device in devices)
        self.rows[row] = RowDevices(node, self._hardware_of(node, layout, quality), layout, slots)
        self.count += len(devices)
        self._stretch(len(devices), layout)
        self.shared[row], self.mesh[row] = node.shared, self._mesh_code(layout.neighbours)
        self.replicas[row] = max(device.replicas for device in devices)
        self.quality[row] = quality
        self.tiers[row] = devices_tier(devices)
        self.healthy[row] = sum(1 << slot for slot, device in enumerate(devices) if device.healthy)
        self.gpus[row] = layout.gpus
        for resource, devices_of_it in layout.resources:
            if resource in self.offered:
                self.offered[resource][row] = devices_of_it
                own = [device for device in devices if device.resource == resource]
                self.units[resource][row] = sum(device.replicas for device in own if device.healthy)
                self.unhealthy_units[resource][row] = sum(device.replicas for device in own if not device.healthy)
        for level, sets in enumerate(layout.groups):
            self.groups[level][: len(sets), row] = sets
        for slot, device in enumerate(devices):
            self.usable[slot, row] = usable_memory(device)
            self.card_memory[slot, row] = _card_memory(device)
            self.bandwidth[slot, row] = device.bandwidth
            self.words[slot, row] = self._type_code(type_words(device))
        self.clear_use(row)

    def clear(self, row: int) -> None:
        known = self.rows.pop(row, None)
        self._left.pop(row, None)
        if known is None:
            return
        self.count -= len(known.node.devices)
        for name in _AMOUNTS:
            getattr(self, name)[:, row] = 0
        for name in _SETS:
            getattr(self, name)[row] = 0
        self.shared[row] = False
        self.replicas[row], self.quality[row], self.mesh[row], self.tiers[row] = 1, 0, 0, 0
        by_resource: tuple[Any, ...] = (self.offered, self.units, self.unhealthy_units, self.attributed)
        for column in (*self.groups, *(column for columns in by_resource for column in columns.values())):
            column[..., row] = 0

    def _layout(self, devices: tuple[Device, ...]) -> tuple[DeviceLayout, dict[str, int]]:
        """Returns the layout, one object for all equal ones, and the slots by name."""
        layout = layout_of(devices)
        known = self._layouts.get(layout)
        if known is None:
            if len(self._layouts) > 4 * max(len(self.rows), 64):  # most are of machines that are gone
                self._layouts.clear()
            known = self._layouts[layout] = (layout, {name: slot for slot, name in enumerate(layout.names)})
        return known

    def _hardware_of(self, node: NodeDevices, layout: DeviceLayout, quality: int) -> Hardware:
        """Returns the kind of machine, one object for all equal ones."""
        each = tuple([(device.healthy, device.replicas, usable_memory(device)) for device in node.devices])
        if len(self._hardware) > 4 * max(len(self.rows), 64):  # most are of machines that are gone
            self._hardware.clear()
        sliced = any(device.replicas > 1 for device in node.devices)
        hardware = Hardware(layout, node.shared, sliced, quality, each)
        return self._hardware.setdefault(hardware, hardware)

    def _stretch(self, slots: int, layout: DeviceLayout) -> None:
        if slots > self.slots:
            self._left.clear()
            for name in _AMOUNTS:
                setattr(self, name, grow(getattr(self, name), slots, axis=0))
        for level, sets in enumerate(layout.groups):
            if len(sets) > len(self.groups[level]):
                self.groups[level] = grow(self.groups[level], len(sets), axis=0)
        for resource, _ in layout.resources:
            if resource not in self.offered and len(self.offered) < MAX_RESOURCES:
                self.offered[resource] = np.zeros(self._capacity, np.uint64)
                self.units[resource] = np.zeros(self._capacity, np.int32)
                self.unhealthy_units[resource] = np.zeros(self._capacity, np.int32)
                self.attributed[resource] = np.zeros(self._capacity, np.int32)

    def _type_code(self, words: frozenset[str]) -> int:
        code = self._type_codes.get(words)
        if code is None:
            code = self._type_codes[words] = len(self.types)
            self.types.append(words)
        return code

    def _mesh_code(self, neighbours: tuple[int, ...]) -> int:
        code = self._mesh_codes.get(neighbours)
        if code is None:
            code = self._mesh_codes[neighbours] = len(self.meshes)
            self.meshes.append(neighbours)
        return code

    # --- use ------------------------------------------------------------------------------------------------------

    def clear_use(self, row: int) -> None:
        """Makes all devices of a row free."""
        devices = self.of_row(row).node.devices
        self._left.pop(row, None)
        for slot, device in enumerate(devices):
            self.share[slot, row] = WHOLE
            self.memory[slot, row] = usable_memory(device)
        self.free[row] = self.healthy[row]
        if devices:
            for units in self.attributed.values():
                units[row] = 0

    def charge(
        self, row: int, shares: tuple[DeviceShare, ...], requested: Amounts, sign: int, undo: UndoLog | None = None
    ) -> None:
        """Takes parts of devices of a row (`sign` +1) or frees them (-1). `requested` are the pod's resources.

        `held_devices` says what of it counts.
        """
        here, free = self.of_row(row), self.free.item(row)
        before, counted = free, dict[str, int]()
        known = self._left.get(row)
        amounts = None if known is None else [*known]
        if undo is not None:
            undo.entry(self._left, row)
        for slot, each in held_devices(shares, requested, here):
            device, cell = here.node.devices[slot], (slot, row)
            left = self.share.item(cell) - sign * each.share
            if undo is not None:
                undo.cell(self.share, cell)
            self.share[cell] = left
            if each.memory:
                if undo is not None:
                    undo.cell(self.memory, cell)
                self.memory[cell] -= sign * each.memory
            if amounts is not None:
                amounts[slot] = left
                amounts[len(self.share) + slot] -= sign * each.memory
            can = device.healthy and left >= unit_share(device)
            free = free | 1 << slot if can else free & ~(1 << slot)
            if device.resource in self.attributed:
                counted[device.resource] = counted.get(device.resource, 0) + sign
        if amounts is not None:
            self._left[row] = tuple(amounts)
        if free != before:
            if undo is not None:
                undo.cell(self.free, row)
            self.free[row] = free
        self._attribute(row, counted, requested, undo)

    def _attribute(self, row: int, counted: dict[str, int], requested: Amounts, undo: UndoLog | None) -> None:
        """Counts units that a pod holds by name, of the resources that it requests."""
        for resource, number in counted.items():
            if any([name == resource for name, _ in requested]):  # noqa: C419
                if undo is not None:
                    undo.cell(self.attributed[resource], row)
                self.attributed[resource][row] += number


_AMOUNTS: Final = ("share", "memory", "usable", "card_memory", "bandwidth", "words")
_SETS: Final = ("free", "healthy", "gpus")


def held_devices(
    shares: Iterable[DeviceShare], requested: Amounts, here: RowDevices
) -> Iterator[tuple[int, DeviceShare]]:
    """Yields the slots of the devices that a pod with these resources holds, of those that its annotation names.

    Of devices that the kubelet offers by number as many count as the pod requests. Of a pod that requests none one
    counts, if the node shares its devices. Else a pod could claim the cards of a node without the quota for them. A
    device that is gone while its pod still runs is counted when it is back.
    """
    left = dict(requested)
    for each in shares:
        slot = here.slots.get(each.device)
        if slot is None:
            continue
        resource = here.node.devices[slot].resource
        if resource:
            if left.setdefault(resource, int(here.node.shared)) <= 0:
                continue
            left[resource] -= 1
        yield slot, each


def unit_share(device: Device) -> int:
    """Returns what one unit takes of a device: all of it, or a replica under time slicing. Never nothing."""
    return max(WHOLE // device.replicas, 1)


def usable_memory(device: Device) -> int:
    """Returns the memory of a card that pods can share; 0 if it is not known."""
    return min(max(0, device.memory - DRIVER_MEMORY), MAX_MEMORY)


def _card_memory(device: Device) -> int:
    """Returns the memory by which a whole card is compared with a request. Users ask for the size that a card is sold
    with, and a card of 80Gi reports 79.6Gi."""
    memory, nominal = min(device.memory, MAX_MEMORY), min(device.nominal_memory, MAX_MEMORY)
    if memory == UNKNOWN:
        return nominal
    return nominal if memory < nominal and 10 * memory >= _NEAR * nominal else memory


def held(columns: DeviceColumns, row: int) -> list[tuple[Any, int, int]]:
    """Returns each device of a row with what is free of it, for digests."""
    return [
        (device, columns.share.item(slot, row), columns.memory.item(slot, row))
        for slot, device in enumerate(columns.of_row(row).node.devices)
    ]
