"""NUMA nodes against what a pod's own policy binds together: which fit, and how many points each has.

Amounts that a node does not report (memory without the static Memory Manager, CPUs without the static CPU Manager) are
unknown, and never refuse a node.
"""

import functools
from typing import Any

import numpy as np

from kubenexus.api.numa.many_nodes import NumaTable
from kubenexus.api.numa.quick_judgement import some_rows
from kubenexus.plugins.numa.points import (
    NEUTRAL,
    WITH_DEVICES,
    WITHOUT_DEVICES,
    bandwidth_points,
    distance_points,
    fit_points,
    node_points,
    several_points,
    use_after,
    zone_points,
)
from kubenexus.plugins.numa.request import ISOLATED, RESTRICTED, SINGLE, NumaRequest, Wanted, is_intensive

_MEMORY = "memory"


class Zones:
    """One request against the rows of a table. `ids` are the numbers of the NUMA nodes of each row, `apart` the sums of
    their distances to the others."""

    def __init__(self, request: NumaRequest, wanted: Wanted, table: NumaTable, ids: Any, apart: Any) -> None:
        self.request, self.wanted, self.table, self.ids, self.apart = request, wanted, table, ids, apart
        self.avoided = np.isin(ids, request.avoided) if request.avoided else np.zeros(ids.shape, np.bool_)
        self.preferred = np.isin(ids, request.preferred) if request.preferred else np.zeros(ids.shape, np.bool_)
        self.amounts = list(self._amounts())

    def refused(self) -> Any:
        """Returns the rows on which the pod's policy cannot be kept."""
        rows, request = self.table.rows, self.request
        if request.policy not in (SINGLE, RESTRICTED, ISOLATED):
            return np.zeros(rows, np.bool_)
        fits = self.fits(self.amounts)
        if request.policy == ISOLATED:
            return ~(fits & self._idle()).any(axis=1)
        if request.policy == SINGLE:
            refused = ~fits.any(axis=1)
            # A policy that was only inferred does not refuse machines whose NUMA nodes are all too small.
            return refused if request.stated or not refused.any() else refused & (self.needed() == 1)
        return self._free_sets() > self.needed()

    def fits(self, amounts: Any) -> Any:
        """Returns which NUMA nodes have everything free."""
        fits = ~self.avoided
        for number, free, _, known in amounts:
            fits = fits & ((free >= number) | ~known)
        return fits

    def needed(self) -> Any:
        """Returns how many NUMA nodes would do on each row if nothing ran there; one more than there are if none do."""
        return self._fewest([(number, total, total, known) for number, _, total, known in self.amounts])

    def scores(self) -> Any:
        """Returns the score of each row."""
        table, wanted = self.table, self.wanted
        memory = table.all_memory.get(_MEMORY, np.zeros_like(table.all_cpus))
        left = table.free_memory.get(_MEMORY, np.zeros_like(table.all_cpus)) - wanted.memory
        fit = fit_points(use_after(table.free_cpus - wanted.cores, table.all_cpus, left, memory))
        fit = np.where(self.preferred, np.minimum(fit * 1.2, 100), fit)
        bandwidth: Any = NEUTRAL
        if is_intensive(self.request, wanted):
            bandwidth = np.where(memory > 0, bandwidth_points(wanted.memory, memory), NEUTRAL)
        points = zone_points(fit, bandwidth, self._distances(), devices=self._devices())
        fits = self.fits(self.amounts)
        best = np.where(fits, points, -1.0).max(axis=1)
        found = node_points(np.maximum(best, 0))
        several = np.flatnonzero(best < 0)
        if len(several):
            rest = Zones(self.request, wanted, some_rows(table, several), self.ids[several], self.apart[several])
            found[several] = several_points(rest._free_sets())
        return found

    def _amounts(self) -> Any:
        """Yields for each resource the number wanted, what is free and in all on each NUMA node, and on which rows that
        is known."""
        table, wanted = self.table, self.wanted
        if wanted.cores and table.kubelet.static_cpus:
            yield wanted.cores, table.free_cpus, table.all_cpus, np.ones((table.rows, 1), np.bool_)
        if wanted.memory and table.kubelet.static_memory and _MEMORY in table.all_memory:
            total = table.all_memory[_MEMORY]
            yield wanted.memory, table.free_memory[_MEMORY], total, _known(total)
        for resource, number in wanted.devices:
            if resource in table.all_devices:
                total = table.all_devices[resource]
                yield number, table.free_devices[resource], total, _known(total)

    def _idle(self) -> Any:
        """Returns the NUMA nodes on which nothing is in use that is reported."""
        idle = self.table.blocks == 0
        for kind, total in self.table.all_memory.items():
            idle = idle & (self.table.free_memory[kind] == total)
        for resource, total in self.table.all_devices.items():
            idle = idle & (self.table.free_devices[resource] == total)
        return idle & (self.table.free_cpus == self.table.usable_cpus)

    def _free_sets(self) -> Any:
        return self._fewest(self.amounts)

    def _fewest(self, amounts: Any) -> Any:
        """Returns the least number of NUMA nodes that have everything together."""
        count = self.table.zones
        found = np.full(self.table.rows, count + 1)
        members, widths = _sets(count)
        enough = np.ones((self.table.rows, len(widths)), np.bool_)
        for number, free, _, known in amounts:
            enough &= (np.where(self.avoided, 0.0, free) @ members >= number) | ~known
        return np.minimum(found, np.where(enough, widths, count + 1).min(axis=1))

    def _distances(self) -> Any:
        count = self.table.zones
        if count < 2:
            return 100
        return distance_points(self.apart / (count - 1), self.request.weight)

    def _devices(self) -> Any:
        """Returns the points for devices: of several resources the one with the fewest points counts."""
        bonus = np.zeros(self.table.free_cpus.shape, np.int64)
        for resource, number in self.wanted.devices:
            if resource in self.table.all_devices:
                enough = (self.table.free_devices[resource] >= number) & (bonus >= 0)
                here = np.where(enough, WITH_DEVICES, WITHOUT_DEVICES)
                bonus = np.where(_known(self.table.all_devices[resource]), here, bonus)
        return bonus


@functools.cache
def _sets(zones: int) -> tuple[Any, Any]:
    """Returns which NUMA node is in which set, and how many each set has."""
    members = np.array([[sets >> zone & 1 for sets in range(1, 1 << zones)] for zone in range(zones)], np.float64)
    return members, members.sum(axis=0).astype(np.int64)


def _known(total: Any) -> Any:
    """Returns the rows that report anything of a resource by NUMA node."""
    return (total > 0).any(axis=1)[:, None]
