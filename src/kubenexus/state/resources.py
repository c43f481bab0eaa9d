"""Resources as numbers: `alloc[r, n]` and `used[r, n]` of resource r on row n. cpu is in milli, all else in units.

The amounts of a row are adjacent in memory (`by_row`): a placement writes to one place, and a repair of the row reads
from one place. The columns over all rows that plugins read are views of `by_row`, or tables made from it (see `view`).

Only nodes add resources. A pod may request a resource that no node ever offered; it gets the all-zero resource
`NOTHING`, and no array grows.
"""

from typing import Any, NamedTuple

import numpy as np

from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.base.arrays import AMOUNT_CAP, FLOAT_EXACT_MAX, IntColumn, grow
from kubenexus.state.footprint import Footprint
from kubenexus.state.undo_log import UndoLog

CPU, MEMORY, PODS, EPHEMERAL, NOTHING = range(5)
USED, NONZERO, ENDLESS = range(3)  # the tables of sums
# `NOTHING` is an all-zero resource that replaces every resource no node ever offered.
COMMON_RESOURCES = [CPU, MEMORY, PODS]  # requested by nearly every pod
# Nodes of one cluster offer some dozens. Each further one takes 32 bytes a row, so ten thousand would take gigabytes.
# Further names count as offered nowhere.
MAX_RESOURCES = 256
BASICS = ("cpu", "memory", "pods", "ephemeral-storage", "")


class ResourceLayout(NamedTuple):
    """The indices of resources that are requested together. `common`: they are the first of cpu, memory and pods;
    `exact`: floats hold what any node offers of them; `fewest`: at least so many rows offer each."""

    rows: list[int]
    common: bool
    exact: bool
    fewest: int


