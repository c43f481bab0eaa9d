"""What single pods hold on the NUMA nodes of their row."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kubenexus.api.numa.machine import Machine, Usage, idle
from kubenexus.api.numa.many_nodes import devices_by_zone
from kubenexus.api.numa.pod_demand import PodDemand
from kubenexus.state.pods import PodRecord


class Holding(msgspec.Struct, frozen=True, gc=False):
    """What a pod takes of its row, init containers included. `groups` are those of its memory blocks."""

    cpus: int
    memory: dict[str, list[int]]
    blocks: list[int]
    groups: list[int]
    devices: dict[str, int]


def pod_name(record: PodRecord) -> str:
    """Returns what a holding is found by."""
    return record.uid or record.key


def difference(old: Usage, fresh: Usage) -> Holding:
    """Returns what was taken between two usages."""
    return Holding(
        old.cpus & ~fresh.cpus,
        {
            kind: [before - after for before, after in zip(amounts, fresh.memory[kind], strict=True)]
            for kind, amounts in old.memory.items()
        },
        [after - before for before, after in zip(old.blocks, fresh.blocks, strict=True)],
        list(fresh.groups),
        {resource: devices & ~fresh.devices[resource] for resource, devices in old.devices.items()},
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


def explains(machine: Machine, usage: Usage, report: Usage, pods: Sequence[PodDemand]) -> bool:
    """Returns whether a usage is what a node reports, except for what init containers keep: that is not reported."""
    for name, ours, theirs in _compared(machine, usage, report):
        if any(left > told for left, told in zip(ours, theirs, strict=True)):
            return False
        whole = in_all(machine, name)
        running = sum(lasting(pod, name) for pod in pods)
        if whole - sum(theirs) != running:
            return False
        if not any(each.leaves_for_reuse for pod in pods for each in pod.containers) and ours != theirs:
            return False
    return True


def _compared(machine: Machine, usage: Usage, report: Usage) -> Iterator[tuple[str, list[int], list[int]]]:
    """Yields for each resource what is free on each NUMA node, by a usage and by the report."""
    numa = machine.cpus.numa
    yield "cpu", [(cpus & usage.cpus).bit_count() for cpus in numa], [(cpus & report.cpus).bit_count() for cpus in numa]
    for kind in machine.memory:
        yield kind, usage.memory[kind], report.memory[kind]
    for resource in machine.devices:
        ours, theirs = usage.devices[resource], report.devices[resource]
        yield resource, devices_by_zone(machine, resource, ours), devices_by_zone(machine, resource, theirs)


def in_all(machine: Machine, name: str) -> int:
    allocatable = idle(machine)
    if name == "cpu":
        return allocatable.cpus.bit_count()
    if name in machine.memory:
        return sum(machine.memory[name])
    return sum(1 for device in machine.devices[name] if device.healthy and device.numa)


def lasting(pod: PodDemand, name: str) -> int:
    """Returns what the containers want that run as long as the pod."""
    lasting = [each for each in pod.containers if not each.leaves_for_reuse]
    if name == "cpu":
        return sum(each.cpus for each in lasting)
    return sum(amount for each in lasting for of, amount in (*(each.memory or ()), *each.devices) if of == name)
