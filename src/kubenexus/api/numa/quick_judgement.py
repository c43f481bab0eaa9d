"""The refusals of `many_nodes.judge_rows`, without looking at all sets of NUMA nodes where single ones decide.

Under `single-numa-node` and `restricted` a set is preferred that is as narrow as possible. Where one NUMA node of the
empty machine has enough of every resource, only single NUMA nodes are: eight columns instead of 255. Without static
memory, `best-effort` and `none` refuse only for lack of totals. All other rows are judged in full.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kubenexus.api.numa.machine import BEST_EFFORT, NONE
from kubenexus.api.numa.many_nodes import (
    FITS,
    NO_AFFINITY,
    NO_CPUS,
    NO_DEVICES,
    NO_WHOLE_CORES,
    NumaTable,
    judge_rows,
)
from kubenexus.api.numa.pod_demand import ContainerDemand

Mask = NDArray[np.bool_]
_CHUNK: Final = 1 << 15  # rows times sets of NUMA nodes that are judged at once: more leave the cache of a core


def refusals(container: ContainerDemand, table: NumaTable) -> NDArray[np.int8]:
    """Returns for each row why its kubelet would refuse a pod of this one container; FITS: it would not."""
    kubelet = table.kubelet
    memory = (container.memory or ()) if kubelet.static_memory else ()
    if kubelet.static_memory and container.memory is None:
        return judge_rows(container, table).refusals
    found = np.zeros(table.rows, np.int8)
    open_rows: Mask
    if kubelet.policy in (NONE, BEST_EFFORT):
        if memory:
            return judge_rows(container, table).refusals
        open_rows = np.zeros(table.rows, np.bool_)
    else:
        open_rows = _align(container, table, memory, found)
    _totals(container, table, found)
    if open_rows.any():
        rows = np.flatnonzero(open_rows)
        size = max(_CHUNK >> table.zones, 1)
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            found[part] = judge_rows(container, some_rows(table, part)).refusals
    return found


def some_rows(table: NumaTable, rows: Any) -> NumaTable:
    """Returns the table of some of its rows."""

    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: column[rows] for name, column in value.items()}
        return value[rows] if isinstance(value, np.ndarray) else value

    return NumaTable(*(of(getattr(table, name)) for name in NumaTable.__struct_fields__))


def _align(
    container: ContainerDemand, table: NumaTable, memory: Sequence[tuple[str, int]], found: NDArray[np.int8]
) -> Mask:
    """Refuses rows where no NUMA node has everything free that one should have. Returns the rows that single NUMA nodes
    do not decide."""
    fits = np.ones(table.free_cpus.shape, np.bool_)
    undecided = np.zeros(table.rows, np.bool_)
    cpus = container.cpus if table.kubelet.static_cpus else 0
    asks = bool(cpus or memory)
    if cpus:
        fits &= (table.free_cpus >= cpus) & (table.all_cpus > 0)
        undecided |= ~(table.all_cpus >= cpus).any(axis=1)
    if memory:
        enough = np.ones(table.free_cpus.shape, np.bool_)
        free = table.groups == 1 << np.arange(table.zones)
        for kind, size in memory:
            total = table.all_memory.get(kind)
            if total is None:
                return np.ones(table.rows, np.bool_)
            enough &= total >= size
            free &= table.free_memory[kind] >= size
        free &= enough
        fits &= free
        undecided |= ~free.any(axis=1)  # without any set of NUMA nodes memory would not care
    for resource, number in container.devices:
        total = table.all_devices.get(resource)
        if total is None:
            continue
        asks = True
        cares: Mask = np.asarray((total > 0).any(axis=1))
        fits &= ((table.free_devices[resource] >= number) & (total > 0)) | ~cares[:, None]
        undecided |= cares & ~(total >= number).any(axis=1)
    if asks:
        found[~fits.any(axis=1)] = NO_AFFINITY
        undecided |= ~_asked(table, container, cpus, memory)
    return undecided


def _asked(table: NumaTable, container: ContainerDemand, cpus: int, memory: Sequence[Any]) -> Mask:
    """Returns the rows on which any resource cares; on the others every set is preferred, the widest is taken."""
    if cpus or memory:
        return np.ones(table.rows, np.bool_)
    cares = np.zeros(table.rows, np.bool_)
    for resource, _ in container.devices:
        if resource in table.all_devices:
            cares |= (table.all_devices[resource] > 0).any(axis=1)
    return cares


def _totals(container: ContainerDemand, table: NumaTable, found: NDArray[np.int8]) -> None:
    """Refuses rows that have too little in all, in the order of the managers."""
    for resource, number in container.devices:
        if resource in table.free_devices:
            free = table.free_devices[resource].sum(axis=1) + table.loose_devices[resource]
            _refuse(found, (table.known_devices[resource] > 0) & (free < number), NO_DEVICES)
    cpus = container.cpus if table.kubelet.static_cpus else 0
    if cpus:
        if table.kubelet.full_cores_only:
            _refuse(found, cpus % np.maximum(table.threads, 1) != 0, NO_WHOLE_CORES)
            _refuse(found, table.whole_cores < cpus, NO_WHOLE_CORES)
        _refuse(found, table.free_cpus.sum(axis=1) < cpus, NO_CPUS)


def _refuse(found: NDArray[np.int8], where: Mask, reason: int) -> None:
    found[where & (found == FITS)] = reason
