"""A node as its NodeResourceTopology and its Node tell it, in the form that an admission is decided from.

A NodeResourceTopology has amounts for each NUMA node, but no CPU ids, no sockets and no devices by name. A machine of
the same shape is made up from them: the CPUs of a NUMA node in a row, the reserved ones first, then the used ones.
Amounts decide nearly everything. `hidden.py` adds what they hide.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kubenexus.api.devices.node_resource_topology import MAX_ZONES, NodeResourceTopology, Zone
from kubenexus.api.numa.hidden import add_hidden
from kubenexus.api.numa.machine import (
    BEST_EFFORT,
    MAX_NUMA_NODES,
    POLICIES,
    CpuLayout,
    Device,
    Kubelet,
    Machine,
    Usage,
)
from kubenexus.api.numa.pod_demand import PodDemand
from kubenexus.api.quantity import to_units
from kubenexus.api.resource_names import CPU, MEMORY, is_extended
from kubenexus.base.errors import Malformed

POLICY_ATTRIBUTE: Final = "topologyManagerPolicy"
SCOPE_ATTRIBUTE: Final = "topologyManagerScope"
_MAX_CPUS: Final = 4096  # of a node; twice what the largest machines have
_MAX_DEVICES: Final = 512  # of one resource on a node
_MAX_ALL_DEVICES: Final = 2048  # of all resources on a node
_MAX_ATTRIBUTES: Final = 256  # of a node; further ones are not read
_MAX_RESOURCES: Final = 32  # of one zone; further ones are not read
_SAME_SOCKET: Final = 15  # a distance up to this is inside of one socket
# The deprecated list of policies: name of the policy, and whether its scope is the pod.
_OLD_POLICIES: Final = {
    "SingleNUMANodeContainerLevel": ("single-numa-node", False),
    "SingleNUMANodePodLevel": ("single-numa-node", True),
    "SingleNUMANode": ("single-numa-node", False),
    "RestrictedContainerLevel": ("restricted", False),
    "RestrictedPodLevel": ("restricted", True),
    "Restricted": ("restricted", False),
    "BestEffortContainerLevel": ("best-effort", False),
    "BestEffortPodLevel": ("best-effort", True),
    "BestEffort": ("best-effort", False),
    "None": ("none", False),
}


class KubeletOptions(msgspec.Struct, frozen=True, gc=False):
    """What no NodeResourceTopology tells: options of the managers, and how many CPUs a core has (0: not known)."""

    prefer_closest: bool = False
    full_cores_only: bool = False
    spread_cpus: bool = False
    threads: int = 0


NO_OPTIONS: Final = KubeletOptions()
NO_BANDWIDTHS: Final[Mapping[int, int]] = {}


class ReportedNode(msgspec.Struct, frozen=True, gc=False):
    """What a node tells about its NUMA nodes. `ids` are their numbers, by position. `visible` is the usage without what
    the report hides. `judged`: its kubelet is known, so that admissions are predicted. `bandwidths` are those of memory
    in MB/s by position, none if they are not known."""

    kubelet: Kubelet
    machine: Machine
    usage: Usage
    ids: tuple[int, ...]
    visible: Usage
    judged: bool = True
    bandwidths: tuple[int, ...] = ()

    def bandwidth(self, position: int) -> int:
        """Returns the bandwidth of a NUMA node's memory in MB/s; 0 if it is not known."""
        return self.bandwidths[position] if position < len(self.bandwidths) else 0


class _Amounts(msgspec.Struct, frozen=True, gc=False):
    """One resource of a NodeResourceTopology, by NUMA node."""

    capacity: tuple[int, ...]
    allocatable: tuple[int, ...]
    available: tuple[int, ...]


class Totals(msgspec.Struct, frozen=True, gc=False):
    """The extended resources of a node: what it has, what is healthy of that, and what its pods request."""

    capacity: Mapping[str, int] = {}
    allocatable: Mapping[str, int] = {}
    used: Mapping[str, int] = {}


