"""Columns that all pod classes share: what follows from the nodes and what runs there, and from no pod.

Computed once and repaired by row, as the classes' own columns are. The last axis is the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from kubenexus.state.nodes import NodeColumns

Compute = Callable[[Any], Any]  # from a view (of many rows, or one) to their values, each from its own row alone
_FEW = 6


class _Column:
    __slots__ = ("marks", "values")

    def __init__(self) -> None:
        self.values: Any = np.zeros(0)
        self.marks = (-1, -1)


class DerivedColumns:
    """By name; there are as many as rules that ask for one."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}

    def fresh(self, name: str, many: Compute, one: Compute, nodes: NodeColumns) -> Any:
        """The column as of now, over all rows. `one` is `many` for a single row, as a plain number."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = _Column()
        marks = (nodes.node_changes.mark, nodes.usage_changes.mark)
        if column.marks != marks:
            self._repair(column, many, one, nodes)
            column.marks = marks
        return column.values

    def _repair(self, column: _Column, many: Compute, one: Compute, nodes: NodeColumns) -> None:
        from kubenexus.state.view import Nodes, OneNode

        of_node, of_usage = nodes.node_changes.since(column.marks[0]), nodes.usage_changes.since(column.marks[1])
        if column.marks[0] < 0 or of_node is None or of_usage is None or column.values.shape[-1] != nodes.size:
            column.values = many(Nodes(nodes))
            return
        rows = {*of_node, *of_usage}
        if len(rows) <= _FEW:
            for row in rows:
                column.values[..., row] = one(OneNode(nodes, row))
        else:
            some = np.fromiter(rows, np.int64, len(rows))
            column.values[..., some] = many(Nodes(nodes, some))
