"""Columns that depend only on the nodes and the pods on them, and are shared by all pod classes.

A column is computed once over all rows, and again only on rows that changed. The last axis is the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from kubenexus.state.nodes import NodeColumns


class Derivation(NamedTuple):
    """A named column. `of` takes a view of some or all rows and returns a column, or a table of several. The value of a
    row may depend on that row alone. `of_one` does the same for a `OneNode` as plain numbers: after a placement one
    row changed, and a NumPy call costs as much for it as for hundreds."""

    name: str
    of: Callable[[Any], Any]
    of_one: Callable[[Any], Any] | None = None


_MOST, _MOST_BYTES = 128, 64 << 20
_FEW = 4  # rows up to which plain numbers are faster


class _Column(NamedTuple):
    values: Any
    marks: tuple[int, int]
    least: Any = None  # the minimum of each column in one part of a table, computed at the first call of `least`


class DerivedColumns:
    """Derived columns by name. A plugin's request adds a column or brings it up to date."""

    def __init__(self) -> None:
        from kubenexus.state.view import Nodes, OneNode  # it imports the columns, and so this module

        self._view, self._one = Nodes, OneNode
        self._named: dict[str, _Column] = {}
        self._last_row: tuple[tuple[int, int, int], Any] = ((-1, -1, -1), None)

    def all(self, wanted: Derivation, nodes: NodeColumns) -> Any:
        """Returns the column or table over all rows, up to date. The caller must not write into it."""
        known = self._named.get(wanted.name)
        marks = (nodes.node_changes.mark, nodes.usage_changes.mark)
        if known is not None and known.marks == marks:
            return known.values
        values = self._caught_up(wanted, known, nodes)
        if known is None and (len(self._named) >= _MOST or self._bytes() + values.nbytes > _MOST_BYTES):
            self._named.clear()
        self._named[wanted.name] = _Column(values, marks)
        return values

    def least(self, wanted: Derivation, part: int, nodes: NodeColumns) -> list[float]:
        """Returns the minimum of each column in part `part` of a table. Callers must use the same `part` for a table
        always."""
        values = self.all(wanted, nodes)
        known = self._named[wanted.name]
        if known.least is None:
            known = self._named[wanted.name] = known._replace(least=values[part].min(axis=-1).tolist())
        least: list[float] = known.least
        return least

    def _bytes(self) -> int:
        return sum(column.values.nbytes for column in self._named.values())

    def _caught_up(self, wanted: Derivation, known: _Column | None, nodes: NodeColumns) -> Any:
        if known is None or known.values.shape[-1] != nodes.size:
            return wanted.of(self._view(nodes))
        of_node, of_usage = (
            nodes.node_changes.rows_since(known.marks[0]),
            nodes.usage_changes.rows_since(known.marks[1]),
        )
        if of_node is None or of_usage is None:
            return wanted.of(self._view(nodes))
        for rows in (of_node, of_usage):
            if wanted.of_one is not None and len(rows) <= _FEW:
                for row in rows.tolist():
                    known.values[..., row] = wanted.of_one(self._one_node(nodes, row))
            elif len(rows):
                known.values[..., rows] = wanted.of(self._view(nodes, rows))
        return known.values

    def _one_node(self, nodes: NodeColumns, row: int) -> Any:
        """Returns the row as plain numbers; the object of the last column again, while nothing changed. It holds what
        it read of the row's devices."""
        state = (row, nodes.node_changes.mark, nodes.usage_changes.mark)
        if self._last_row[0] != state:
            self._last_row = (state, self._one(nodes, row))
        return self._last_row[1]