def reported_node(
    nrt: NodeResourceTopology,
    totals: Totals,
    pods: Sequence[PodDemand] = (),
    options: KubeletOptions = NO_OPTIONS,
    *,
    hidden: bool = True,
    judged: bool = True,
    bandwidths: Mapping[int, int] = NO_BANDWIDTHS,
) -> ReportedNode | None:
    """Returns what a node tells, or None if that is nothing to predict from. Raises Malformed.

    `pods` is what the pods want of the managers that the report has, in the order of their admission. `hidden`: add
    what the report hides, which takes up to a few milliseconds. Without `judged`, pods count as on a kubelet that
    aligns them as far as it can. `bandwidths` are those of memory in MB/s, by the number of the NUMA node.
    """
    ids, zones = _zones(nrt)
    if not zones:
        return None
    amounts, distances = _read(zones), _distances(zones)
    cpus = amounts.get(CPU)
    static = cpus is not None and any(cpus.allocatable)
    memory = {kind: found for kind, found in amounts.items() if kind == MEMORY or kind.startswith("hugepages-")}
    threads = options.threads or _threads(options, cpus, pods)
    layout, reserved, free = _cpus(cpus if static else None, len(zones), threads, distances)
    devices, free_devices = _devices(amounts, totals)
    policy, pod_scope = _policy(nrt) if judged else (BEST_EFFORT, False)
    kubelet = Kubelet(
        policy=policy,
        pod_scope=pod_scope,
        prefer_closest=options.prefer_closest,
        static_cpus=static,
        full_cores_only=options.full_cores_only,
        spread_cpus=options.spread_cpus,
        static_memory=bool(memory),
    )
    machine = Machine(layout, reserved, distances, {kind: found.allocatable for kind, found in memory.items()}, devices)
    usage = Usage(
        free,
        {kind: list(found.available) for kind, found in memory.items()},
        [1 << zone for zone in range(len(zones))],
        [0] * len(zones),
        free_devices,
    )
    known = tuple(bandwidths.get(number, 0) for number in ids) if bandwidths else ()
    found = ReportedNode(kubelet, machine, usage, ids, usage, judged, known)
    if not hidden:
        return found
    return msgspec.structs.replace(found, usage=add_hidden(kubelet, machine, usage, pods))


def _zones(nrt: NodeResourceTopology) -> tuple[tuple[int, ...], list[Zone]]:
    """Returns the numbers of the NUMA nodes, ascending, and their zones; none if they are not distinct, or too many."""
    if len(nrt.zones) > MAX_ZONES:
        return (), []
    numbers = [zone.numa for zone in nrt.zones]
    found = {number: zone for number, zone in zip(numbers, nrt.zones, strict=True) if number >= 0}
    if len(found) > MAX_NUMA_NODES or len(found) < len([number for number in numbers if number >= 0]):
        return (), []
    ids = tuple(sorted(found))
    return ids, [found[number] for number in ids]


def zones_problem(nrt: NodeResourceTopology) -> str:
    """Returns why a report has no NUMA nodes that can be used."""
    if len(nrt.zones) > MAX_ZONES:
        return f"{len(nrt.zones)} zones, of at most {MAX_ZONES}"
    numbers = [number for zone in nrt.zones if (number := zone.numa) >= 0]
    if len(numbers) > len(set(numbers)):
        return "several zones for one NUMA node"
    return f"{len(numbers)} NUMA nodes, of at most {MAX_NUMA_NODES}" if numbers else "no NUMA nodes"


def _read(zones: Sequence[Zone]) -> dict[str, _Amounts]:
    found: dict[str, list[tuple[int, int, int]]] = {}
    for position, zone in enumerate(zones):
        for resource in zone.resources[:_MAX_RESOURCES]:
            rows = found.setdefault(resource.name, [(0, 0, 0)] * len(zones))
            allocatable = max(to_units(resource.allocatable), 0)
            capacity, available = to_units(resource.capacity), max(to_units(resource.available), 0)
            rows[position] = (max(capacity, allocatable), allocatable, min(available, allocatable))
    return {name: _Amounts(*zip(*rows, strict=True)) for name, rows in found.items()}


def _policy(nrt: NodeResourceTopology) -> tuple[str, bool]:
    told = {each.name: each.value for each in nrt.attributes[:_MAX_ATTRIBUTES]}
    policy, pod_scope = next(
        (_OLD_POLICIES[name] for name in nrt.topology_policies[:_MAX_ATTRIBUTES] if name in _OLD_POLICIES),
        ("none", False),
    )
    if told.get(POLICY_ATTRIBUTE) in POLICIES:
        policy = told[POLICY_ATTRIBUTE]
    if SCOPE_ATTRIBUTE in told:
        pod_scope = told[SCOPE_ATTRIBUTE] == "pod"
    return policy, pod_scope


def _distances(zones: Sequence[Zone]) -> tuple[tuple[int, ...], ...]:
    """Returns the distances between all NUMA nodes; 10 and 20 where the node does not tell."""
    names = {zone.name: position for position, zone in enumerate(zones)}
    rows = [[10 if one == other else 20 for other in range(len(zones))] for one in range(len(zones))]
    for row, zone in zip(rows, zones, strict=True):
        for cost in zone.costs[:MAX_ZONES]:
            if cost.name in names and 0 < cost.value < 1000:
                row[names[cost.name]] = cost.value
    return tuple(map(tuple, rows))


