"""Resources as numbers: `alloc[r, n]` and `used[r, n]` of resource r on row n. cpu in milli, everything else in units.

What a row has of everything stands side by side, on its card: a placement touches one place in memory, and so does
whoever looks at the row again. Columns over all rows, as rules read them, are made from the cards (see `view`).

Only nodes create resources: a pod that asks for something no node has ever offered finds no row, and no array grows
because of what people ask for.
"""

from typing import Any, NamedTuple

import numpy as np

from kubenexus.base.numbers import EXACT, LIMIT, IntColumn
from kubenexus.state.cells import Undo
from kubenexus.state.footprint import Footprint

CPU, MEMORY, PODS, EPHEMERAL, NOTHING = range(5)
# `NOTHING` is a row of zeros that stands for every resource no node ever offered.
COMMON = [CPU, MEMORY, PODS]  # what nearly everybody asks for
# Nodes of one cluster offer some dozens. With one more each row takes 32 bytes more, and ten thousand would take
# gigabytes. Names beyond these count as offered nowhere.
MOST_RESOURCES = 256
BASICS = ("cpu", "memory", "pods", "ephemeral-storage", "")


class Layout(NamedTuple):
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
        self.offered = [0] * len(BASICS)  # on how many rows a resource is offered
        self.largest = [0] * len(BASICS)  # the most any row ever offered
        self._layouts: dict[tuple[str, ...], Layout] = {}
        self._cells: dict[int, tuple[Footprint, tuple[tuple[bool, int, int], ...]]] = {}

    def _deal(self, cards: Any) -> None:
        self.cards = cards
        self.alloc: IntColumn = cards[:, 0].T
        self.used: IntColumn = cards[:, 1].T
        self.nonzero: IntColumn = cards[:, 2].T

    def grow(self, capacity: int) -> None:
        more = np.zeros((capacity - len(self.cards), *self.cards.shape[1:]), np.int64)
        self._deal(np.concatenate([self.cards, more]))
        self.endless = widen(self.endless, capacity)

    def layout(self, names: tuple[str, ...]) -> Layout:
        """Where these resources are; remembered, since the same few are asked for again and again."""
        found = self._layouts.get(names)
        if found is None:
            if len(self._layouts) >= 4096:
                self._layouts.clear()
            rows = [self.index.get(name, NOTHING) for name in names]
            exact = max([self.largest[r] for r in rows], default=0) <= EXACT
            fewest = min([self.offered[r] for r in rows], default=0)
            found = self._layouts[names] = Layout(rows, rows == COMMON[: len(rows)], exact, fewest)
        return found

    def offer(self, row: int, amounts: tuple[tuple[str, int], ...]) -> list[str]:
        """Set what a node can give. Returns resources nobody offered before: their use has to be counted now."""
        self._rows = max(self._rows, row + 1)
        new = self._admit([name for name, _ in amounts if name not in self.index])
        self._layouts.clear()
        before = self.alloc[:, row]
        if before.any():
            for r in np.flatnonzero(before).tolist():
                self.offered[r] -= 1
            before[:] = 0
        for name, given in amounts:
            if name not in self.index:
                continue  # one more than there is room for
            r, amount = self.index[name], min(max(given, 0), LIMIT - 1)  # so that a capped request fits nowhere
            self.alloc[r, row] = amount
            self.offered[r] += amount > 0
            self.largest[r] = max(self.largest[r], amount)
        return new

    def reoffer(self, row: int, amounts: tuple[tuple[str, int], ...]) -> None:
        """The same for a row whose offers were not what they should be: who offers what is counted anew, too."""
        self.offer(row, amounts)
        self.offered = np.count_nonzero(self.alloc[: len(self.index)], axis=1).tolist()

    def _admit(self, names: list[str]) -> list[str]:
        """Those of the new names that there is room for. A name that no node offers any more makes room for another."""
        room = MOST_RESOURCES - len(self.index)
        if len(names) > room:
            idle = [name for name, r in self.index.items() if r >= len(BASICS) and not self.offered[r]]
            self._rename(dict(zip(idle, names[room:], strict=False)))
            room += len(idle)
        added = [name for name in names[:room] if name not in self.index]
        self._widen(len(self.index) + len(added))
        for name in added:
            self.index[name] = len(self.index)
            self.offered.append(0)
            self.largest.append(0)
        if names:
            self._cells.clear()
        return [name for name in names if name in self.index]

    def _rename(self, others: dict[str, str]) -> None:
        """Resources that no node offers become others. All at once: a card holds them side by side."""
        rows = []
        for old, new in others.items():
            r = self.index[new] = self.index.pop(old)
            self.largest[r] = 0
            rows.append(r)
        self.cards[: self._rows, :, rows] = 0
        self.endless[rows] = 0

    def _widen(self, resources: int) -> None:
        """Once for all names of a node: each time all cards are copied."""
        width = self.cards.shape[2]
        if resources > width:
            wider = min(max(resources, width + width // 2), MOST_RESOURCES)
            cards = np.zeros((*self.cards.shape[:2], wider), np.int64)
            cards[: self._rows, :, :width] = self.cards[: self._rows]  # and not where no node ever was
            self._deal(cards)
            self.endless = np.concatenate([self.endless, np.zeros((wider - width, len(self.cards)), np.int64)])

    def charge(self, row: int, footprint: Footprint, sign: int, undo: Undo | None = None) -> bool:
        """Add (or take back) a footprint. False when a counter stands at its cap and must be recounted instead."""
        exact = True
        for array, r, amount in self._cells_of(footprint):
            exact &= self._add_to(self.nonzero if array else self.used, r, row, sign * amount, undo)
        return exact

    def charge_endless(self, row: int, footprint: Footprint, sign: int, undo: Undo | None = None) -> bool:
        """The same for a pod that never ends, after `charge`."""
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
    def _add_to(array: IntColumn, r: int, row: int, amount: int, undo: Undo | None) -> bool:
        if undo is not None:
            undo.cell(array, (r, row))
        old = array.item(r, row)
        array[r, row] = min(old + amount, LIMIT)
        return not (amount < 0 and old == LIMIT)

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


def widen(array: IntColumn, capacity: int) -> IntColumn:
    """The same columns with room for more rows."""
    wider = np.zeros((*array.shape[:-1], capacity), array.dtype)
    wider[..., : array.shape[-1]] = array
    return wider
