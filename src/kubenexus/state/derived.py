"""Columns that all pod classes share: what follows from the nodes and what runs there, and from no pod.

Computed once and repaired by row, as the classes' own columns are. The last axis is the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from kubenexus.state.nodes import NodeColumns

# From a view (of many rows, or of one) to a tuple of columns (or of numbers), each row from itself alone.
Compute = Callable[[Any], tuple[Any, ...]]
_FEW = 6


class _Columns:
    __slots__ = ("marks", "values")

    def __init__(self) -> None:
        self.values: tuple[Any, ...] = ()
        self.marks = (-1, -1)


class DerivedColumns:
    """By name; there are as many as rules that ask for some. Columns that are asked for together stand together."""

    def __init__(self) -> None:
        self._named: dict[str, _Columns] = {}

    def fresh(self, name: str, many: Compute, one: Compute, nodes: NodeColumns) -> tuple[Any, ...]:
        """The columns as of now, over all rows. `one` is `many` for a single row, as plain numbers."""
        found = self._named.get(name)
        if found is None:
            found = self._named[name] = _Columns()
        marks = (nodes.node_changes.mark, nodes.usage_changes.mark)
        if found.marks != marks:
            self._repair(found, many, one, nodes)
            found.marks = marks
        return found.values

    def _repair(self, found: _Columns, many: Compute, one: Compute, nodes: NodeColumns) -> None:
        from kubenexus.state.view import Nodes, OneNode

        of_node, of_usage = nodes.node_changes.since(found.marks[0]), nodes.usage_changes.since(found.marks[1])
        grown = not found.values or found.values[0].shape[-1] != nodes.size
        if found.marks[0] < 0 or of_node is None or of_usage is None or grown:
            found.values = many(Nodes(nodes))
            return
        rows = {*of_node, *of_usage}
        if len(rows) <= _FEW:
            for row in rows:
                for column, value in zip(found.values, one(OneNode(nodes, row)), strict=True):
                    column[..., row] = value
        else:
            some = np.fromiter(rows, np.int64, len(rows))
            for column, values in zip(found.values, many(Nodes(nodes, some)), strict=True):
                column[..., some] = values
