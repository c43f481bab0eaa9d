"""What stays the same of a row's NUMA nodes while pods come and go, so that a new usage is counted quickly."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kubenexus.api.numa.machine import Machine, Usage
from kubenexus.api.numa.reported_node import ReportedNode
from kubenexus.state.numa.zone_states import Listed, ZoneState

PLENTY: Final = 1 << 40  # where a node does not report how much there is


class _Zone(msgspec.Struct, frozen=True, gc=False):
    """One NUMA node: the beginning of its `ZoneState`, its CPUs, and by resource the amounts or a set of devices."""

    fixed: tuple[int, int, int, int, int, int]
    cpus: int
    own: int
    memory: tuple[tuple[str, int], ...]
    devices: tuple[tuple[str, int, int], ...]  # resource, how many, which


class Frame(msgspec.Struct, frozen=True, gc=False):
    """The NUMA nodes of a row. `devices` are the resources whose number the kubelet checks."""

    zones: tuple[_Zone, ...]
    partly_reserved: int | None  # CPUs of cores with a reserved one; None: whole cores are not asked for
    threads: int
    static_cpus: bool
    devices: tuple[str, ...]

    def states(self, usage: Usage) -> list[ZoneState]:
        """Returns the state of each NUMA node."""
        found = []
        for number, zone in enumerate(self.zones):
            memory: Listed = ()
            devices: Listed = ()
            if zone.memory:
                memory = tuple([(kind, total, usage.memory[kind][number]) for kind, total in zone.memory])
            if zone.devices:
                devices = tuple(
                    [(name, total, (usage.devices[name] & which).bit_count()) for name, total, which in zone.devices]
                )
            group = usage.groups[number]
            found.append(
                ZoneState(
                    *zone.fixed,
                    (zone.cpus & usage.cpus).bit_count(),
                    group,
                    group == zone.own,
                    usage.blocks[number],
                    memory,
                    devices,
                )
            )
        return found

    def totals(self, usage: Usage) -> "RowTotals":
        """Returns what the row has free in all."""
        return RowTotals(
            usage.cpus.bit_count() if self.static_cpus else PLENTY,
            PLENTY if self.partly_reserved is None else (usage.cpus & ~self.partly_reserved).bit_count(),
            {name: usage.devices[name].bit_count() for name in self.devices},
        )


class RowTotals(msgspec.Struct, frozen=True, gc=False):
    """What is free on a row: CPUs, CPUs of whole cores, and devices by resource, those without a NUMA node included."""

    cpus: int
    whole_cores: int
    devices: dict[str, int]


def make_frame(reported: ReportedNode, kind: int, counted: Callable[[str], bool]) -> Frame:
    """Returns the frame of a report. `counted`: whether a resource is counted at all."""
    machine, kubelet = reported.machine, reported.kubelet
    memory = [(name, amounts) for name, amounts in machine.memory.items() if any(amounts) and counted(name)]
    devices = [name for name, all_of in machine.devices.items() if all_of and counted(name)]
    by_zone = {name: _sets(machine, name) for name in devices if any(each.numa for each in machine.devices[name])}
    zones = []
    for number, cpus in enumerate(machine.cpus.numa):
        apart = sum(machine.distances[number]) - machine.distances[number][number]
        usable = (cpus & ~machine.reserved).bit_count()
        zones.append(
            _Zone(
                (kind, reported.ids[number], apart, cpus.bit_count(), usable, reported.bandwidth(number)),
                cpus,
                1 << number,
                tuple((name, amounts[number]) for name, amounts in memory),
                tuple((name, sets[number].bit_count(), sets[number]) for name, sets in by_zone.items()),
            )
        )
    full = kubelet.full_cores_only and kubelet.static_cpus
    partly_reserved = machine.cpus.whole_cores(machine.reserved) if full else None
    threads = max(machine.cpus.threads, 1) if full else 1
    return Frame(tuple(zones), partly_reserved, threads, kubelet.static_cpus, tuple(devices))


def _sets(machine: Machine, resource: str) -> list[Any]:
    """Returns the devices on each NUMA node."""
    sets = [0] * machine.zones
    for index, device in enumerate(machine.devices[resource]):
        if device.numa:
            sets[device.numa.bit_length() - 1] |= 1 << index
    return sets
