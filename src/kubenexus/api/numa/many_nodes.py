"""The judgement of a kubelet about one container on many nodes at once.

Nodes with as many NUMA nodes and equally configured kubelets form a table: a row for each node, a column for each NUMA
node. For a container, every set of NUMA nodes is a column of its own. The result is that of `admission.py` for a pod
that has only this container; of CPUs, numbers count and not which.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubenexus.api.numa.machine import BEST_EFFORT, NONE, SINGLE_NUMA_NODE, Kubelet, Machine, Usage, each_bit
from kubenexus.api.numa.pod_demand import ContainerDemand

Amounts = NDArray[Any]
Sets = NDArray[np.bool_]  # a row for each node, a column for each set of NUMA nodes; column 0 is the empty set
FITS, NO_AFFINITY, NO_WHOLE_CORES, NO_CPUS, NO_MEMORY, NO_DEVICES = range(6)
ANYWHERE: Final = 0  # instead of a set of NUMA nodes: no preference


class NumaTable(msgspec.Struct):
    """Amounts by node and NUMA node. `whole_cores` are free CPUs of cores without a reserved CPU. `loose` are free
    devices that no NUMA node is known of, `known_devices` all devices of a row, `usable_cpus` all CPUs but reserved
    ones."""

    kubelet: Kubelet
    zones: int
    all_cpus: Amounts
    free_cpus: Amounts
    whole_cores: Amounts
    threads: Amounts
    all_memory: dict[str, Amounts]
    free_memory: dict[str, Amounts]
    groups: Amounts
    blocks: Amounts
    all_devices: dict[str, Amounts]
    free_devices: dict[str, Amounts]
    loose_devices: dict[str, Amounts]
    known_devices: dict[str, Amounts]
    distances: Amounts
    usable_cpus: Amounts

    @property
    def rows(self) -> int:
        return len(self.free_cpus)


class Judged(msgspec.Struct, frozen=True):
    """For each row why the container is refused (`FITS`: it is not), and the set of NUMA nodes that it gets."""

    refusals: NDArray[np.int8]
    affinity: NDArray[np.int16]


def countable(machine: Machine) -> bool:
    """Returns whether numbers by NUMA node describe the machine: no device is attached to two."""
    return all(device.numa & (device.numa - 1) == 0 for devices in machine.devices.values() for device in devices)


def numa_table(kubelet: Kubelet, nodes: Sequence[tuple[Machine, Usage]]) -> NumaTable:
    """Returns the table of some nodes, which have equally many NUMA nodes. For tests and small clusters: the columns
    of the scheduler's state are kept by row (`state.numa`)."""
    zones = nodes[0][0].zones

    def column(amount: Callable[[Machine, Usage], Sequence[int] | int]) -> Amounts:
        return np.array([amount(machine, usage) for machine, usage in nodes], np.int64)

    def by_zone(machine: Machine, cpus: int) -> list[int]:
        return [(each & cpus).bit_count() for each in machine.cpus.numa]

    types = sorted({kind for machine, _ in nodes for kind in machine.memory})
    resources = sorted({name for machine, _ in nodes for name in machine.devices})
    nothing = (0,) * zones
    return NumaTable(
        kubelet,
        zones,
        column(lambda machine, _: by_zone(machine, -1)),
        column(lambda machine, usage: by_zone(machine, usage.cpus)),
        column(lambda machine, usage: (usage.cpus & ~machine.cpus.whole_cores(machine.reserved)).bit_count()),
        column(lambda machine, _: machine.cpus.threads),
        {kind: column(lambda machine, _, kind=kind: machine.memory.get(kind, nothing)) for kind in types},  # type: ignore[misc]
        {kind: column(lambda _, usage, kind=kind: usage.memory.get(kind, nothing)) for kind in types},  # type: ignore[misc]
        column(lambda _, usage: usage.groups),
        column(lambda _, usage: usage.blocks),
        {name: column(lambda machine, _, name=name: devices_by_zone(machine, name)) for name in resources},  # type: ignore[misc]
        {
            name: column(lambda machine, usage, name=name: devices_by_zone(machine, name, usage.devices.get(name, 0)))  # type: ignore[misc]
            for name in resources
        },
        {
            name: column(lambda machine, usage, name=name: loose_devices(machine, name, usage.devices.get(name, 0)))  # type: ignore[misc]
            for name in resources
        },
        {name: column(lambda machine, _, name=name: len(machine.devices.get(name, ()))) for name in resources},  # type: ignore[misc]
        column(lambda machine, _: machine.distances or ((10,) * zones,) * zones),  # type: ignore[arg-type, return-value]
        column(lambda machine, _: by_zone(machine, ~machine.reserved)),
    )


