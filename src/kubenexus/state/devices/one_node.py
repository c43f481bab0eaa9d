"""Sets of devices of one node, as plain integers and lists of them: for one row NumPy costs more than it saves."""

from typing import Any

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.state.devices.columns import DeviceColumns, unit_share
from kubenexus.state.devices.layout import ISLAND
from kubenexus.state.devices.view import SharedByPlugins, part_of
from kubenexus.state.resources import NOTHING

_MANY = 1 << 15


class OneNodeDevices(SharedByPlugins):
    """The methods of `NodeDeviceSets` for a single row."""

    def __init__(self, nodes: Any, row: int) -> None:
        self._resources, self._row = nodes.resources, row
        self._columns: DeviceColumns = nodes.devices
        self.free: int = nodes.devices.free.item(row)
        self.healthy: int = nodes.devices.healthy.item(row)
        self._shared = {}
        self._lists: dict[str, list[int]] = {}

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

    # Not cached properties: in Python 3.11 each takes a lock, 1 us.

    @property
    def shares(self) -> list[int]:
        """What is left of each device, in thousandths."""
        return self._listed("share", self._columns.share)

    @property
    def usable(self) -> list[int]:
        """The memory of each device that pods can share, in bytes."""
        return self._listed("usable", self._columns.usable)

    @property
    def memory(self) -> list[int]:
        """What is left of the memory of each device, in bytes."""
        return self._listed("memory", self._columns.memory)

    def _listed(self, name: str, amounts: Any) -> list[int]:
        known: list[int] | None = self._lists.get(name)
        if known is None:
            known = self._lists[name] = amounts[:, self._row].tolist()
        return known

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
