"""A simulated kubelet with NUMA nodes: it admits pods from its own state, and reports what an exporter would.

It uses the judgement of `api.numa` on CPU numbers, sockets and devices of its own, of which its report tells only sums.
"""

from collections.abc import Iterator, Mapping

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.devices.node_resource_topology import (
    NUMA_ZONE,
    NodeResourceTopology,
    TopologyAttribute,
    Zone,
    ZoneCost,
    ZoneResource,
)
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.numa.admission import Admission, admit_to_managers
from kubenexus.api.numa.machine import CpuLayout, Device, Kubelet, Machine, Usage, idle, members, union
from kubenexus.api.numa.many_nodes import devices_by_zone
from kubenexus.api.numa.pod_demand import PodDemand, pod_demand
from kubenexus.api.numa.reported_node import POLICY_ATTRIBUTE, SCOPE_ATTRIBUTE


class _Running(msgspec.Struct, frozen=True):
    demand: PodDemand
    said: Admission


class NumaKubelet:
    """One node. `admit` and `remove` change its state; `report` is what its exporter publishes."""

    def __init__(self, name: str, kubelet: Kubelet, machine: Machine) -> None:
        self.name, self.kubelet, self.machine = name, kubelet, machine
        self._running: dict[str, _Running] = {}
        self._usage = idle(machine)

    @property
    def usage(self) -> Usage:
        return self._usage

    def admit(self, pod: Pod) -> Admission:
        """Admits a pod and allocates for it, or refuses it."""
        demand, usage = pod_demand(pod), self._usage.copy()
        said = admit_to_managers(demand, self.kubelet, self.machine, usage)
        if said.admitted:
            self._usage = usage
            self._running[pod.key] = _Running(demand, said)
        return said

    def remove(self, key: str) -> None:
        """Ends a pod, and gives back what all its containers held."""
        gone = self._running.pop(key, None)
        if gone is None:
            return
        usage = self._usage
        for allocation in gone.said.containers.values():
            usage.cpus |= allocation.cpus
            for resource, devices in allocation.devices.items():
                usage.devices[resource] |= devices
        # Of memory, what the others hold is counted again: init containers share theirs with later ones.
        rest = idle(self.machine)
        for running in self._running.values():
            for kind, zones, size, blocks in _memory(running):
                _take(rest.memory[kind], zones, size)
                for zone in members(zones):
                    rest.groups[zone], rest.blocks[zone] = zones, rest.blocks[zone] + blocks
        usage.memory, usage.groups, usage.blocks = rest.memory, rest.groups, rest.blocks

    def report(self) -> NodeResourceTopology:
        """Returns the NodeResourceTopology of the node: exclusive CPUs, memory and devices of containers that run as
        long as their pod are not available; regular init containers are not listed."""
        listed = [
            running.said.containers[container.name]
            for running in self._running.values()
            for container in running.demand.containers
            if not container.leaves_for_reuse
        ]
        taken = union(each.cpus for each in listed)
        memory = {kind: list(amounts) for kind, amounts in self.machine.memory.items()}
        for block in (block for each in listed for block in each.memory):
            _take(memory[block.type], block.zones, block.size)
        devices = {name: union(each.devices.get(name, 0) for each in listed) for name in self.machine.devices}
        zones = [
            self._zone(number, taken, {kind: amounts[number] for kind, amounts in memory.items()}, devices)
            for number in range(self.machine.zones)
        ]
        scope = "pod" if self.kubelet.pod_scope else "container"
        return NodeResourceTopology(
            metadata=ObjectMeta(name=self.name),
            zones=zones,
            attributes=[
                TopologyAttribute(name=POLICY_ATTRIBUTE, value=self.kubelet.policy),
                TopologyAttribute(name=SCOPE_ATTRIBUTE, value=scope),
            ],
        )

    def _zone(self, number: int, taken: int, memory: Mapping[str, int], devices: Mapping[str, int]) -> Zone:
        machine, resources = self.machine, list[ZoneResource]()
        if self.kubelet.static_cpus:
            cpus = machine.cpus.numa[number]
            usable = cpus & ~machine.reserved
            free = usable & ~taken
            resources.append(_resource("cpu", cpus.bit_count(), usable.bit_count(), free.bit_count()))
        for kind, left in memory.items():
            total = machine.memory[kind][number]
            resources.append(_resource(kind, total, total, left))
        for name, used in devices.items():
            healthy = idle(machine).devices[name]
            total = devices_by_zone(machine, name, healthy)[number]
            if total:
                resources.append(_resource(name, total, total, devices_by_zone(machine, name, healthy & ~used)[number]))
        costs = [
            ZoneCost(name=f"node-{other}", value=distance) for other, distance in enumerate(machine.distances[number])
        ]
        return Zone(name=f"node-{number}", type=NUMA_ZONE, costs=costs, resources=resources)


def a_machine(
    zones: int = 2, cpus: int = 16, memory: int = 0, devices: Mapping[str, int] | None = None, reserved: int = 1
) -> Machine:
    """Returns a machine with cores of two CPUs, numbered as Linux does: the second CPUs of all cores come last.

    `cpus`, `memory` and `devices` are those of each NUMA node. `reserved` cores of the first NUMA node are reserved.
    """
    cores = [1 << core | 1 << core + zones * cpus // 2 for core in range(zones * cpus // 2)]
    numa = tuple(union(cores[zone * cpus // 2 : (zone + 1) * cpus // 2]) for zone in range(zones))
    return Machine(
        CpuLayout(numa, numa, tuple(cores)),
        union(cores[:reserved]),
        tuple(tuple(10 if one == other else 21 for other in range(zones)) for one in range(zones)),
        {"memory": (memory,) * zones} if memory else {},
        {
            name: tuple(Device(1 << zone) for zone in range(zones) for _ in range(number))
            for name, number in (devices or {}).items()
        },
    )


def _memory(running: _Running) -> Iterator[tuple[str, int, int, int]]:
    """Yields what a pod holds by type and set of NUMA nodes: the type, the set, the size and the number of blocks."""
    held: dict[tuple[str, int], tuple[int, int, int]] = {}
    for container in running.demand.containers:
        for block in running.said.containers[container.name].memory:
            lasting, largest, blocks = held.get((block.type, block.zones), (0, 0, 0))
            if container.leaves_for_reuse:
                largest = max(largest, block.size)
            else:
                lasting += block.size
            held[block.type, block.zones] = lasting, largest, blocks + 1
    for (kind, zones), (lasting, largest, blocks) in held.items():
        yield kind, zones, max(lasting, largest), blocks


def _take(row: list[int], zones: int, size: int) -> None:
    """Takes an amount off the NUMA nodes of a set, from the first on."""
    for zone in members(zones):
        part = min(row[zone], size)
        row[zone] -= part
        size -= part


def _resource(name: str, capacity: int, allocatable: int, available: int) -> ZoneResource:
    return ZoneResource(name=name, capacity=str(capacity), allocatable=str(allocatable), available=str(available))
