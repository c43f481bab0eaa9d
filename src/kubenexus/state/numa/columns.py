"""The NUMA nodes of all rows: what each node reports, less what pods take that its report has not seen.

    NodeResourceTopology ─ options, pods that it has seen ─▶ base ─ pods placed since ─▶ usage ─▶ columns

A report is some seconds old. A pod that was placed after it takes from the row what its kubelet would give it
(`api.numa.admission`); with the next report it counts as seen once its kubelet has started it. Where the pods explain
the report, it is known what each holds, and that is free as soon as the pod is gone; else with the next report.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubenexus.api.numa.admission import Admission, Allocation, admit_to_managers
from kubenexus.api.numa.machine import MAX_NUMA_NODES, Kubelet, Machine, Usage
from kubenexus.api.numa.many_nodes import NumaTable
from kubenexus.api.numa.pod_demand import PodDemand
from kubenexus.api.numa.replay import listed
from kubenexus.api.numa.reported_node import ReportedNode
from kubenexus.base.arrays import grow
from kubenexus.state.numa.explaining import Explanation, explanation
from kubenexus.state.numa.frame import PLENTY, Frame, RowTotals, make_frame
from kubenexus.state.numa.holdings import Holding, difference, pod_name, usage_key, without, zones_of
from kubenexus.state.numa.kept_zones import KeptZones
from kubenexus.state.numa.zone_states import NO_ZONE, ZoneStates
from kubenexus.state.pods import PodRecord
from kubenexus.state.undo_log import UndoLog

MAX_RESOURCES: Final = 32  # types of memory and resources of devices that have columns
_MAX_REMEMBERED: Final = 4096  # allocations; a gang makes the same one on many equal nodes

Amounts = NDArray[np.int64]


class RowNuma(msgspec.Struct):
    """One row. `usage` is that of now and is not changed in place. `unknown` are pods that the report counts, of which
    it is not known what each holds; `explained` what those hold of which it is. `holdings` are all known ones. `kept`
    are the NUMA nodes that pods keep for themselves, by whom they keep off."""

    reported: ReportedNode
    layout: int
    frame: Frame
    base: Usage  # by the report
    usage: Usage
    unknown: frozenset[str]
    explained: dict[str, Holding]
    holdings: dict[str, Holding]
    kept: dict[str, int] = {}
    totals: RowTotals = RowTotals(0, 0, {})
    codes: list[int] = []  # the states of its NUMA nodes, as in the columns


class _Answer(NamedTuple):
    """What a kubelet says to a pod: the usage then, or why it refuses the pod. The machine is kept alive: its identity
    is part of what the answer is found by."""

    machine: Machine
    usage: Usage | None
    reason: str
    listed: tuple[Allocation, ...] = ()


class NumaColumns:
    """Rows without a report cost nothing. `layouts[row]` is the configuration of a row's kubelet, -1 without a report.
    `codes[:, row]` are the states of its NUMA nodes."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows: dict[int, RowNuma] = {}
        self.any = False  # whether any row has a report
        self.layouts: NDArray[np.int16] = np.full(0, -1, np.int16)
        self.judged: NDArray[np.bool_] = np.zeros(0, np.bool_)  # rows whose kubelet is predicted
        self.unjudged = 0  # rows with NUMA nodes whose kubelet is not
        self.states = ZoneStates()
        self.codes: NDArray[np.intp] = np.zeros((MAX_NUMA_NODES, 0), np.intp)
        self.zones = 0  # the most NUMA nodes of any row so far
        self.free_cpus = self.whole_cores = self.threads = np.zeros(0, np.int64)
        self._free_devices: dict[str, Amounts] = {}
        self._resources: set[str] = set()  # that have columns
        self._machines: dict[Any, Machine] = {}  # equal machines share one object
        self._frames: dict[Any, Frame] = {}
        self._remembered: dict[Any, _Answer] = {}
        self._distances: Amounts | None = None  # of rows whose kubelet looks at them
        self._in_use = 0  # NUMA nodes of all rows
        self.kept = KeptZones()
        self.unusable: dict[int, str] = {}  # rows whose report tells nothing, and why
        self.contradicted: set[int] = set()  # rows whose kubelet refused a pod that we expected it to admit

    @property
    def kinds(self) -> Sequence[tuple[int, Kubelet]]:
        """The number of NUMA nodes and the kubelet of each layout."""
        return self.states.kinds

    def of_row(self, row: int) -> RowNuma | None:
        return self._rows.get(row)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        if len(self.layouts):
            self.layouts = grow(self.layouts, capacity, -1)
            self.judged = grow(self.judged, capacity)
            self.codes = grow(self.codes, capacity)
            self.free_cpus, self.whole_cores = grow(self.free_cpus, capacity), grow(self.whole_cores, capacity)
            self.threads = grow(self.threads, capacity, 1)
            if self._distances is not None:
                self._distances = grow(self._distances, capacity, axis=0)
            self._free_devices = {name: grow(each, capacity, PLENTY) for name, each in self._free_devices.items()}

    # --- reports --------------------------------------------------------------------------------------------------

    def set(self, row: int, reported: ReportedNode, seen: Sequence[PodRecord], later: Iterable[PodRecord]) -> None:
        """Replaces the report of a row, of which `visible` is read. `seen` are pods on it that the report counts,
        `later` the others, in order."""
        if not len(self.layouts):
            self._begin()
        reported = msgspec.structs.replace(reported, machine=self._interned(reported.machine))
        layout = self.states.kind(reported.machine.zones, reported.kubelet)
        pods = {pod_name(record): record.numa for record in seen if record.numa is not None}
        found = self._explained(row, reported, pods)
        self.clear(row)
        frame = self._frame(reported, layout)
        usage, held, unknown = found.usage, found.held, frozenset(pods.keys() - found.held.keys())
        for record in seen:
            if record.numa_kept_from and pod_name(record) in held:
                held[pod_name(record)] = msgspec.structs.replace(
                    held[pod_name(record)], kept_from=record.numa_kept_from
                )
        here = self._rows[row] = RowNuma(reported, layout, frame, usage, usage, unknown, held, held)
        self.any = True
        self.layouts[row], self.judged[row] = layout, reported.judged
        self.unjudged += not reported.judged
        self.threads[row] = frame.threads
        self.zones = max(self.zones, len(frame.zones))
        self._in_use += len(frame.zones)
        if reported.kubelet.prefer_closest:
            self._set_distances(row, reported.machine)
        for record in later:
            self._take(here, record)
        self._write(row)

    def _begin(self) -> None:
        self.layouts = np.full(self._capacity, -1, np.int16)
        self.judged = np.zeros(self._capacity, np.bool_)
        self.codes = np.zeros((MAX_NUMA_NODES, self._capacity), np.intp)
        self.free_cpus, self.whole_cores = np.zeros((2, self._capacity), np.int64)
        self.threads = np.ones(self._capacity, np.int64)

    def _set_distances(self, row: int, machine: Machine) -> None:
        if self._distances is None:
            self._distances = np.zeros((self._capacity, MAX_NUMA_NODES, MAX_NUMA_NODES), np.int64)
        self._distances[row, : machine.zones, : machine.zones] = machine.distances

    def _frame(self, reported: ReportedNode, layout: int) -> Frame:
        key = (id(reported.machine), layout, reported.ids, reported.bandwidths)
        found = self._frames.get(key)
        if found is None:
            if len(self._frames) >= _MAX_REMEMBERED:
                self._frames.clear()
            found = self._frames[key] = make_frame(reported, layout, self._has_columns)
        return found

    def _explained(self, row: int, reported: ReportedNode, pods: Mapping[str, PodDemand]) -> Explanation:
        before = self._rows.get(row)
        if before is None or before.reported.machine is not reported.machine:
            return explanation(reported, pods, {}, {})
        return explanation(reported, pods, before.holdings, before.explained)

    def clear(self, row: int) -> bool:
        """Removes the report of a row. Returns whether there was one."""
        self.unusable.pop(row, None)
        gone = self._rows.pop(row, None)
        if gone is None:
            return False
        self.any = bool(self._rows)
        self.layouts[row] = -1
        self.unjudged -= not gone.reported.judged
        self.contradicted.discard(row)
        self.codes[:, row] = NO_ZONE
        self._in_use -= len(gone.frame.zones)
        self.kept.set(row, gone.kept, {})
        for column in self._free_devices.values():
            column[row] = PLENTY
        return True

    def contradict(self, row: int) -> str:
        """Records that the kubelet of a row refused a pod that was placed there: until its next report, other rows are
        preferred. Returns the likely cause: `no_report`, `unexplained` (pods of which it is not known what they hold),
        `since_report` (pods that the report has not counted), else `report`."""
        here = self._rows.get(row)
        if here is None or not here.reported.judged:
            return "no_report"
        self.contradicted.add(row)
        if here.unknown:
            return "unexplained"
        return "since_report" if here.holdings.keys() - here.explained.keys() else "report"

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
        return self._asked(here, usage, demand).usage

    def refusal(self, here: RowNuma, demand: PodDemand) -> str:
        """Returns the reason for which the kubelet of a row would refuse one more pod; "" if it would not."""
        return self._asked(here, here.usage, demand).reason

    def _asked(self, here: RowNuma, usage: Usage, demand: PodDemand) -> _Answer:
        """Equal questions are answered once: equal nodes ask them, and filter, assign and the ledger in turn."""
        reported = here.reported
        key = (id(reported.machine), here.layout, demand, usage_key(usage))
        known = self._remembered.get(key)
        if known is None:
            fresh = usage.copy()
            said = admit_to_managers(demand, reported.kubelet, reported.machine, fresh)
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[key] = (
                _Answer(reported.machine, None, said.reason)
                if said.reason
                else _Answer(reported.machine, fresh, "", listed(demand, said))
            )
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
        answer = self._asked(here, old, record.numa)
        if answer.usage is None:
            return
        here.usage = answer.usage
        here.holdings = {**here.holdings, name: difference(old, answer.usage, answer.listed, record.numa_kept_from)}

    @staticmethod
    def _give_back(here: RowNuma, name: str) -> None:
        held = here.holdings.get(name)
        if held is None:
            return
        here.usage = without(here.usage, held)
        here.holdings = {key: each for key, each in here.holdings.items() if key != name}

    # --- columns --------------------------------------------------------------------------------------------------

    def codes_of(self, row: int) -> list[int]:
        """Returns the states of a row's NUMA nodes. The caller must not change the list."""
        here = self._rows.get(row)
        return [] if here is None else here.codes

    def free_devices(self, resource: str) -> Amounts | None:
        """Returns how many devices of a resource are free on each row; None if no row reports any."""
        return self._free_devices.get(resource)

    def alike(self, rows: Any) -> tuple[Any, Any]:
        """Returns the positions of rows that are in different states, and for each row which of those it is like."""
        columns = [*self.codes[: self.zones], self.free_cpus, self.whole_cores, self.threads]
        numbers = np.stack([column[rows] for column in (*columns, *self._free_devices.values())])
        factors = np.cumprod(np.full(len(numbers), 0x9E3779B97F4A7C15, np.uint64))
        keys = (numbers.astype(np.uint64) * factors[:, None]).sum(axis=0)
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        if self._distances is not None or (numbers[:, first][:, which] != numbers).any():
            first = which = np.arange(len(rows))  # distances count as well, or two states have the same key
        return first, which

    def table(self, layout: int, rows: Any) -> NumaTable:
        """Returns the table of some rows with this layout, by their numbers."""
        zones, kubelet = self.states.kinds[layout]
        states, codes = self.states, self.codes[:zones, rows].T
        memory = {kind: states.amounts("memory", kind, codes) for kind in states.resources("memory")}
        devices = {name: states.amounts("devices", name, codes) for name in states.resources("devices")}
        free = {name: self._free_devices[name][rows] for name in devices}
        known = {name: np.where(free[name] < PLENTY, 1, 0) for name in devices}
        return NumaTable(
            kubelet,
            zones,
            states.field("all_cpus", codes),
            states.field("free_cpus", codes),
            self.whole_cores[rows],
            self.threads[rows],
            {kind: amounts[0] for kind, amounts in memory.items()},
            {kind: amounts[1] for kind, amounts in memory.items()},
            states.field("group", codes),
            states.field("blocks", codes),
            {name: amounts[0] for name, amounts in devices.items()},
            {name: amounts[1] for name, amounts in devices.items()},
            {name: np.where(known[name], free[name] - devices[name][1].sum(axis=1), 0) for name in devices},
            known,
            np.zeros((len(rows), 0, 0), np.int64) if self._distances is None else self._distances[rows, :zones, :zones],
            states.field("usable_cpus", codes),
        )

    def _write(self, row: int) -> None:
        """Counts a row again, and writes its states and totals into the columns."""
        here, states = self._rows[row], self.states
        codes = here.codes = [states.code(state) for state in here.frame.states(here.usage)]
        here.totals = totals = here.frame.totals(here.usage)
        keeping = [each for each in here.holdings.values() if each.kept_from]
        if keeping or here.kept:
            self._write_kept(row, here, keeping)
        self.codes[: len(codes), row] = codes
        self.free_cpus[row] = totals.cpus
        self.whole_cores[row] = totals.whole_cores
        for resource, number in totals.devices.items():
            column = self._free_devices.get(resource)
            if column is None:
                column = self._free_devices[resource] = np.full(self._capacity, PLENTY, np.int64)
            column[row] = number
        if states.is_crowded(self._in_use):
            self._forget_states()

    def _write_kept(self, row: int, here: RowNuma, keeping: Iterable[Holding]) -> None:
        """Counts again which NUMA nodes pods keep for themselves."""
        before, here.kept = here.kept, {}
        for held in keeping:
            here.kept[held.kept_from] = here.kept.get(held.kept_from, 0) | zones_of(here.reported.machine, held)
        self.kept.set(row, before, here.kept)

    def _forget_states(self) -> None:
        """Forgets states that no row has any more. Each placement may make a new one: memory has many amounts."""
        self.codes = self.states.keep(self.codes)[self.codes]
        for row, here in self._rows.items():
            here.codes = self.codes[: len(here.codes), row].tolist()

    def _has_columns(self, resource: str) -> bool:
        """Returns whether a resource is counted. Nodes may report any names; further ones are not predicted."""
        if len(self._resources) < MAX_RESOURCES:
            self._resources.add(resource)
        return resource in self._resources

    def _interned(self, machine: Machine) -> Machine:
        if len(self._machines) >= _MAX_REMEMBERED:
            self._machines.clear()
            self._remembered.clear()
            self._frames.clear()
        return self._machines.setdefault(_machine_key(machine), machine)


def _machine_key(machine: Machine) -> Any:
    layout = machine.cpus
    return (
        (layout.numa, layout.sockets, layout.cores, machine.reserved, machine.distances),
        tuple(machine.memory.items()),
        tuple(machine.devices.items()),
    )
