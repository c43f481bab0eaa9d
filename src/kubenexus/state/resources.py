"""Resources as numbers: `alloc[r, n]` and `used[r, n]` of resource r on row n. cpu in milli, everything else in units.

What a row has of everything stands side by side, on its card: a placement touches one place in memory, and so does
whoever looks at the row again. Columns over all rows, as rules read them, are made from the cards (see `view`).

Only nodes create resources: a pod that asks for something no node has ever offered finds no row, and no array grows
because of what people ask for.
"""

from typing import Any, NamedTuple

import numpy as np

from kubenexus.base.arrays import AMOUNT_CAP, FLOAT_EXACT_MAX, IntColumn
from kubenexus.state.footprint import Footprint
from kubenexus.state.undo_log import UndoLog

CPU, MEMORY, PODS, EPHEMERAL, NOTHING = range(5)
# `NOTHING` is a row of zeros that stands for every resource no node ever offered.
COMMON_RESOURCES = [CPU, MEMORY, PODS]  # what nearly everybody asks for
# Nodes of one cluster offer some dozens. With one more each row takes 32 bytes more, and ten thousand would take
# gigabytes. Names beyond these count as offered nowhere.
MOST_RESOURCES = 256
BASICS = ("cpu", "memory", "pods", "ephemeral-storage", "")


class ResourceLayout(NamedTuple):
    """What is known of some resources that are asked for together. `common`: they are the first of cpu, memory and
    pods; `exact`: floats hold what any node offers of them; `fewest`: at least so many rows offer each."""

    rows: list[int]
    common: bool
    exact: bool
    fewest: int


class ResourceColumns:
    """`nonzero` is as `used`, but containers that ask for no cpu or memory count with a default; scoring reads it.
    `endless` is the part of `used` that pods hold which never end by themselves (`pods.endless`).

    `cards[n]` has these three, one after the other, for all resources; the columns are views of it.
    """

    def __init__(self, capacity: int) -> None:
        self.index: dict[str, int] = {name: r for r, name in enumerate(BASICS)}
        self._deal(np.zeros((capacity, 3, len(BASICS)), np.int64))
        self.endless: IntColumn = np.zeros((len(BASICS), capacity), np.int64)
        self._rows = 0  # that were ever used
        self.offering_rows = [0] * len(BASICS)  # on how many rows a resource is offered
        self.max_allocatable = [0] * len(BASICS)  # the most any row ever offered
        self._layouts: dict[tuple[str, ...], ResourceLayout] = {}
        self._cells: dict[int, tuple[Footprint, tuple[tuple[bool, int, int], ...]]] = {}

    def _deal(self, cards: Any) -> None:
        self.by_row = cards
        self.alloc: IntColumn = cards[:, 0].T
        self.used: IntColumn = cards[:, 1].T
        self.nonzero: IntColumn = cards[:, 2].T

    def grow(self, capacity: int) -> None:
        more = np.zeros((capacity - len(self.by_row), *self.by_row.shape[1:]), np.int64)
        self._deal(np.concatenate([self.by_row, more]))
        self.endless = grow_rows(self.endless, capacity)

    def layout(self, names: tuple[str, ...]) -> ResourceLayout:
        """Where these resources are; remembered, since the same few are asked for again and again."""
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
        """Set what a node can give. Returns resources nobody offered before: their use has to be counted now."""
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
                continue  # one more than there is room for
            r, amount = self.index[name], min(max(given, 0), AMOUNT_CAP - 1)  # so that a capped request fits nowhere
            self.alloc[r, row] = amount
            self.offering_rows[r] += amount > 0
            self.max_allocatable[r] = max(self.max_allocatable[r], amount)
        return new

    def reset_allocatable(self, row: int, amounts: tuple[tuple[str, int], ...]) -> None:
        """The same for a row whose offers were not what they should be: who offers what is counted anew, too."""
        self.set_allocatable(row, amounts)
        self.offering_rows = np.count_nonzero(self.alloc[: len(self.index)], axis=1).tolist()

    def _admit(self, names: list[str]) -> list[str]:
        """Those of the new names that there is room for. A name that no node offers any more makes room for another."""
        capacity = MOST_RESOURCES - len(self.index)
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
        return [name for name in names if name in self.index]

    def _rename(self, others: dict[str, str]) -> None:
        """Resources that no node offers become others. All at once: a card holds them side by side."""
        rows = []
        for old, new in others.items():
            r = self.index[new] = self.index.pop(old)
            self.max_allocatable[r] = 0
            rows.append(r)
        self.by_row[: self._rows, :, rows] = 0
        self.endless[rows] = 0

    def _widen(self, resources: int) -> None:
        """Once for all names of a node: each time all cards are copied."""
        width = self.by_row.shape[2]
        if resources > width:
            wider = min(max(resources, width + width // 2), MOST_RESOURCES)
            cards = np.zeros((*self.by_row.shape[:2], wider), np.int64)
            cards[: self._rows, :, :width] = self.by_row[: self._rows]  # and not where no node ever was
            self._deal(cards)
            self.endless = np.concatenate([self.endless, np.zeros((wider - width, len(self.by_row)), np.int64)])

    def add_footprint(self, row: int, footprint: Footprint, sign: int, undo: UndoLog | None = None) -> bool:
        """Add (or take back) a footprint. False when a counter stands at its cap and must be recounted instead."""
        exact = True
        for array, r, amount in self._cells_of(footprint):
            exact &= self._add_to(self.nonzero if array else self.used, r, row, sign * amount, undo)
        return exact

    def charge_endless(self, row: int, footprint: Footprint, sign: int, undo: UndoLog | None = None) -> bool:
        """The same for a pod that never ends, after `add_footprint`."""
        exact = True
        for array, r, amount in self._cells_of(footprint):
            if not array:
                exact &= self._add_to(self.endless, r, row, sign * amount, undo)
        return exact

    def clear_use(self, row: int) -> None:
        self.endless[:, row] = 0
        self.used[:, row] = 0
        self.nonzero[:, row] = 0

    @staticmethod
    def _add_to(array: IntColumn, r: int, row: int, amount: int, undo: UndoLog | None) -> bool:
        if undo is not None:
            undo.cell(array, (r, row))
        old = array.item(r, row)
        array[r, row] = min(old + amount, AMOUNT_CAP)
        return not (amount < 0 and old == AMOUNT_CAP)

    def _cells_of(self, footprint: Footprint) -> tuple[tuple[bool, int, int], ...]:
        """What to add where: (in `nonzero`?, resource, amount). Kept with the footprint itself, so that a reused id
        cannot be mistaken."""
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


def grow_rows(array: IntColumn, capacity: int) -> IntColumn:
    """The same columns with room for more rows."""
    wider = np.zeros((*array.shape[:-1], capacity), array.dtype)
    wider[..., : array.shape[-1]] = array
    return wider
