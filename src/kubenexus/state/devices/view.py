"""Sets of devices over the rows of a view, for plugins. `one_node.OneNodeDevices` has the same methods for one row.

A set is a word for each row, bit s is the device in slot s. Both classes return what a plugin's expression needs, so
that one expression serves all rows, some rows and a single one.
"""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.state.devices.columns import DeviceColumns
from kubenexus.state.devices.layout import ISLAND

_LARGEST = np.iinfo(np.int64).max


class SharedByPlugins:
    """Results that several plugins ask of one view. The sub-class makes `_shared`."""

    _shared: dict[Hashable, Any]

    def shared_by_plugins(self, question: Hashable, answer: Callable[[], Any]) -> Any:
        """Returns `answer()`, computed once for this view: several plugins ask the same about its rows."""
        found = self._shared.get(question)
        if found is None:
            found = self._shared[question] = answer()
        return found


class NodeDeviceSets(SharedByPlugins):
    """`nodes` is the view that it belongs to (`state.view.Nodes`); columns have one value for each of its rows."""

    def __init__(self, nodes: Any) -> None:
        self._nodes = nodes
        self._columns: DeviceColumns = nodes.columns.devices
        self._where = nodes.where
        self._shared = {}

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
