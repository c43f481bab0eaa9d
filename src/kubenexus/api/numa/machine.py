"""A machine as the managers of a kubelet see it, and how this kubelet is configured.

A set of NUMA nodes, or of CPUs, is an integer with one bit for each. NUMA nodes are numbered by position, in the order
of their ids, so that a smaller integer is the set that a kubelet prefers between two of equal size.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kubenexus.api.core import Node

MAX_NUMA_NODES: Final = 8  # the kubelet's own bound: 255 sets of NUMA nodes

NONE: Final = "none"
BEST_EFFORT: Final = "best-effort"
RESTRICTED: Final = "restricted"
SINGLE_NUMA_NODE: Final = "single-numa-node"
POLICIES: Final = (NONE, BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE)


class Kubelet(msgspec.Struct, frozen=True, gc=False):
    """The part of a KubeletConfiguration that decides about NUMA.

    The options `strict-cpu-reservation` and `max-allowable-numa-nodes` change no verdict. `align-by-socket` and
    `distribute-cpus-across-cores` are not modelled.
    """

    policy: str = NONE
    pod_scope: bool = False
    prefer_closest: bool = False
    static_cpus: bool = False
    full_cores_only: bool = False
    spread_cpus: bool = False  # distribute-cpus-across-numa
    align_caches: bool = False  # prefer-align-cpus-by-uncorecache
    static_memory: bool = False


class CpuLayout(msgspec.Struct, frozen=True, gc=False):
    """The CPUs of each NUMA node, socket, core and last-level cache. A core is numbered by its lowest CPU."""

    numa: tuple[int, ...]
    sockets: tuple[int, ...]
    cores: tuple[int, ...]
    caches: tuple[int, ...] = ()

    @property
    def number(self) -> int:
        return sum(cpus.bit_count() for cpus in self.numa)

    @property
    def threads(self) -> int:
        """How many CPUs a core has, as the kubelet computes it."""
        return self.number // len(self.cores) if self.cores else 1

    @property
    def inner_is_numa(self) -> bool:
        """Whether sockets hold NUMA nodes; else NUMA nodes hold sockets."""
        return len(self.sockets) < sum(1 for cpus in self.numa if cpus)

    def whole_cores(self, cpus: int) -> int:
        """Returns all CPUs of the cores that these CPUs are on."""
        return union(core for core in self.cores if core & cpus)


class Device(msgspec.Struct, frozen=True, gc=False):
    """A device of a device plugin: the NUMA nodes it is attached to, none if the plugin does not tell."""

    numa: int = 0
    healthy: bool = True


class Machine(msgspec.Struct, frozen=True, gc=False):
    """What does not change while a machine runs. Devices have the order in which their plugin prefers them."""

    cpus: CpuLayout
    reserved: int = 0
    distances: tuple[tuple[int, ...], ...] = ()
    memory: dict[str, tuple[int, ...]] = {}  # by type: what can be allocated on each NUMA node
    devices: dict[str, tuple[Device, ...]] = {}

    @property
    def zones(self) -> int:
        return len(self.cpus.numa)

    @property
    def all_zones(self) -> int:
        return (1 << self.zones) - 1


class Usage(msgspec.Struct):
    """What the managers have left to give, and how memory is tied up. Changed by an admission."""

    cpus: int
    memory: dict[str, list[int]]
    groups: list[int]  # by NUMA node: the set it shares memory blocks with, itself included
    blocks: list[int]  # by NUMA node: memory blocks on it
    devices: dict[str, int]  # by resource: the free devices, one bit each

    def copy(self) -> "Usage":
        return Usage(
            self.cpus,
            {kind: free.copy() for kind, free in self.memory.items()},
            self.groups.copy(),
            self.blocks.copy(),
            self.devices.copy(),
        )


class NumaNode(msgspec.Struct, frozen=True):
    """Everything that an admission on one node is decided from."""

    kubelet: Kubelet
    machine: Machine
    usage: Usage
    node: Node
    used: dict[str, int] = {}  # effective requests of the pods on it, in scheduler units
    pods: int = 0


def idle(machine: Machine) -> Usage:
    """Returns the usage of a machine on which nothing runs."""
    return Usage(
        union(machine.cpus.numa) & ~machine.reserved,
        {kind: list(amounts) for kind, amounts in machine.memory.items()},
        [1 << zone for zone in range(machine.zones)],
        [0] * machine.zones,
        {resource: ((1 << len(devices)) - 1) & ~_unhealthy(devices) for resource, devices in machine.devices.items()},
    )


def _unhealthy(devices: Sequence[Device]) -> int:
    return sum([1 << index for index, device in enumerate(devices) if not device.healthy])


def union(sets: Iterable[int]) -> int:
    total = 0
    for each in sets:
        total |= each
    return total


@functools.cache
def members(mask: int) -> tuple[int, ...]:
    """Returns the positions in a set of NUMA nodes, ascending. Called with sets of at most 8."""
    return tuple(position for position in range(mask.bit_length()) if mask >> position & 1)


@functools.cache
def sets_of_width(zones: int, width: int) -> tuple[int, ...]:
    """Returns all sets of so many of the NUMA nodes. Called for at most 8."""
    return tuple(each for each in range(1, 1 << zones) if each.bit_count() == width)


def narrowest_sets(amounts: Sequence[Sequence[int]], numbers: Sequence[int], among: int) -> Sequence[int]:
    """Returns the sets with as few NUMA nodes as possible, of those that have enough of everything; none if not all of
    them do. `amounts` are by resource and NUMA node. Mostly one NUMA node has enough: then the many sets are not
    looked at."""
    pairs = list(zip(amounts, numbers, strict=True))
    singles = [
        1 << zone
        for zone in members(among)
        if all([of[zone] >= number for of, number in pairs])  # noqa: C419
    ]
    if singles:
        return singles
    sums = [(set_sums(of), number) for of, number in pairs]
    for width in range(2, among.bit_count() + 1):
        found = [
            zones
            for zones in sets_of_width(among.bit_length(), width)
            if not zones & ~among and all([of[zones] >= number for of, number in sums])  # noqa: C419
        ]
        if found:
            return found
    return ()


def each_bit(mask: int) -> Iterable[int]:
    """Yields the positions in a set of any size, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def in_set(amounts: Sequence[int], zones: int) -> int:
    """Returns the sum of the amounts on a set of NUMA nodes."""
    return sum([amounts[zone] for zone in members(zones)])


def set_sums(amounts: Sequence[int]) -> list[int]:
    """Returns for every set of NUMA nodes the sum of the amounts on them."""
    sums = [0]
    for amount in amounts:
        sums += [each + amount for each in sums]
    return sums