def devices_by_zone(machine: Machine, resource: str, chosen: int = -1) -> list[int]:
    """Returns how many of some devices are on each NUMA node."""
    counts = [0] * machine.zones
    for index, device in enumerate(machine.devices.get(resource, ())):
        if chosen >> index & 1 and device.numa:
            counts[device.numa.bit_length() - 1] += 1
    return counts


def loose_devices(machine: Machine, resource: str, chosen: int) -> int:
    """Returns how many of some devices no NUMA node is known of."""
    devices = machine.devices.get(resource, ())
    return sum(1 for index in each_bit(chosen) if not devices[index].numa)


def judge_rows(container: ContainerDemand, table: NumaTable) -> Judged:
    """Returns for each row whether its kubelet would admit a pod of this one container."""
    judging = _Judging(container, table)
    judging.align()
    judging.allocate()
    return Judged(judging.refusals, judging.affinity)


@functools.cache
def _membership(zones: int) -> Amounts:
    """Returns a matrix: which NUMA node (row) is in which set (column)."""
    return np.array([[zones_of >> zone & 1 for zones_of in range(1 << zones)] for zone in range(zones)], np.int64)


@functools.cache
def _float_membership(zones: int) -> NDArray[np.float64]:
    return _membership(zones).astype(np.float64)  # a product of floats is ten times as fast as one of integers


@functools.cache
def _widths(zones: int) -> Amounts:
    widths: Amounts = _membership(zones).sum(axis=0)
    return widths


def _in_sets(amounts: Amounts, zones: int) -> Amounts:
    """Returns the sum over every set of NUMA nodes, for each row."""
    sums: Amounts = amounts.astype(np.float64) @ _float_membership(zones)  # exact: no amount is above 2**53
    return sums


