"""What single pods hold on the NUMA nodes of their row."""

from collections.abc import Iterable
from typing import Any

import msgspec

from kubenexus.api.numa.admission import Allocation
from kubenexus.api.numa.machine import Machine, Usage, each_bit, idle, union
from kubenexus.api.numa.replay import Amounts, deduct, in_use
from kubenexus.state.pods import PodRecord


class Holding(msgspec.Struct, frozen=True, gc=False):
    """What a pod takes of its row, init containers included. `groups` are those of its memory blocks. `listed` is the
    part that a report lists. `kept_from` are the pods that it keeps off its NUMA nodes (`kept_zones`)."""

    cpus: int
    memory: dict[str, list[int]]
    blocks: list[int]
    groups: list[int]
    devices: dict[str, int]
    listed: tuple[Allocation, ...] = ()
    kept_from: str = ""


def pod_name(record: PodRecord) -> str:
    """Returns what a holding is found by."""
    return record.uid or record.key


def difference(old: Usage, fresh: Usage, listed: tuple[Allocation, ...], kept_from: str = "") -> Holding:
    """Returns what a pod took that made one usage of another."""
    return Holding(
        old.cpus & ~fresh.cpus,
        {
            kind: [before - after for before, after in zip(amounts, fresh.memory[kind], strict=True)]
            for kind, amounts in old.memory.items()
        },
        [after - before for before, after in zip(old.blocks, fresh.blocks, strict=True)],
        list(fresh.groups),
        {resource: devices & ~fresh.devices[resource] for resource, devices in old.devices.items()},
        listed,
        kept_from,
    )


def without(usage: Usage, held: Holding) -> Usage:
    """Returns the usage once a pod has given back what it held."""
    fresh = usage.copy()
    fresh.cpus |= held.cpus
    for kind, amounts in held.memory.items():
        fresh.memory[kind] = [left + amount for left, amount in zip(fresh.memory[kind], amounts, strict=True)]
    for zone, blocks in enumerate(held.blocks):
        fresh.blocks[zone] -= blocks
        if not fresh.blocks[zone]:
            fresh.groups[zone] = 1 << zone
    for resource, devices in held.devices.items():
        fresh.devices[resource] |= devices
    return fresh


def zones_of(machine: Machine, held: Holding) -> int:
    """Returns the NUMA nodes that a pod has something of."""
    found = 0
    for zone, cpus in enumerate(machine.cpus.numa):
        if cpus & held.cpus or held.blocks[zone]:
            found |= 1 << zone
    for resource, chosen in held.devices.items():
        found |= union(machine.devices[resource][index].numa for index in each_bit(chosen))
    return found


def usage_of(machine: Machine, holdings: Iterable[Holding]) -> Usage:
    """Returns the usage of a machine on which pods hold this and no others run."""
    usage = idle(machine)
    for held in holdings:
        usage.cpus &= ~held.cpus
        for kind, amounts in held.memory.items():
            usage.memory[kind] = [left - amount for left, amount in zip(usage.memory[kind], amounts, strict=True)]
        for zone, blocks in enumerate(held.blocks):
            if blocks:
                usage.blocks[zone] += blocks
                usage.groups[zone] = held.groups[zone]
        for resource, devices in held.devices.items():
            usage.devices[resource] &= ~devices
    return usage


def left_to_explain(machine: Machine, report: Usage, holdings: Iterable[Holding]) -> Amounts | None:
    """Returns what a report has in use besides what it lists of these pods; None if it has less than these."""
    left = in_use(machine, report)
    for held in holdings:
        for allocation in held.listed:
            if not deduct(machine, left, allocation):
                return None
    return left


def with_taken(machine: Machine, usage: Usage, taken: Amounts, report: Usage) -> Usage:
    """Returns the usage once these amounts are taken as well, the first CPUs and devices of each NUMA node. Of devices
    without a NUMA node no more are left than by the report."""
    fresh = usage.copy()
    for zone, cpus in enumerate(machine.cpus.numa):
        fresh.cpus &= ~_first(fresh.cpus & cpus, taken["cpu"][zone])
    for kind, amounts in fresh.memory.items():
        fresh.memory[kind] = [max(left - amount, 0) for left, amount in zip(amounts, taken[kind], strict=True)]
    for resource, devices in machine.devices.items():
        free = fresh.devices[resource]
        for zone, number in enumerate(taken[resource]):
            free &= ~_first(sum(1 << index for index in each_bit(free) if devices[index].numa >> zone & 1), number)
        loose = sum(1 << index for index in each_bit(free) if not devices[index].numa)
        told = sum(1 for index in each_bit(report.devices[resource]) if not devices[index].numa)
        fresh.devices[resource] = free & ~_first(loose, max(loose.bit_count() - told, 0))
    return fresh


def _first(bits: int, number: int) -> int:
    """Returns the first bits of a set, at most `number`."""
    chosen = 0
    for index, bit in enumerate(each_bit(bits)):
        if index >= number:
            break
        chosen |= 1 << bit
    return chosen


def in_all(machine: Machine, name: str) -> int:
    if name == "cpu":
        return (union(machine.cpus.numa) & ~machine.reserved).bit_count()
    if name in machine.memory:
        return sum(machine.memory[name])
    return sum(1 for device in machine.devices[name] if device.healthy and device.numa)


def usage_key(usage: Usage) -> Any:
    """Returns a key that is equal for equal usages."""
    return (
        usage.cpus,
        tuple([tuple(amounts) for amounts in usage.memory.values()]),
        tuple(usage.groups),
        tuple(usage.blocks),
        tuple(usage.devices.values()),
    )
