"""The NUMA nodes of all rows: what each node reports, less what pods take that its report has not seen.

    NodeResourceTopology ─ options, pods that it has seen ─▶ base ─ pods placed since ─▶ usage ─▶ columns

A report is some seconds old. A pod that was placed after it takes from the row what its kubelet would give it
(`api.numa.admission`); with the next report it counts as seen once its kubelet has started it. Where the pods explain
the report, it is known what each holds, and that is free as soon as the pod is gone; else with the next report.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubenexus.api.numa.admission import Admission, admit_to_managers
from kubenexus.api.numa.machine import MAX_NUMA_NODES, Kubelet, Machine, Usage
from kubenexus.api.numa.many_nodes import NumaTable, devices_by_zone, loose_devices
from kubenexus.api.numa.pod_demand import PodDemand
from kubenexus.api.numa.reported_node import ReportedNode
from kubenexus.base.arrays import grow
from kubenexus.state.numa.holdings import Holding, difference, explains, pod_name, usage_of, without
from kubenexus.state.pods import PodRecord
from kubenexus.state.undo_log import UndoLog

MAX_RESOURCES: Final = 32  # types of memory and resources of devices that have columns
_MAX_REMEMBERED: Final = 4096  # allocations; a gang makes the same one on many equal nodes

Amounts = NDArray[np.int64]


class RowNuma(msgspec.Struct):
    """One row. `usage` is that of now and is not changed in place. `unknown` are pods that the report counts, of which
    it is not known what each holds; `explained` what those hold of which it is. `holdings` are all known ones."""

    reported: ReportedNode
    layout: int
    base: Usage  # by the report
    usage: Usage
    unknown: frozenset[str]
    explained: dict[str, Holding]
    holdings: dict[str, Holding]


class NumaColumns:
    """Rows without a report cost nothing. `layouts[row]` is the kind of table that a row is in, -1 for none."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows: dict[int, RowNuma] = {}
        self.layouts: NDArray[np.int16] = np.full(0, -1, np.int16)
        self._kinds: list[tuple[int, Kubelet]] = []
        self._by_zone: dict[tuple[str, str], Amounts] = {}  # by (what, resource): (rows, 8)
        self._by_row: dict[tuple[str, str], Amounts] = {}
        self._distances: Amounts = np.zeros((0, MAX_NUMA_NODES, MAX_NUMA_NODES), np.int64)
        self._resources: set[str] = set()  # that have columns
        self._machines: dict[Any, Machine] = {}  # equal machines share one object
        self._remembered: dict[Any, tuple[Machine, Usage | None, str]] = {}
        self._in_layout: list[int] = []  # rows of each layout

    @property
    def any(self) -> bool:
        """Whether any row has a report."""
        return bool(self._rows)

    @property
    def kinds(self) -> Sequence[tuple[int, Kubelet]]:
        """The number of NUMA nodes and the kubelet of each layout."""
        return self._kinds

    def of_row(self, row: int) -> RowNuma | None:
        return self._rows.get(row)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        if len(self.layouts):
            self.layouts = grow(self.layouts, capacity, -1)
            self._by_zone = {key: grow(each, capacity, axis=0) for key, each in self._by_zone.items()}
            self._by_row = {key: grow(each, capacity) for key, each in self._by_row.items()}
            self._distances = grow(self._distances, capacity, axis=0)

    # --- reports --------------------------------------------------------------------------------------------------

    def set(self, row: int, reported: ReportedNode, seen: Sequence[PodRecord], later: Iterable[PodRecord]) -> None:
        """Replaces the report of a row. `later` are pods on it that the report has not seen, in order."""
        if not len(self.layouts):
            self.layouts = np.full(self._capacity, -1, np.int16)
            self._distances = np.zeros((self._capacity, MAX_NUMA_NODES, MAX_NUMA_NODES), np.int64)
        reported = msgspec.structs.replace(reported, machine=self._interned(reported.machine))
        layout = self._layout(reported)
        usage, held = self._explained(row, reported, [record for record in seen if record.numa is not None])
        unknown = frozenset(() if held else (pod_name(record) for record in seen if record.numa is not None))
        if row not in self._rows or self._rows[row].layout != layout:
            self.clear(row)
            self._in_layout[layout] += 1
        self._rows[row] = RowNuma(reported, layout, usage, usage, unknown, held, held)
        self.layouts[row] = layout
        for column in (*self._by_zone.values(), *self._by_row.values()):
            column[row] = 0
        zones = reported.machine.zones
        self._distances[row, :zones, :zones] = reported.machine.distances
        for record in later:
            self._take(self._rows[row], record)
        self._write(row)

    def _explained(
        self, row: int, reported: ReportedNode, seen: Sequence[PodRecord]
    ) -> tuple[Usage, dict[str, Holding]]:
        """Returns the usage by the report, and what each pod holds if that is known: as predicted when the pods were
        placed, if the report agrees, or by admitting them again."""
        names, steps = [pod_name(record) for record in seen], reported.steps
        before = self._rows.get(row)
        if before is not None and before.reported.machine is reported.machine and names:
            known = [before.holdings[name] for name in names if name in before.holdings]
            usage = usage_of(reported.machine, known)
            demands = [record.numa for record in seen if record.numa is not None]
            if len(known) == len(names) and explains(reported.machine, usage, reported.visible, demands):
                return usage, dict(zip(names, known, strict=True))
        if len(steps) == len(names) + 1:
            pairs = zip(names, steps, steps[1:], strict=False)
            return reported.usage, {name: difference(one, other) for name, one, other in pairs}
        return reported.usage, {}

    def clear(self, row: int) -> bool:
        """Removes the report of a row. Returns whether there was one."""
        gone = self._rows.pop(row, None)
        if gone is None:
            return False
        self.layouts[row] = -1
        self._in_layout[gone.layout] -= 1
        return True

    # --- pods -----------------------------------------------------------------------------------------------------

    def add_pod(self, row: int, record: PodRecord, undo: UndoLog | None = None) -> None:
        """Takes from a row what its kubelet would give the pod; nothing if it would refuse the pod."""
        self._change(row, lambda here: self._take(here, record), undo)

    def remove_pod(self, row: int, record: PodRecord, undo: UndoLog | None = None) -> None:
        """Gives back what a pod took. What the report counts for it stays counted until the next report."""
        self._change(row, lambda here: self._give_back(here, pod_name(record)), undo)

    def clear_use(self, row: int, residents: Iterable[PodRecord]) -> None:
        """Goes back to the report: removes all pods that it has not seen, and those that are gone since."""
        here = self._rows.get(row)
        if here is None:
            return
        here.usage, here.holdings = here.base, here.explained
        present = {pod_name(record) for record in residents}
        for name in [name for name in here.explained if name not in present]:
            self._give_back(here, name)
        self._write(row)

    def admit(self, here: RowNuma, demand: PodDemand) -> Admission:
        """Returns what the kubelet of a row would say to one more pod."""
        reported = here.reported
        return admit_to_managers(demand, reported.kubelet, reported.machine, here.usage.copy())

    def after(self, here: RowNuma, usage: Usage, demand: PodDemand) -> Usage | None:
        """Returns the usage once a pod has been admitted, None if it is refused."""
        return self._asked(here, usage, demand)[1]

    def refusal(self, here: RowNuma, demand: PodDemand) -> str:
        """Returns the reason for which the kubelet of a row would refuse one more pod; "" if it would not."""
        return self._asked(here, here.usage, demand)[2]

    def _asked(self, here: RowNuma, usage: Usage, demand: PodDemand) -> tuple[Machine, Usage | None, str]:
        """Equal questions are answered once: equal nodes ask them, and filter, assign and the ledger in turn."""
        reported = here.reported
        key = (id(reported.machine), here.layout, demand, _usage_key(usage))
        known = self._remembered.get(key)
        if known is None:
            fresh = usage.copy()
            reason = admit_to_managers(demand, reported.kubelet, reported.machine, fresh).reason
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[key] = (reported.machine, None if reason else fresh, reason)
        return known

    def _change(self, row: int, change: Callable[[RowNuma], None], undo: UndoLog | None) -> None:
        here = self._rows.get(row)
        if here is None:
            return
        before = here.usage, here.holdings
        change(here)
        if here.usage is before[0]:
            return
        self._write(row)
        if undo is not None:
            undo.call(lambda: self._restore(row, here, before))

    def _restore(self, row: int, here: RowNuma, before: tuple[Usage, dict[str, Holding]]) -> None:
        here.usage, here.holdings = before
        self._write(row)

    def _take(self, here: RowNuma, record: PodRecord) -> None:
        name = pod_name(record)
        if record.numa is None or name in here.unknown or name in here.holdings:
            return
        old = here.usage
        fresh = self.after(here, old, record.numa)
        if fresh is None:
            return
        here.usage = fresh
        here.holdings = {**here.holdings, name: difference(old, fresh)}

    @staticmethod
    def _give_back(here: RowNuma, name: str) -> None:
        held = here.holdings.get(name)
        if held is None:
            return
        here.usage = without(here.usage, held)
        here.holdings = {key: each for key, each in here.holdings.items() if key != name}

    # --- columns --------------------------------------------------------------------------------------------------

    def covers(self, size: int) -> int | None:
        """Returns the layout that all of the first `size` rows have, if they have one."""
        return next((layout for layout, rows in enumerate(self._in_layout) if rows == size), None)

    def table(self, layout: int, rows: Any) -> NumaTable:
        """Returns the table of some rows with this layout: their numbers, or a slice."""
        zones, kubelet = self._kinds[layout]

        def all_of(what: str, columns: dict[tuple[str, str], Amounts]) -> dict[str, Amounts]:
            return {
                name: values[rows, :zones] if values.ndim > 1 else values[rows]
                for (of, name), values in columns.items()
                if of == what
            }

        def one(what: str) -> Amounts:
            return self._by_zone[what, ""][rows, :zones]

        return NumaTable(
            kubelet,
            zones,
            one("all cpus"),
            one("free cpus"),
            self._by_row["whole cores", ""][rows],
            self._by_row["threads", ""][rows],
            all_of("all memory", self._by_zone),
            all_of("free memory", self._by_zone),
            one("groups"),
            one("blocks"),
            all_of("all devices", self._by_zone),
            all_of("free devices", self._by_zone),
            all_of("loose devices", self._by_row),
            all_of("known devices", self._by_row),
            self._distances[rows, :zones, :zones],
            one("usable cpus"),
        )

    def zone_ids(self, layout: int, rows: Any) -> Amounts:
        """Returns the numbers of the NUMA nodes of some rows with this layout."""
        return self._by_zone["ids", ""][rows, : self._kinds[layout][0]]

    def distances(self, layout: int, rows: Any) -> Amounts:
        """Returns the sum of the distances of each NUMA node to the others."""
        return self._by_zone["distances", ""][rows, : self._kinds[layout][0]]

    def _layout(self, reported: ReportedNode) -> int:
        kind = (reported.machine.zones, reported.kubelet)
        if kind not in self._kinds:
            self._kinds.append(kind)
            self._in_layout.append(0)
        return self._kinds.index(kind)

    def _write(self, row: int) -> None:
        """Writes the numbers of a row into the columns."""
        here = self._rows[row]
        machine, usage = here.reported.machine, here.usage
        self._put("all cpus", "", row, [cpus.bit_count() for cpus in machine.cpus.numa])
        self._put("usable cpus", "", row, [(cpus & ~machine.reserved).bit_count() for cpus in machine.cpus.numa])
        self._put("ids", "", row, here.reported.ids)
        apart = [sum(distances) - distances[zone] for zone, distances in enumerate(machine.distances)]
        self._put("distances", "", row, apart)
        self._put("free cpus", "", row, [(cpus & usage.cpus).bit_count() for cpus in machine.cpus.numa])
        self._put("groups", "", row, usage.groups)
        self._put("blocks", "", row, usage.blocks)
        whole = (usage.cpus & ~machine.cpus.whole_cores(machine.reserved)).bit_count() if usage.cpus else 0
        self._put_one("whole cores", "", row, whole)
        self._put_one("threads", "", row, machine.cpus.threads)
        for kind, amounts in machine.memory.items():
            if not self._has_columns(kind):
                continue
            self._put("all memory", kind, row, amounts)
            self._put("free memory", kind, row, usage.memory[kind])
        for resource, devices in machine.devices.items():
            if not self._has_columns(resource):
                continue
            free = usage.devices[resource]
            self._put("all devices", resource, row, devices_by_zone(machine, resource))
            self._put("free devices", resource, row, devices_by_zone(machine, resource, free))
            self._put_one("loose devices", resource, row, loose_devices(machine, resource, free))
            self._put_one("known devices", resource, row, len(devices))

    def _has_columns(self, resource: str) -> bool:
        """Returns whether a resource is counted. Nodes may report any names; further ones are not predicted."""
        if len(self._resources) < MAX_RESOURCES:
            self._resources.add(resource)
        return resource in self._resources

    def _interned(self, machine: Machine) -> Machine:
        if len(self._machines) >= _MAX_REMEMBERED:
            self._machines.clear()
            self._remembered.clear()
        return self._machines.setdefault(_machine_key(machine), machine)

    def _put(self, what: str, name: str, row: int, amounts: Sequence[int]) -> None:
        column = self._by_zone.get((what, name))
        if column is None:
            column = self._by_zone[what, name] = np.zeros((self._capacity, MAX_NUMA_NODES), np.int64)
        column[row, : len(amounts)] = amounts

    def _put_one(self, what: str, name: str, row: int, amount: int) -> None:
        column = self._by_row.get((what, name))
        if column is None:
            column = self._by_row[what, name] = np.zeros(self._capacity, np.int64)
        column[row] = amount


def _machine_key(machine: Machine) -> Any:
    layout = machine.cpus
    return (
        (layout.numa, layout.sockets, layout.cores, machine.reserved, machine.distances),
        tuple(machine.memory.items()),
        tuple(machine.devices.items()),
    )


def _usage_key(usage: Usage) -> Any:
    return (
        usage.cpus,
        tuple(tuple(amounts) for amounts in usage.memory.values()),
        tuple(usage.groups),
        tuple(usage.blocks),
        tuple(usage.devices.values()),
    )
