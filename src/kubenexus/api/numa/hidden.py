"""What a NodeResourceTopology hides, found from the pods on the node.

Two things: init containers are not listed there, but their CPUs, memory and devices stay taken until the pod ends;
and memory blocks over several NUMA nodes tie these together. Both are found in one of two ways:

1. The pods are admitted again (`replay.py`). If that gives the amounts that the node reports, it is what happened.
2. Else (pods that have left made others go elsewhere) sets of NUMA nodes are searched for the pods, so that the sums
   are the reported ones.

If neither works, what can be said at least is kept: memory in use is taken for blocks of one NUMA node.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kubenexus.api.numa.machine import (
    RESTRICTED,
    SINGLE_NUMA_NODE,
    Kubelet,
    Machine,
    Usage,
    each_bit,
    idle,
    members,
    set_sums,
    union,
)
from kubenexus.api.numa.pod_demand import ContainerDemand, PodDemand
from kubenexus.api.numa.replay import Amounts, in_use, replay, take_off
from kubenexus.api.numa.take_cpus import take_packed

_MAX_STEPS: Final = 2000  # of the search; a node that needs more keeps what can be said at least
_ALIGNING: Final = frozenset({RESTRICTED, SINGLE_NUMA_NODE})  # policies that give all resources the same NUMA nodes


def add_hidden(kubelet: Kubelet, machine: Machine, reported: Usage, pods: Sequence[PodDemand]) -> Usage:
    """Returns the usage with what the report hides. `pods` are in the order in which the kubelet admitted them."""
    caring, left = [pod for pod in pods if pod.cares], in_use(machine, reported)
    steps = replay(kubelet, machine, idle(machine), left, caring) if caring else None
    return steps[-1].after if steps else search_hidden(kubelet, machine, idle(machine), reported, left, caring)


def search_hidden(
    kubelet: Kubelet, machine: Machine, start: Usage, visible: Usage, left: Amounts, pods: Sequence[PodDemand]
) -> Usage:
    """Returns the usage with what pods hold besides those whose usage is `start`, by the second way. `left` is what a
    report lists of them, and `visible` the usage with that and without what the report hides."""
    if not pods or not (kubelet.static_cpus or kubelet.static_memory):
        return visible
    usage = visible.copy()
    for zone in range(machine.zones):
        if any(left.get(kind, (0,) * machine.zones)[zone] for kind in machine.memory):
            usage.blocks[zone] = max(usage.blocks[zone], 1)
    for unit, zones in _Search(kubelet, machine, left, [*_units(kubelet, pods)], start).run() or ():
        _hold(machine, usage, unit, zones, zones if kubelet.policy in _ALIGNING else machine.all_zones)
    return usage


class _Unit(msgspec.Struct, frozen=True):
    """Containers that share their NUMA nodes: of a pod in pod scope, else one. `hidden` is held, but not reported."""

    wanted: dict[str, int]
    memory: frozenset[str]
    blocks: int
    hidden: dict[str, int]


def _units(kubelet: Kubelet, pods: Sequence[PodDemand]) -> Iterator[_Unit]:
    for pod in pods:
        lasting = [each for each in pod.containers if not each.leaves_for_reuse]
        groups = [lasting] if kubelet.pod_scope or len(lasting) == 1 else [[each] for each in lasting]
        # What an init container had beyond the others stays with the pod. In container scope it was on the NUMA nodes
        # of all containers after it, so it does not matter with which of them it is counted.
        largest = _most(each for each in pod.containers if each.leaves_for_reuse)
        before = _sum(each for each in lasting if each.sidecar)
        running = _sum(lasting)
        hidden = {name: amount + before.get(name, 0) - running.get(name, 0) for name, amount in largest.items()}
        for number, group in enumerate(groups):
            wanted = _sum(group)
            kinds = frozenset(kind for each in group for kind, _ in each.memory or ())
            held = {name: amount for name, amount in hidden.items() if amount > 0} if number == 0 else {}
            if any(wanted.values()) or held:
                yield _Unit(wanted, kinds, sum(1 for each in group if each.memory), held)


def _sum(containers: "Iterator[ContainerDemand] | Sequence[ContainerDemand]") -> dict[str, int]:
    total: dict[str, int] = {}
    for each in containers:
        for name, amount in _amounts(each):
            total[name] = total.get(name, 0) + amount
    return total


def _most(containers: Iterator[ContainerDemand]) -> dict[str, int]:
    most: dict[str, int] = {}
    for each in containers:
        for name, amount in _amounts(each):
            most[name] = max(most.get(name, 0), amount)
    return most


def _amounts(container: ContainerDemand) -> list[tuple[str, int]]:
    return [("cpu", container.cpus), *(container.memory or ()), *container.devices]


class _Search:
    """Looks for a set of NUMA nodes for each unit, so that everything in use is explained."""

    def __init__(
        self, kubelet: Kubelet, machine: Machine, target: Amounts, units: Sequence[_Unit], start: Usage
    ) -> None:
        self.machine = machine
        self.aligned = kubelet.policy in _ALIGNING
        self.counted = frozenset(target) if self.aligned else frozenset(machine.memory)
        self.left = {name: amounts.copy() for name, amounts in target.items()}
        self.groups = [group if blocks else 0 for group, blocks in zip(start.groups, start.blocks, strict=True)]
        self.capacity = {kind: set_sums(amounts) for kind, amounts in machine.memory.items()}
        self.capacity["cpu"] = set_sums([cpus.bit_count() for cpus in machine.cpus.numa])
        # Units that need several NUMA nodes come last: how they spread is not known, they get what is left.
        self.units = sorted(units, key=lambda unit: (self._width(unit), -max(unit.wanted.values(), default=0)))
        self.chosen: list[int] = []
        self.steps = 0

    def run(self) -> list[tuple[_Unit, int]] | None:
        return list(zip(self.units, self.chosen, strict=True)) if self._place(0) else None

    def _place(self, number: int) -> bool:
        if number == len(self.units):
            return not any(any(self.left[name]) for name in self.counted)
        unit = self.units[number]
        for zones in self._candidates(unit):
            self.steps += 1
            if self.steps > _MAX_STEPS:
                return False
            left = {name: amounts.copy() for name, amounts in self.left.items()}
            groups = self.groups.copy()
            if self._take(unit, zones):
                self.chosen.append(zones)
                if self._place(number + 1):
                    return True
                self.chosen.pop()
            self.left, self.groups = left, groups
        return False

    def _candidates(self, unit: _Unit) -> list[int]:
        """Returns the sets of NUMA nodes to try: those that a kubelet prefers, then wider ones."""
        width = self._width(unit)
        widest = width if self.aligned else self.machine.zones
        sets = [zones for zones in range(1, self.machine.all_zones + 1) if width <= zones.bit_count() <= widest]
        return sorted(sets, key=lambda zones: (zones.bit_count(), zones))

    def _width(self, unit: _Unit) -> int:
        """Returns how many NUMA nodes would do on an empty machine."""
        sets = range(1, self.machine.all_zones + 1)
        return min(
            (
                zones.bit_count()
                for zones in sets
                if all(
                    self.capacity[name][zones] >= amount
                    for name, amount in unit.wanted.items()
                    if name in self.capacity
                )
            ),
            default=self.machine.zones,
        )

    def _take(self, unit: _Unit, zones: int) -> bool:
        inside = members(zones)
        if unit.memory:
            if any(self.groups[zone] not in (0, zones) for zone in inside):
                return False
            for zone in inside:
                self.groups[zone] = zones
        for name, amount in unit.wanted.items():
            if name not in self.counted:
                continue
            row = self.left[name]
            if name in self.machine.devices and not any(device.numa for device in self.machine.devices[name]):
                continue
            if take_off(row, inside, amount):
                return False
        return True


def _hold(machine: Machine, usage: Usage, unit: _Unit, zones: int, near: int) -> None:
    """Counts the blocks of a unit, and takes what it holds without being reported; its CPUs lie on `near`."""
    inside = members(zones)
    if unit.memory:
        for zone in inside:
            usage.groups[zone] = zones
            usage.blocks[zone] = max(usage.blocks[zone], 1)
    for name, amount in unit.hidden.items():
        if name == "cpu":
            free = union(machine.cpus.numa[zone] for zone in members(near)) & usage.cpus
            usage.cpus &= ~take_packed(machine.cpus, free, min(amount, free.bit_count()))
        elif name in usage.memory:
            take_off(usage.memory[name], inside, amount)
        elif name in machine.devices:
            close = [index for index in each_bit(usage.devices[name]) if machine.devices[name][index].numa & zones]
            for index in close[:amount]:
                usage.devices[name] &= ~(1 << index)