class _Judging:
    """One container against the rows of a table."""

    def __init__(self, container: ContainerDemand, table: NumaTable) -> None:
        self.container, self.table = container, table
        self.kubelet, self.zones = table.kubelet, table.zones
        self.refusals = np.zeros(table.rows, np.int8)
        self.affinity = np.full(table.rows, ANYWHERE, np.int16)
        self.preferred = np.zeros(table.rows, np.bool_)
        self.cpus = container.cpus if self.kubelet.static_cpus else 0
        self.memory = dict(container.memory or ()) if self.kubelet.static_memory else {}
        self.unreadable = self.kubelet.static_memory and container.memory is None
        self.memory_sets: Sets | None = None
        self.memory_preferred: Sets | None = None
        if self.memory:
            self.memory_sets, self.memory_preferred = self._memory_sets()

    def align(self) -> None:
        """Merges the hints of all resources (`merge.py`)."""
        if self.kubelet.policy == NONE:
            return
        told = [each for each in (*self._device_hints(), self._cpu_hints(), self._memory_hints()) if each is not None]
        everywhere = (1 << self.zones) - 1
        common = np.ones((self.table.rows, 1 << self.zones), np.bool_)
        cares = np.zeros(self.table.rows, np.bool_)
        for fits, preferred, caring in told:
            common &= (fits & preferred) | ~caring[:, None]
            cares |= caring
        common[:, 0] = False
        if self.kubelet.policy == SINGLE_NUMA_NODE:
            common &= _widths(self.zones) == 1
        found = common.any(axis=1) | ~cares
        self.affinity[:] = np.where(cares, self._fittest(common), everywhere)
        self.preferred[:] = found
        if self.kubelet.policy == BEST_EFFORT:
            for row in np.flatnonzero(~found):
                self.affinity[row] = self._widest_intersection(row, told)
        else:
            self.refusals[~found] = NO_AFFINITY
        if self.kubelet.policy == SINGLE_NUMA_NODE:
            self.affinity[self.affinity == everywhere] = ANYWHERE

    def allocate(self) -> None:
        """Allocates devices, CPUs and memory, in this order; the first that fails is the refusal."""
        for resource, number in self.container.devices:
            if resource in self.table.free_devices:
                free = self.table.free_devices[resource].sum(axis=1) + self.table.loose_devices[resource]
                self._refuse((self.table.known_devices[resource] > 0) & (free < number), NO_DEVICES)
        if self.cpus:
            if self.kubelet.full_cores_only:
                self._refuse(self.cpus % np.maximum(self.table.threads, 1) != 0, NO_WHOLE_CORES)
                self._refuse(self.table.whole_cores < self.cpus, NO_WHOLE_CORES)
            self._refuse(self.table.free_cpus.sum(axis=1) < self.cpus, NO_CPUS)
        if self.unreadable:
            self._refuse(np.ones(self.table.rows, np.bool_), NO_MEMORY)
        elif self.memory:
            self._allocate_memory()

    def _refuse(self, where: Sets, reason: int) -> None:
        self.refusals[where & (self.refusals == FITS)] = reason

    # --- hints: which sets fit, which are preferred, and on which rows the resource cares at all -------------------

    def _cpu_hints(self) -> tuple[Sets, Sets, Sets] | None:
        if not self.cpus:
            return None
        table = self.table
        occupied = (table.all_cpus > 0) @ (1 << np.arange(self.zones))
        inside = (np.arange(1 << self.zones)[None, :] & ~occupied[:, None]) == 0
        enough = (_in_sets(table.all_cpus, self.zones) >= self.cpus) & inside
        fits = (_in_sets(table.free_cpus, self.zones) >= self.cpus) & inside
        width = self._narrowest(enough, (table.all_cpus > 0).sum(axis=1))
        return fits, _widths(self.zones)[None, :] == width[:, None], np.ones(table.rows, np.bool_)

    def _device_hints(self) -> list[tuple[Sets, Sets, Sets]]:
        found: list[tuple[Sets, Sets, Sets]] = []
        for resource, number in self.container.devices:
            total = self.table.all_devices.get(resource)
            if total is None:
                continue
            free, hosts = self.table.free_devices[resource], (total > 0) @ (1 << np.arange(self.zones))
            inside = (np.arange(1 << self.zones)[None, :] & ~hosts[:, None]) == 0
            fits = (_in_sets(free, self.zones) >= number) & inside
            fits &= (free.sum(axis=1) + self.table.loose_devices[resource] >= number)[:, None]
            width = self._narrowest((_in_sets(total, self.zones) >= number) & inside, (total > 0).sum(axis=1))
            found.append((fits, _widths(self.zones)[None, :] == width[:, None], hosts > 0))
        return found

    def _memory_hints(self) -> tuple[Sets, Sets, Sets] | None:
        if self.memory_sets is None or self.memory_preferred is None:
            return None
        caring: Sets = np.asarray(self.memory_sets.any(axis=1))
        return self.memory_sets, self.memory_preferred, caring

    def _memory_sets(self) -> tuple[Sets, Sets]:
        """Returns the sets that have the memory, and which are preferred (`MemoryManager._sets`)."""
        table, zones = self.table, self.zones
        enough = np.ones((table.rows, 1 << zones), np.bool_)
        fits = np.ones_like(enough)
        nothing = np.zeros((table.rows, zones), np.int64)
        for kind, size in self.memory.items():
            enough &= _in_sets(table.all_memory.get(kind, nothing), zones) >= size
            fits &= _in_sets(table.free_memory.get(kind, nothing), zones) >= size
        enough[:, 0] = False
        width = self._narrowest(enough, np.full(table.rows, zones))
        return enough & fits & ~self._blocked_sets(), _widths(zones)[None, :] == width[:, None]

    def _blocked_sets(self) -> Sets:
        """Returns the sets that blocks of memory on their NUMA nodes exclude."""
        every, inside = np.arange(1 << self.zones), _membership(self.zones) > 0
        blocked = np.zeros((self.table.rows, 1 << self.zones), np.bool_)
        if not self.table.blocks.any():
            return blocked
        for zone in range(self.zones):
            other = self.table.groups[:, zone, None] != every[None, :]
            blocked |= other & (self.table.blocks[:, zone, None] > 0) & inside[zone]
        for zone in range(self.zones):  # a NUMA node of its own: blocks of its own do not exclude it
            blocked[:, 1 << zone] = self.table.groups[:, zone] != 1 << zone
        return blocked

    def _narrowest(self, enough: Sets, otherwise: Amounts) -> Amounts:
        widths: Amounts = np.where(enough, _widths(self.zones)[None, :], self.zones + 1)[:, 1:].min(axis=1)
        return np.where(widths <= self.zones, widths, otherwise)

    # --- choosing ---------------------------------------------------------------------------------------------------

    def _fittest(self, sets: Sets) -> Amounts:
        """Returns the best of the sets of each row: the narrowest, then the closest if asked for, then the lowest."""
        every = np.arange(1 << self.zones)
        rank = (_widths(self.zones) << 24) + every
        ranks: Amounts = np.broadcast_to(rank, sets.shape)
        if self.kubelet.prefer_closest and self.kubelet.policy != SINGLE_NUMA_NODE:
            inside = _membership(self.zones)
            apart = np.einsum("zs,rzy,ys->rs", inside, self.table.distances, inside)
            ranks = ranks + (apart << 8)
        best: Amounts = np.where(sets, ranks, np.iinfo(np.int64).max).argmin(axis=1)
        return best

    def _widest_intersection(self, row: Any, told: Sequence[tuple[Sets, Sets, Sets]]) -> int:
        """Returns the set that `best-effort` gives where no set is preferred by all (`merge._best_effort`)."""
        found, width = {(1 << self.zones) - 1}, 0
        for fits, _, caring in told:
            sets = np.flatnonzero(fits[row, 1:]) + 1
            if caring[row] and len(sets):
                found = {zones & int(other) for zones in found for other in sets}
                width = max(width, int(_widths(self.zones)[sets].min()))
        found.discard(0)
        if not found:
            return (1 << self.zones) - 1
        narrow = [zones for zones in found if zones.bit_count() <= width]
        most = max(zones.bit_count() for zones in narrow) if narrow else min(zones.bit_count() for zones in found)
        chosen = np.zeros((self.table.rows, 1 << self.zones), np.bool_)
        chosen[row, [zones for zones in (narrow or found) if zones.bit_count() == most]] = True
        return int(self._fittest(chosen)[row])

    def _allocate_memory(self) -> None:
        """Refuses rows whose memory cannot be taken on the NUMA nodes chosen, nor on more (`MemoryManager._choose`)."""
        sets, preferred = self.memory_sets, self.memory_preferred
        assert sets is not None
        assert preferred is not None
        chosen, wanted = self.affinity.astype(np.int64), self.preferred.copy()
        anywhere = chosen == ANYWHERE
        best = self._best_memory(sets, preferred)
        rows = np.arange(self.table.rows)
        self._refuse(anywhere & ~sets.any(axis=1), NO_MEMORY)
        self._refuse(anywhere & wanted & ~preferred[rows, best], NO_MEMORY)
        wanted[anywhere] = preferred[rows, best][anywhere]
        chosen[anywhere] = best[anywhere]
        enough = np.ones(self.table.rows, np.bool_)
        nothing = np.zeros((self.table.rows, self.zones), np.int64)
        for kind, size in self.memory.items():
            enough &= _in_sets(self.table.free_memory.get(kind, nothing), self.zones)[rows, chosen] >= size
        every = np.arange(1 << self.zones)
        wider = sets & ((chosen[:, None] & ~every[None, :]) == 0)
        extended = self._best_memory(wider, preferred)
        short = ~enough
        self._refuse(short & ~wider.any(axis=1), NO_MEMORY)
        self._refuse(short & wanted & ~preferred[rows, extended], NO_MEMORY)
        chosen[short] = extended[short]
        several = _widths(self.zones)[chosen] > 1
        self._refuse(several & self._blocked_sets()[rows, chosen], NO_MEMORY)

    def _best_memory(self, sets: Sets, preferred: Sets) -> Amounts:
        """Returns a preferred set if there is one, then the narrowest, then the lowest."""
        rank = (_widths(self.zones) << 8) + np.arange(1 << self.zones)
        ranks = np.where(sets, rank[None, :] + np.where(preferred, 0, 1 << 16), np.iinfo(np.int64).max)
        best: Amounts = ranks.argmin(axis=1)
        return best


def described(refusal: int, container: str) -> str:
    """Returns why a kubelet would refuse a container."""
    return _TEXTS[refusal].format(container=container)


_TEXTS: Final[Mapping[int, str]] = {
    FITS: "",
    NO_AFFINITY: "no NUMA nodes for {container} that all its resources prefer",
    NO_WHOLE_CORES: "not enough whole cores for {container}",
    NO_CPUS: "not enough exclusive CPUs for {container}",
    NO_MEMORY: "no NUMA nodes with the memory of {container}",
    NO_DEVICES: "not enough devices for {container}",
}
