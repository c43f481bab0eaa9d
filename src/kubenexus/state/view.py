"""What a rule sees of the nodes: all rows, some rows, or one.

The same accessors serve the first two: over all rows they return slices of the columns (no copy), over some rows
gathered columns, so the expression a rule is written in works for a whole decision and for a repair. For the single
row that the last placement touched, plain integers are several times cheaper than NumPy's overhead: rules that are
asked after every placement also know how to look at `OneNode`.
"""

import operator
from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubenexus.base.numbers import BoolColumn
from kubenexus.state.derived import Derivation
from kubenexus.state.footprint import Port
from kubenexus.state.images import Image
from kubenexus.state.labels import LabelColumn
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.resources import COMMON, NOTHING
from kubenexus.state.taints import TaintSet

Rows = NDArray[np.int64]
_KINDS = {kind: i * len(COMMON) for i, kind in enumerate(("free", "used", "nonzero", "spare", "size"))}


class Nodes:
    """Read-only. `where` is what NumPy indexes the last axis with: a slice over all rows, or an array of rows."""

    single = False

    def __init__(self, columns: NodeColumns, rows: Rows | None = None) -> None:
        self.columns = columns
        self.rows = rows
        self.where: Any = slice(0, columns.size) if rows is None else rows
        self.feasible: Any = None  # over all rows of the table, where a score is asked for
        self._gathered: Any = None

    @property
    def width(self) -> int:
        """How many rows this view has, dead ones included."""
        return self.columns.size if self.rows is None else len(self.rows)

    @property
    def total(self) -> int:
        """How many nodes the cluster has, whatever this view shows."""
        return self.columns.count

    def alloc(self, resource: str) -> Any:
        """What each node can give of a resource."""
        known = self.columns.resources
        return known.alloc[known.index.get(resource, NOTHING), self.where]

    def used(self, resource: str) -> Any:
        """What is taken of it."""
        known = self.columns.resources
        return known.used[known.index.get(resource, NOTHING), self.where]

    def table(self, column: str, resources: tuple[str, ...]) -> Any:
        """Several resources of one kind of amount at once, a row for each: `alloc`, `used`, `nonzero` (as used, with
        defaults for those who ask for nothing), `free` (of used) or `spare` (of nonzero)."""
        layout = self.columns.resources.layout(resources)
        if column == "free":
            if layout.exact and layout.common:
                return self._common("free", len(resources))
            return self.table("alloc", resources) - self.table("used", resources)
        if column == "spare":
            return self.table("alloc", resources) - self.table("nonzero", resources)
        array = getattr(self.columns.resources, column)
        return array[layout.rows][:, self.where]

    def ratio_tables(self, column: str, resources: tuple[str, ...]) -> tuple[Any, Any]:
        """What is `used` (`nonzero`, `spare`) of some resources and what each node has, for dividing one by the other:
        floats that hold the integers exactly, or integers where they would not."""
        layout = self.columns.resources.layout(resources)
        if not layout.exact:
            return self.table(column, resources), self.table("alloc", resources)
        if layout.common:
            return self._common(column, len(resources)), self._common("size", len(resources))
        return self.table(column, resources).astype(np.float64), self.table("size", resources)

    def offered(self, resources: tuple[str, ...]) -> bool:
        """Whether every row of the table offers these resources: then nobody need guard against dividing by 0."""
        return self.columns.resources.layout(resources).fewest == self.columns.size

    @property
    def cordoned(self) -> Any:
        return self.columns.cordoned[self.where]

    @property
    def cordons(self) -> int:
        """How many nodes of the cluster are cordoned."""
        return self.columns.cordons

    @property
    def alive(self) -> Any:
        return self.columns.alive[self.where]

    @property
    def fenced(self) -> Any:
        """Nodes that run something we cannot read; nothing is put there."""
        return self.columns.fenced[self.where]

    @property
    def taints(self) -> Any:
        """The code of each node's taint set, an index into `taint_sets`."""
        return self.columns.taints.codes[self.where]

    @property
    def tainted(self) -> bool:
        """Whether any node of the cluster has a taint."""
        return self.columns.taints.any

    @property
    def taint_sets(self) -> list[TaintSet]:
        return self.columns.taints.sets

    def label(self, key: str) -> tuple[Any, LabelColumn]:
        """The codes of a label's values, and the column that knows what the codes mean."""
        column = self.columns.labels.column(key)
        return column.codes[self.where], column

    def named(self, names: Collection[str]) -> Any:
        """Where the nodes with these names are."""
        rows = [self.columns.row_of[name] for name in names if name in self.columns.row_of]
        return self.at(rows)

    def at(self, rows: Collection[int]) -> Any:
        """A mask of this view that is true on these rows of the table."""
        mask = np.zeros(self.columns.size, np.bool_)
        mask[list(rows)] = True
        return mask if self.rows is None else mask[self.rows]

    def declaring(self, features: frozenset[str]) -> BoolColumn:
        """Where all of these features are declared by the kubelet."""
        declared = self.columns.features
        rows = range(self.columns.size) if self.rows is None else self.rows
        return np.fromiter((features <= declared[row] for row in rows), np.bool_, self.width)

    def image(self, name: str) -> Image | None:
        return self.columns.images.find(name)

    def having(self, image: Image) -> Any:
        """Where the image is already."""
        has = self.columns.images.column(image, self.columns.size)
        return has if self.rows is None else has[self.rows]

    def clashing(self, port: Port) -> Any:
        """Where taking this port on the host would clash; None when nowhere."""
        tables = self.columns.ports.clashes(port)
        return self.at([row for table in tables for row in table]) if tables else None

    def derived(self, wanted: Derivation) -> Any:
        """A column, or a table of several, that follows from nodes and usage alone, row by row: computed once, shared
        by all pod classes."""
        known = self.columns.derived
        return known.all(wanted, self.columns) if self.rows is None else known.some(wanted, self.columns, self.rows)

    def _common(self, kind: str, number: int) -> Any:
        """Of the first of cpu, memory and pods what is free, used, counted or offered, as floats. Converting is as
        dear as the arithmetic, so it is done once for all classes; a view of some rows gathers them all at once."""
        if self._gathered is None:
            self._gathered = self.derived(_COMMON_AMOUNTS)
        first = _KINDS[kind]
        return self._gathered[first : first + number]

    def remembered(self, question: Hashable, answer: Callable[["Nodes"], Any]) -> Any:
        """What follows from the nodes alone. Over all rows it is answered once for all who ask in the same words, until
        a node changes; nobody may write into it."""
        if self.rows is not None:
            return answer(self)
        return self.columns.remembered(question, lambda: answer(self))

    def delegated(self, resource: str) -> bool:
        """Whether a device class backs this extended resource."""
        return resource in self.columns.delegated