def _threads(options: KubeletOptions, cpus: _Amounts | None, pods: Sequence[PodDemand]) -> int:
    """Returns how many CPUs a core has where nothing tells: two, as most servers have, unless numbers exclude it.

    Under `full-pcpus-only` an odd number of CPUs in use, or of one container, shows that a core has one. So do single
    CPUs that are reserved on several NUMA nodes: on cores of two, the other one would be lost. Without that option the
    number decides only which CPUs init containers keep.
    """
    if cpus is None or any(number % 2 for number in cpus.capacity):
        return 1
    if not options.full_cores_only:
        return 2
    taken = [total - left for total, left in zip(cpus.allocatable, cpus.available, strict=True)]
    alone = sum((total - left) % 2 for total, left in zip(cpus.capacity, cpus.allocatable, strict=True))
    odd = any(number % 2 for number in taken)
    return 1 if odd or alone > 1 or any(each.cpus % 2 for pod in pods for each in pod.containers) else 2


def _cpus(
    cpus: _Amounts | None, zones: int, threads: int, distances: tuple[tuple[int, ...], ...]
) -> tuple[CpuLayout, int, int]:
    """Returns a made-up layout, the reserved and the free CPUs."""
    if cpus is None:
        return CpuLayout((0,) * zones, _sockets((0,) * zones, distances), ()), 0, 0
    if sum(cpus.capacity) > _MAX_CPUS:
        raise Malformed(f"{sum(cpus.capacity)} CPUs, of at most {_MAX_CPUS}")
    reserved = free = first = 0
    for capacity, allocatable, available in zip(cpus.capacity, cpus.allocatable, cpus.available, strict=True):
        reserved |= _row(first, capacity - allocatable)
        free |= _row(first + capacity - available, available)
        first += capacity
    return _layout(cpus.capacity, threads, distances), reserved, free


@functools.lru_cache(maxsize=16)
def _layout(capacity: tuple[int, ...], threads: int, distances: tuple[tuple[int, ...], ...]) -> CpuLayout:
    """Returns the layout of a machine with so many CPUs on each NUMA node. Equal machines report it every few
    seconds."""
    numa: list[int] = []
    cores: list[int] = []
    first = 0
    for number in capacity:
        numa.append(_row(first, number))
        cores += [_row(first + cpu, min(threads, number - cpu)) for cpu in range(0, number, threads)]
        first += number
    return CpuLayout(tuple(numa), _sockets(numa, distances), tuple(cores))


def _sockets(numa: Sequence[int], distances: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Returns the CPUs of each socket. NUMA nodes that are close to each other are taken for one socket."""
    sockets: dict[int, int] = {}
    for zone, cpus in enumerate(numa):
        home = next(other for other in range(zone + 1) if other == zone or distances[zone][other] <= _SAME_SOCKET)
        sockets[home] = sockets.get(home, 0) | cpus
    return tuple(sockets.values())


def _row(first: int, number: int) -> int:
    return ((1 << number) - 1) << first


def _devices(amounts: Mapping[str, _Amounts], totals: Totals) -> tuple[dict[str, tuple[Device, ...]], dict[str, int]]:
    """Returns the devices of each resource, and which are free: those in use come first on each NUMA node."""
    devices: dict[str, tuple[Device, ...]] = {}
    free: dict[str, int] = {}
    number = 0
    for resource in sorted({name for name in (*totals.allocatable, *amounts) if is_extended(name)}):
        found = amounts.get(resource)
        allocatable = totals.allocatable.get(resource, 0)
        unhealthy = totals.capacity.get(resource, 0) - allocatable
        made: list[Device] = []
        left = 0
        rows = zip(found.allocatable, found.available, strict=True) if found else ()
        for zone, (total, available) in enumerate(rows):
            _check_number(resource, len(made) + total)
            left |= _row(len(made) + total - available, available)
            made += [Device(1 << zone)] * total
        elsewhere = max(allocatable - len(made), 0)
        _check_number(resource, len(made) + elsewhere + max(unhealthy, 0))
        taken = min(max(totals.used.get(resource, 0) - (len(made) - left.bit_count()), 0), elsewhere)
        left |= _row(len(made) + taken, elsewhere - taken)
        made += [Device()] * elsewhere
        made += _unhealthy(found, max(unhealthy, 0))
        devices[resource], free[resource] = tuple(made), left
        number += len(made)
        if number > _MAX_ALL_DEVICES:
            raise Malformed(f"more than {_MAX_ALL_DEVICES} devices")
    return devices, free


def _unhealthy(found: _Amounts | None, number: int) -> list[Device]:
    """Returns unhealthy devices, which count for what a kubelet prefers. Taken to be where the fewest healthy are."""
    counts = list(found.allocatable) if found else []
    hosts = [zone for zone, count in enumerate(counts) if count]
    made: list[Device] = []
    for _ in range(number):
        if not hosts:
            made.append(Device(0, False))
            continue
        zone = min(hosts, key=lambda zone: (counts[zone], zone))
        counts[zone] += 1
        made.append(Device(1 << zone, False))
    return made


def _check_number(resource: str, number: int) -> None:
    if number > _MAX_DEVICES:
        raise Malformed(f"{number} devices of {resource[:64]}, of at most {_MAX_DEVICES}")
