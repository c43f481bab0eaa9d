"""Columns that all pod classes share: what follows from the nodes and what runs there, and from no pod.

Computed once and repaired by row, as the classes' own columns are. The last axis is the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from kubenexus.state.nodes import NodeColumns


class Derivation(NamedTuple):
    """A column by its name. `many` is given a view of rows and returns a column, or a table of several; `one` is given
    a OneNode and returns the same for it as a number, or a list of them. Each row follows from itself alone."""

    name: str
    many: Callable[[Any], Any]
    one: Callable[[Any], Any]


_FEW = 6
_MOST = 16
_PATIENCE = 256


class _Column:
    """`cards` holds a table a second time, with the numbers of one row side by side: a hundred scattered rows are then
    a hundred places in memory, not a hundred for each number. `stale` are rows that only the cards have right."""

    __slots__ = ("_stale", "_values", "cards", "many", "one")

    def __init__(self, derivation: Derivation, values: Any) -> None:
        _, self.many, self.one = derivation
        self._values = values
        self._stale: list[Any] = []
        self.cards: Any = np.ascontiguousarray(values.T) if values.ndim > 1 else None

    @property
    def width(self) -> int:
        return int(self._values.shape[-1])

    def put(self, rows: Any, values: Any) -> None:
        if self.cards is None:
            self._values[rows] = values
        else:
            self.cards[rows] = values.T if isinstance(values, np.ndarray) else values
            self._stale.append(rows)
            if len(self._stale) >= _PATIENCE:
                self.all()

    def all(self) -> Any:
        if self._stale:
            rows = np.unique(np.hstack(self._stale))
            self._values[:, rows] = self.cards[rows].T
            self._stale.clear()
        return self._values

    def some(self, rows: Any) -> Any:
        # The copy has each number's rows side by side again: what follows is arithmetic on whole rows.
        return self._values.take(rows) if self.cards is None else self.cards.take(rows, axis=0).T.copy()


class DerivedColumns:
    """By name; there are as many as rules that ask for some, and all are repaired together: mostly for the one row that
    the last placement touched."""

    def __init__(self) -> None:
        from kubenexus.state.view import Nodes, OneNode  # which stand on the columns, and so on these

        self._view, self._node = Nodes, OneNode
        self._named: dict[str, _Column] = {}
        self._marks = (-1, -1)

    def all(self, wanted: Derivation, nodes: NodeColumns) -> Any:
        """The column (or table) as of now, over all rows."""
        return self._fresh(wanted, nodes).all()

    def some(self, wanted: Derivation, nodes: NodeColumns, rows: Any) -> Any:
        """The same over some rows."""
        return self._fresh(wanted, nodes).some(rows)

    def _fresh(self, wanted: Derivation, nodes: NodeColumns) -> _Column:
        marks = (nodes.node_changes.mark, nodes.usage_changes.mark)
        if self._marks != marks:
            self._catch_up(nodes, marks)
        found = self._named.get(wanted.name)
        if found is None:
            if len(self._named) >= _MOST:
                self._named.clear()
            # What it asks for itself comes to stand before it, and so is repaired before it.
            values = wanted.many(self._view(nodes))
            found = self._named[wanted.name] = _Column(wanted, values)
        return found

    def _catch_up(self, nodes: NodeColumns, marks: tuple[int, int]) -> None:
        of_node, of_usage = nodes.node_changes.since(self._marks[0]), nodes.usage_changes.since(self._marks[1])
        self._marks = marks
        known = next(iter(self._named.values()), None)
        if of_node is None or of_usage is None or known is None or known.width != nodes.size:
            self._named.clear()
            return
        rows = {*of_node, *of_usage}
        if len(rows) <= _FEW:
            for row in rows:
                node = self._node(nodes, row)
                for column in self._named.values():
                    column.put(row, column.one(node))
        else:
            some = np.fromiter(rows, np.int64, len(rows))
            view = self._view(nodes, some)
            for column in self._named.values():
                column.put(some, column.many(view))
