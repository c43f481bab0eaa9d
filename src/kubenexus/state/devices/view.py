"""Sets of devices over the rows of a view, for plugins. `OneNodeDevices` has the same methods with plain integers.

A set is a word for each row, bit s is the device in slot s. Both classes return what a plugin's expression needs, so
that one expression serves all rows, some rows and a single one.
"""

import functools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.state.devices.columns import DeviceColumns, unit_share
from kubenexus.state.devices.layout import ISLAND
from kubenexus.state.resources import NOTHING

_LARGEST = np.iinfo(np.int64).max
_MANY = 1 << 15


class NodeDeviceSets:
    """`nodes` is the view that it belongs to (`state.view.Nodes`); columns have one value for each of its rows."""

    def __init__(self, nodes: Any) -> None:
        self._nodes = nodes
        self._columns: DeviceColumns = nodes.columns.devices
        self._where = nodes.where
        self._shared: dict[Hashable, Any] = {}

    def shared_by_plugins(self, question: Hashable, answer: Callable[[], Any]) -> Any:
        """Returns `answer()`, computed once for this view: several plugins ask the same about its rows."""
        found = self._shared.get(question)
        if found is None:
            found = self._shared[question] = answer()
        return found

    # --- sets -----------------------------------------------------------------------------------------------------

    def offered(self, resource: str) -> Any:
        """Returns the devices that a resource offers; with "" all GPUs."""
        words = self._columns.offered.get(resource) if resource else self._columns.gpus
        return np.zeros(self._nodes.width, np.uint64) if words is None else words[self._where]

    @property
    def healthy(self) -> Any:
        return self._columns.healthy[self._where]

    @property
    def free(self) -> Any:
        """The devices of which one more unit can be taken: the whole device, or a replica under time slicing."""
        return self._columns.free[self._where]

    @property
    def untouched(self) -> Any:
        """The devices that no pod has a part of."""
        return _packed(self._columns.share[:, self._where] == WHOLE, self._nodes.width)

    def with_card_memory(self, least: int) -> Any:
        """Returns the devices with at least so much memory, in use or not."""
        return self._of_hardware(("memory", least), lambda devices, where: devices.card_memory[:, where] >= least)

    def with_bandwidth(self, least: int) -> Any:
        """Returns the devices whose links have at least this bandwidth together."""
        return self._of_hardware(("bandwidth", least), lambda devices, where: devices.bandwidth[:, where] >= least)

    def of_type(self, words: frozenset[str]) -> Any:
        """Returns the devices that have all these words (`api.devices.device_types`)."""

        def matching(devices: DeviceColumns, where: Any) -> Any:
            has = np.array([words <= each for each in devices.types], np.bool_)
            return has[devices.words[:, where]]

        return self._of_hardware(("type", words), matching)

    def with_share(self, share: int, memory: int) -> Any:
        """Returns the healthy devices with so much left, on rows that share their devices.

        Where one of the two is 0, it follows from the other and the memory of the card (`part_of`).
        """
        devices, where = self._columns, self._where
        usable = devices.usable[:, where]
        needed: Any = share
        least: Any = memory
        if share and not memory:  # division takes most of the time, and the memory of cards does not change
            least = self._nodes.cached_until_node_change(
                ("devices", "part", share), lambda nodes: share * nodes.columns.devices.usable[:, nodes.where] // WHOLE
            )
        elif not share:
            needed = np.where(usable > 0, -(-memory * WHOLE // np.maximum(usable, 1)), WHOLE + 1)
        left = (devices.share[:, where] >= needed) & (devices.memory[:, where] >= least)
        return np.where(self.shared, _packed(left, self._nodes.width) & self.healthy, np.uint64(0))

    def with_usable(self, least: int) -> Any:
        """Returns the devices that have so much memory to share, taken or not."""
        return self._of_hardware(("usable", least), lambda devices, where: devices.usable[:, where] >= least)

    @property
    def shared(self) -> Any:
        """Whether the row shares its devices."""
        return self._columns.shared[self._where]

    @property
    def sliced(self) -> Any:
        """Whether the row offers each device several times."""
        return self._columns.replicas[self._where] > 1

    @property
    def quality(self) -> Any:
        """How well the devices of a row work together, in percent (`layout.QUALITY`)."""
        return self._columns.quality[self._where]

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that offer devices anywhere."""
        return tuple(self._columns.offered)

    def smallest_card(self, sets: Any) -> Any:
        """Returns the memory of the smallest device of a set whose memory is known; 0 if there is none."""
        smallest = np.full(self._nodes.width, _LARGEST, np.int64)
        for slot, cards in enumerate(self._columns.card_memory[:, self._where]):
            counts = (sets >> np.uint64(slot) & np.uint64(1) != 0) & (cards > 0)
            smallest = np.where(counts, np.minimum(smallest, cards), smallest)
        return np.where(smallest == _LARGEST, 0, smallest)

    # --- numbers --------------------------------------------------------------------------------------------------

    def units(self, resource: str) -> Any:
        """Returns how many units of a resource the healthy devices give, replicas included."""
        units = self._columns.units.get(resource)
        return np.zeros(self._nodes.width, np.int32) if units is None else units[self._where]

    def free_units(self, resource: str) -> Any:
        """Returns how many units of a resource its healthy devices have left: devices, or replicas of them."""
        offered = self.offered(resource) & self.healthy
        whole = self.count(offered & self.free)
        if not self.sliced.any():
            return whole
        unit = np.maximum(WHOLE * self.count(offered) // np.maximum(self.units(resource), 1), 1)
        total = np.zeros(self._nodes.width, np.int64)
        for slot in range(self._columns.slots):
            left = np.maximum(self._columns.share[slot, self._where], 0) // unit
            total += np.where(offered >> np.uint64(slot) & np.uint64(1) != 0, left, 0)
        return np.where(self.sliced, total, whole)

    def unnamed(self, resource: str) -> Any:
        """Returns how many units of a resource are taken or missing on devices that are not known.

        Pods that another scheduler placed hold them, or the kubelet offers fewer than the node has. It is negative
        where the kubelet offers more than the devices that are modelled. A kubelet may still offer devices that a label
        or a driver declares unhealthy; these units count as not offered.
        """
        devices, nodes = self._columns, self._nodes
        named = devices.attributed.get(resource)
        if named is None:
            return 0
        there, offered = self.units(resource), nodes.alloc(resource)
        offered = offered - np.clip(offered - there, 0, devices.unhealthy_units[resource][self._where])
        return nodes.used(resource) - named[self._where] + there - offered

    def unnamed_devices(self, resource: str) -> Any:
        """Returns the same as devices: none under time slicing, where `free_units` counts what is left."""
        unnamed = self.unnamed(resource)
        return np.where(self.sliced, 0, unnamed) if self.sliced.any() else unnamed

    def count(self, sets: Any) -> Any:
        return np.bitwise_count(sets).astype(np.int64)

    def in_groups(self, sets: Any, level: int) -> Any:
        """Returns how many of a set are in each group of a level, as a table with a row for each group."""
        groups = self._columns.groups[level][:, self._where]
        counts = np.bitwise_count(groups & sets).astype(np.int64)
        if level == ISLAND:
            self._correct_meshed(counts, groups, sets)
        return counts

    def group_sizes(self, sets: Any, level: int) -> Any:
        """Returns how many of a set are in each group, joined or not."""
        return np.bitwise_count(self._columns.groups[level][:, self._where] & sets).astype(np.int64)

    def _correct_meshed(self, counts: Any, groups: Any, sets: Any) -> None:
        """Counts islands that are not fully joined by their largest part that still is. Machines with such are mostly
        alike, and each different state is worked out once."""
        mesh = self._columns.mesh[self._where]
        for code in np.unique(mesh).tolist():
            if not code:
                continue
            rows = np.flatnonzero(mesh == code)
            states, which = np.unique(groups[:, rows] & sets[rows], return_inverse=True)
            counts[:, rows] = largest_joined(self._columns.meshes[code], states)[which.reshape(-1, len(rows))]

    def _of_hardware(self, question: Any, which: Any) -> Any:
        """Returns a set that depends on the nodes alone."""

        def answer(nodes: Any) -> Any:
            return _packed(which(nodes.columns.devices, nodes.where), nodes.width)

        return self._nodes.cached_until_node_change(("devices", *question), answer)


class OneNodeDevices:
    """The same for a single row, as plain integers and lists of them."""

    def __init__(self, nodes: Any, row: int) -> None:
        self._resources, self._row = nodes.resources, row
        self._columns: DeviceColumns = nodes.devices
        self.free: int = nodes.devices.free.item(row)
        self.healthy: int = nodes.devices.healthy.item(row)
        self._shared: dict[Hashable, Any] = {}

    def shared_by_plugins(self, question: Hashable, answer: Callable[[], Any]) -> Any:
        found = self._shared.get(question)
        if found is None:
            found = self._shared[question] = answer()
        return found

    def offered(self, resource: str) -> int:
        words = self._columns.offered.get(resource) if resource else self._columns.gpus
        return 0 if words is None else words.item(self._row)

    @property
    def untouched(self) -> int:
        return self._packed([share == WHOLE for share in self.shares])

    def with_card_memory(self, least: int) -> int:
        return self._packed([memory >= least for memory in self._columns.card_memory[:, self._row].tolist()])

    def with_bandwidth(self, least: int) -> int:
        return self._packed([bandwidth >= least for bandwidth in self._columns.bandwidth[:, self._row].tolist()])

    def of_type(self, words: frozenset[str]) -> int:
        types = self._columns.types
        return self._packed([words <= types[code] for code in self._columns.words[:, self._row].tolist()])

    def with_share(self, share: int, memory: int) -> int:
        if not self.shared:
            return 0
        word = 0
        for slot, (have, left, most) in enumerate(zip(self.shares, self.memory, self.usable, strict=True)):
            needed, least = (share, memory or share * most // WHOLE) if share else part_of(share, memory, most)
            if have >= needed and left >= least:
                word |= 1 << slot
        return word & self.healthy

    def smallest_card(self, sets: int) -> int:
        cards = enumerate(self._columns.card_memory[:, self._row].tolist())
        return int(min((card for slot, card in cards if sets >> slot & 1 and card > 0), default=0))

    def with_usable(self, least: int) -> int:
        return self._packed([usable >= least for usable in self._columns.usable[:, self._row].tolist()])

    @property
    def shared(self) -> bool:
        return self._columns.shared.item(self._row)

    @property
    def sliced(self) -> bool:
        return self._columns.replicas.item(self._row) > 1

    @property
    def quality(self) -> int:
        return self._columns.quality.item(self._row)

    @property
    def resources(self) -> tuple[str, ...]:
        return tuple(self._columns.offered)

    def units(self, resource: str) -> int:
        units = self._columns.units.get(resource)
        return 0 if units is None else units.item(self._row)

    def free_units(self, resource: str) -> int:
        devices = self._columns.of_row(self._row).node.devices
        healthy = [
            (device, max(share, 0)) for device, share in zip(devices, self.shares, strict=False) if device.healthy
        ]
        return sum(share // unit_share(device) for device, share in healthy if device.resource == resource)

    def unnamed(self, resource: str) -> int:
        known: int | None = self._shared.get(resource)
        if known is None:
            known = self._shared[resource] = self._unnamed(resource)
        return known

    def _unnamed(self, resource: str) -> int:
        named = self._columns.attributed.get(resource)
        if named is None:
            return 0
        there = self.units(resource)
        r = self._resources.index.get(resource, NOTHING)
        used, offered = self._resources.used.item(r, self._row), self._resources.alloc.item(r, self._row)
        return int(used - named.item(self._row) + there - self._healthy_part(resource, offered, there))

    def _healthy_part(self, resource: str, offered: int, there: int) -> int:
        """Returns the offered units without those of unhealthy devices."""
        unhealthy = self._columns.unhealthy_units[resource].item(self._row)
        return offered - min(max(offered - there, 0), unhealthy) if unhealthy else offered

    def units_to_take(self, resource: str) -> int:
        """Returns how many more units of a resource pods can take on the devices of the row; many if its devices are
        not known: there the number alone counts."""
        devices, row = self._columns, self._row
        words = devices.offered.get(resource)
        offered = 0 if words is None else words.item(row)
        if not offered:
            return _MANY
        left = self.free_units(resource) if devices.replicas.item(row) > 1 else (offered & self.free).bit_count()
        return left - self.unnamed(resource)

    @property
    def islands(self) -> tuple[int, ...]:
        return self._columns.of_row(self._row).layout.groups[ISLAND]

    @functools.cached_property
    def shares(self) -> list[int]:
        """What is left of each device, in thousandths."""
        left: list[int] = self._columns.share[:, self._row].tolist()
        return left

    @functools.cached_property
    def usable(self) -> list[int]:
        """The memory of each device that pods can share, in bytes."""
        most: list[int] = self._columns.usable[:, self._row].tolist()
        return most

    @functools.cached_property
    def memory(self) -> list[int]:
        """What is left of the memory of each device, in bytes."""
        left: list[int] = self._columns.memory[:, self._row].tolist()
        return left

    def unnamed_devices(self, resource: str) -> int:
        return 0 if self.sliced else self.unnamed(resource)

    def count(self, sets: int) -> int:
        return sets.bit_count()

    def in_groups(self, sets: int, level: int) -> list[int]:
        layout = self._columns.of_row(self._row).layout
        if level == ISLAND and layout.neighbours:
            return [layout.connected(sets, group) for group in layout.groups[level]]
        return self.group_sizes(sets, level)

    def group_sizes(self, sets: int, level: int) -> list[int]:
        return [(sets & group).bit_count() for group in self._columns.of_row(self._row).layout.groups[level]]

    @staticmethod
    def _packed(bits: list[bool]) -> int:
        word = 0
        for slot, bit in enumerate(bits):
            word |= bit << slot
        return word


def _packed(bits: Any, width: int) -> Any:
    """Returns a word for each row from a table of slots by rows."""
    word = np.zeros((8, width), np.uint8)
    if len(bits):
        packed = np.packbits(bits, axis=0, bitorder="little")
        word[: len(packed)] = packed
    return np.ascontiguousarray(word.T).view(np.uint64)[:, 0]


def largest_joined(neighbours: tuple[int, ...], sets: Any) -> Any:
    """Returns the same as `DeviceLayout.connected`, for a column of sets that are each of one island."""
    left, largest, one = sets.copy(), np.zeros(len(sets), np.int64), np.uint64(1)
    rows = np.flatnonzero(left)
    while len(rows):
        here = left[rows]
        found, before = here & (~here + one), np.zeros(len(rows), np.uint64)
        while (found != before).any():
            before = found.copy()
            for slot, links in enumerate(neighbours):
                found |= (found >> np.uint64(slot) & one) * np.uint64(links) & here
        largest[rows] = np.maximum(largest[rows], np.bitwise_count(found))
        left[rows] = here & ~found
        rows = rows[np.bitwise_count(left[rows]) > largest[rows]]  # the others hold no larger part
    return largest


def unpacked(words: Any, slots: int) -> Any:
    """Returns a table of slots by rows, true where a word has the slot's bit."""
    return words >> np.arange(slots, dtype=np.uint64)[:, None] & np.uint64(1) != 0


def part_of(share: int, memory: int, usable: int) -> tuple[int, int]:
    """Returns the share and the memory that a part takes of a card with so much usable memory, 0 if that is not known.

    Where one of the two is 0, it follows from the other. A share beyond the whole card fits nowhere.
    """
    if share:
        return share, memory or share * usable // WHOLE
    return (-(-memory * WHOLE // usable) if usable else WHOLE + 1), memory
