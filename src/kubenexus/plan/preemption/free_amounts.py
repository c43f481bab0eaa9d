"""What is free on each node of the resources that a job asks for, and what victims would free."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kubenexus.plan.preemption.victim_pool import VictimPool
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord
from kubenexus.state.view import Nodes


class FreeAmounts:
    """By resource (in the order of `names`) and row. Amounts are floats, which are exact below 2**53.

    `promised` are pods without a node, by row, to which capacity there is promised.
    """

    def __init__(
        self,
        names: Iterable[str],
        columns: NodeColumns,
        pool: VictimPool,
        promised: Mapping[int, list[PodRecord]],
    ) -> None:
        self.names, self._size, self.pool = tuple(names), columns.size, pool
        view = Nodes(columns)
        self.now = np.empty((len(self.names), columns.size))
        for i, name in enumerate(self.names):
            alloc = view.alloc(name)
            self.now[i] = alloc - view.used(name)
            if view.is_device_class_resource(name):
                self.now[i][alloc == 0] = np.inf  # device claims provide it there
        self._subtract(promised)
        self._all: Any = None
        self.each = [pool.amounts(name) for name in self.names]  # what each victim frees

    def _subtract(self, promised: Mapping[int, list[PodRecord]]) -> None:
        """Subtracts what is promised. Pods of one template have one footprint, and there may be thousands of them: the
        same object mostly, which is found without a hash of all its amounts."""
        rows_by: dict[tuple[tuple[str, int], ...], list[int]] = {}
        known: dict[int, list[int]] = {}  # the same lists by the identity of the footprint
        for row, nominees in promised.items():
            for nominee in nominees:
                rows = known.get(id(nominee.footprint))
                if rows is None:
                    rows = known[id(nominee.footprint)] = rows_by.setdefault(nominee.footprint.amounts, [])
                rows.append(row)
        for each, rows in rows_by.items():
            amounts = {"pods": 1, **dict(each)}
            for i, name in enumerate(self.names):
                if amounts.get(name):
                    np.subtract.at(self.now[i], rows, amounts[name])

    def with_victims(self, level: int | None = None) -> Any:
        """Returns what would be free if all victims up to a level were gone. The caller must not write into it."""
        pool = self.pool
        if level is None or level >= pool.levels[-1]:
            if self._all is None:
                self._all = self._freed(slice(None))
            return self._all
        return self._freed(pool.level <= level)

    def _freed(self, among: Any) -> Any:
        found, rows = self.now.copy(), self.pool.rows[among]
        for i, each in enumerate(self.each):
            found[i] += np.bincount(rows, weights=each[among], minlength=self._size)
        return found

    def of_victim(self, index: int) -> tuple[float, ...]:
        """Returns what one victim frees of each resource."""
        return tuple([each.item(index) for each in self.each])


def vector(amounts: Mapping[str, int], names: Iterable[str]) -> Any:
    """Returns amounts as a column vector, to compare with a table of resources and rows."""
    return np.array([[float(amounts.get(name, 0))] for name in names])