class ResourceColumns:
    """`nonzero` is `used` with a default for containers without cpu or memory requests; scoring reads it. `endless` is
    the part of `used` held by pods that never end by themselves (`pods.endless`).

    `by_row[n]` has `alloc`, `used` and `nonzero` of row n, one after the other, for all resources. These columns are
    views of it.

    A cell whose sum reaches AMOUNT_CAP holds the cap, and `_exact_sums` holds the sum as an integer of any size. So a
    pod is removed from such a cell by subtraction, as from any other, and no row is counted again.
    """

    def __init__(self, capacity: int) -> None:
        self.index: dict[str, int] = {name: r for r, name in enumerate(BASICS)}
        self.of_devices: list[int] = []  # the resources by which kubelets offer GPUs and other devices
        self._deal(np.zeros((capacity, 3, len(BASICS)), np.int64))
        self.endless: IntColumn = np.zeros((len(BASICS), capacity), np.int64)
        self._rows = 0  # rows that were ever used
        self.offering_rows = [0] * len(BASICS)  # by resource: how many rows offer it
        self.max_allocatable = [0] * len(BASICS)  # by resource: the most that any row ever offered
        self._layouts: dict[tuple[str, ...], ResourceLayout] = {}
        self._cells: dict[int, tuple[Footprint, tuple[tuple[bool, int, int], ...]]] = {}
        self._exact_sums: dict[tuple[int, int, int], int] = {}  # by table, resource and row

    def _deal(self, cards: Any) -> None:
        self.by_row = cards
        self.alloc: IntColumn = cards[:, 0].T
        self.used: IntColumn = cards[:, 1].T
        self.nonzero: IntColumn = cards[:, 2].T

    def grow(self, capacity: int) -> None:
        self._deal(grow(self.by_row, capacity, axis=0))
        self.endless = grow(self.endless, capacity)

    def layout(self, names: tuple[str, ...]) -> ResourceLayout:
        """Returns the layout of these resources. It is cached, since most pods request the same few."""
        found = self._layouts.get(names)
        if found is None:
            if len(self._layouts) >= 4096:
                self._layouts.clear()
            rows = [self.index.get(name, NOTHING) for name in names]
            exact = max([self.max_allocatable[r] for r in rows], default=0) <= FLOAT_EXACT_MAX
            fewest = min([self.offering_rows[r] for r in rows], default=0)
            found = self._layouts[names] = ResourceLayout(rows, rows == COMMON_RESOURCES[: len(rows)], exact, fewest)
        return found

    def set_allocatable(self, row: int, amounts: tuple[tuple[str, int], ...]) -> list[str]:
        """Sets the allocatable amounts of a row. Returns the resources that no node offered before: the caller counts
        their use."""
        self._rows = max(self._rows, row + 1)
        new = self._admit([name for name, _ in amounts if name not in self.index])
        self._layouts.clear()
        before = self.alloc[:, row]
        if before.any():
            for r in np.flatnonzero(before).tolist():
                self.offering_rows[r] -= 1
            before[:] = 0
        for name, given in amounts:
            if name not in self.index:
                continue  # more names than MOST_RESOURCES
            # Below the cap, so that a capped request fits nowhere.
            r, amount = self.index[name], min(max(given, 0), AMOUNT_CAP - 1)
            self.alloc[r, row] = amount
            self.offering_rows[r] += amount > 0
            self.max_allocatable[r] = max(self.max_allocatable[r], amount)
        return new

    def reset_allocatable(self, row: int, amounts: tuple[tuple[str, int], ...]) -> None:
        """Corrects the allocatable amounts of a row, and counts again on how many rows each resource is offered."""
        self.set_allocatable(row, amounts)
        self.offering_rows = np.count_nonzero(self.alloc[: len(self.index)], axis=1).tolist()

    def _admit(self, names: list[str]) -> list[str]:
        """Adds columns for new names and returns those names that have one, up to MOST_RESOURCES. A name that no node
        offers any more gives its column to another."""
        capacity = MAX_RESOURCES - len(self.index)
        if len(names) > capacity:
            idle = [name for name, r in self.index.items() if r >= len(BASICS) and not self.offering_rows[r]]
            self._rename(dict(zip(idle, names[capacity:], strict=False)))
            capacity += len(idle)
        added = [name for name in names[:capacity] if name not in self.index]
        self._widen(len(self.index) + len(added))
        for name in added:
            self.index[name] = len(self.index)
            self.offering_rows.append(0)
            self.max_allocatable.append(0)
        if names:
            self._cells.clear()
            self.of_devices = [r for name, r in self.index.items() if is_device_resource(name)]
        return [name for name in names if name in self.index]

    def _rename(self, others: dict[str, str]) -> None:
        """Gives the columns of resources that no node offers to others, all in one write."""
        rows = []
        for old, new in others.items():
            r = self.index[new] = self.index.pop(old)
            self.max_allocatable[r] = 0
            rows.append(r)
        self.by_row[: self._rows, :, rows] = 0
        self.endless[rows] = 0
        reused = set(rows)
        for cell in [cell for cell in self._exact_sums if cell[1] in reused]:
            del self._exact_sums[cell]

    def _widen(self, resources: int) -> None:
        """Adds columns, once for all new names of a node: each call copies `by_row`."""
        width = self.by_row.shape[2]
        if resources > width:
            wider = min(max(resources, width + width // 2), MAX_RESOURCES)
            cards = np.zeros((*self.by_row.shape[:2], wider), np.int64)
            cards[: self._rows, :, :width] = self.by_row[: self._rows]  # not the rows that were never used
            self._deal(cards)
            self.endless = grow(self.endless, wider, axis=0)

    def add_footprint(self, row: int, footprint: Footprint, sign: int, undo: UndoLog | None = None) -> None:
        """Adds (or subtracts) a footprint."""
        for array, r, amount in self._cells_of(footprint):
            if array:
                self._add_to(self.nonzero, NONZERO, r, row, sign * amount, undo)
            else:
                self._add_to(self.used, USED, r, row, sign * amount, undo)

    def charge_endless(self, row: int, footprint: Footprint, sign: int, undo: UndoLog | None = None) -> None:
        """Does the same for a pod that never ends, after `add_footprint`."""
        for array, r, amount in self._cells_of(footprint):
            if not array:
                self._add_to(self.endless, ENDLESS, r, row, sign * amount, undo)

    def exact_sums(self, table: int, row: int) -> list[int]:
        """Returns the sums of a row by resource, not capped."""
        amounts: list[int] = (self.used, self.nonzero, self.endless)[table][:, row].tolist()
        if not self._exact_sums:
            return amounts
        exact = self._exact_sums.get
        return [exact((table, r, row), a) if a >= AMOUNT_CAP else a for r, a in enumerate(amounts)]

    def clear_use(self, row: int) -> None:
        if self._exact_sums:
            for r in range(len(self.index)):
                for table in (USED, NONZERO, ENDLESS):
                    self._exact_sums.pop((table, r, row), None)
        self.endless[:, row] = 0
        self.used[:, row] = 0
        self.nonzero[:, row] = 0

    def _add_to(self, array: IntColumn, table: int, r: int, row: int, amount: int, undo: UndoLog | None) -> None:
        if undo is not None:
            undo.cell(array, (r, row))
        old = array.item(r, row)
        new = old + amount
        if new >= AMOUNT_CAP or old == AMOUNT_CAP:
            new = self._capped_sum((table, r, row), old, amount, undo)
        array[r, row] = new

    def _capped_sum(self, cell: tuple[int, int, int], old: int, amount: int, undo: UndoLog | None) -> int:
        """Adds to the exact sum of a cell that is or will be at the cap. Returns the value of the cell."""
        if undo is not None:
            undo.entry(self._exact_sums, cell)
        exact = amount + (self._exact_sums.get(cell, old) if old == AMOUNT_CAP else old)
        if exact < AMOUNT_CAP:
            self._exact_sums.pop(cell, None)
            return exact
        self._exact_sums[cell] = exact
        return AMOUNT_CAP

    def _cells_of(self, footprint: Footprint) -> tuple[tuple[bool, int, int], ...]:
        """Returns the cells that a footprint adds to: (in `nonzero`?, resource, amount). The cache holds the footprint,
        so that its id cannot be reused."""
        known = self._cells.get(id(footprint))
        if known is not None and known[0] is footprint:
            return known[1]
        used = [(self.index[name], amount) for name, amount in footprint.amounts if name in self.index]
        nonzero = [(r, amount) for r, amount in used if r > MEMORY]
        nonzero += [(CPU, footprint.nonzero_cpu), (MEMORY, footprint.nonzero_memory)]
        cells = (*((False, *cell) for cell in (*used, (PODS, 1))), *((True, *cell) for cell in nonzero))
        if len(self._cells) >= 4096:
            self._cells.clear()
        self._cells[id(footprint)] = (footprint, cells)
        return cells