class OneNode(Nodes):
    """A single row as plain numbers. Only rules that say they can (`scalar = True`) are shown this view: they see
    `single`, and read amounts by the resources' rows (`state.resources.ResourceColumns.rows`)."""

    single = True

    def __init__(self, columns: NodeColumns, row: int) -> None:
        self.columns = columns
        self.row = row
        self.allocs: list[int] = columns.resources.alloc[:, row].tolist()
        self.uses: list[int] = columns.resources.used[:, row].tolist()

    @property
    def width(self) -> int:
        return 1

    def nonzero(self) -> list[int]:
        """As `uses`, with defaults for containers without requests."""
        amounts: list[int] = self.columns.resources.nonzero[:, self.row].tolist()
        return amounts

    def as_column(self) -> Nodes:
        """The same row as columns of length one: for the rare answer that plain numbers make clumsy."""
        return Nodes(self.columns, np.array([self.row]))

    def rows_of(self, resources: tuple[str, ...]) -> list[int]:
        return self.columns.resources.layout(resources).rows

    def clashing(self, port: Port) -> Any:
        return any(self.row in table for table in self.columns.ports.clashes(port)) or None


def _common_of_many(nodes: Nodes) -> Any:
    known, where = nodes.columns.resources, (slice(len(COMMON)), nodes.where)
    size, used, nonzero = known.alloc[where], known.used[where], known.nonzero[where]
    # Subtracted as integers: a float might not hold what hostile pods ask for.
    return np.concatenate([size - used, used, nonzero, size - nonzero, size]).astype(np.float64)


def _common_of_one(node: OneNode) -> list[int]:
    uses, counted, allocs = node.uses[:3], node.nonzero()[:3], node.allocs[:3]
    return [*map(operator.sub, allocs, uses), *uses, *counted, *map(operator.sub, allocs, counted), *allocs]


_COMMON_AMOUNTS = Derivation("common amounts", _common_of_many, _common_of_one)
