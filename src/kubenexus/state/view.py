"""What a rule sees of the nodes: all rows, some rows, or one.

The same accessors serve the first two: over all rows they return slices of the columns (no copy), over some rows
gathered columns, so the expression a rule is written in works for a whole decision and for a repair. For the single
row that the last placement touched, plain integers are several times cheaper than NumPy's overhead: rules that are
asked after every placement also know how to look at `OneNode`.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubenexus.base.numbers import EXACT, BoolColumn
from kubenexus.state.derived import Compute
from kubenexus.state.footprint import Port
from kubenexus.state.images import Image
from kubenexus.state.labels import LabelColumn
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.resources import CPU, MEMORY, NOTHING, PODS
from kubenexus.state.taints import TaintSet

Rows = NDArray[np.int64]
_COMMON = [CPU, MEMORY, PODS]  # what nearly everybody asks for; these rows stand side by side


class Nodes:
    """Read-only. `where` is what NumPy indexes the last axis with: a slice over all rows, or an array of rows."""

    single = False

    def __init__(self, columns: NodeColumns, rows: Rows | None = None) -> None:
        self.columns = columns
        self.rows = rows
        self.where: Any = slice(0, columns.size) if rows is None else rows
        self.feasible: Any = None  # over all rows of the table, where a score is asked for

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
        """Several resources of one kind of amount at once, a row for each: `alloc`, `used`, `nonzero` or `free`."""
        rows = self.columns.resources.rows(resources)
        common = rows == _COMMON[: len(rows)]
        if column == "free":
            if common:
                return self._common()[0][: len(rows), self.where]
            return self.table("alloc", resources) - self.table("used", resources)
        array = getattr(self.columns.resources, column)
        return array[: len(rows), self.where] if common else array[rows][:, self.where]

    def ratio_tables(self, column: str, resources: tuple[str, ...]) -> tuple[Any, Any]:
        """What is `used` (or `nonzero`) of some resources and what each node has, for dividing one by the other:
        floats that hold the integers exactly, or integers where they would not."""
        known = self.columns.resources
        rows = known.rows(resources)
        if max([known.largest[r] for r in rows]) > EXACT:
            return self.table(column, resources), self.table("alloc", resources)
        if rows == _COMMON[: len(rows)]:
            amounts = self._common()[1 if column == "used" else 2]
            return amounts[: len(rows), self.where], known.size[: len(rows), self.where]
        return self.table(column, resources).astype(np.float64), known.size[rows][:, self.where]

    def offered(self, resources: tuple[str, ...]) -> bool:
        """Whether every row of the table offers these resources: then nobody need guard against dividing by 0."""
        known, size = self.columns.resources, self.columns.size
        return all(known.offered[r] == size for r in known.rows(resources))

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

    def derived(self, name: str, many: Compute, one: Compute) -> tuple[Any, ...]:
        """Columns that follow from nodes and usage alone, row by row: computed once, shared by all pod classes.
        `many` is given a view of rows, `one` a OneNode."""
        return tuple(c[..., self.where] for c in self.columns.derived.fresh(name, many, one, self.columns))

    def _common(self) -> tuple[Any, ...]:
        """Of cpu, memory and pods what is free, and what is used and counted as floats, over all rows. Converting is
        as dear as the arithmetic, so it is done once for all classes."""
        return self.columns.derived.fresh("common resources", _common_of_many, _common_of_one, self.columns)

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
        return self.columns.resources.rows(resources)

    def clashing(self, port: Port) -> Any:
        return any(self.row in table for table in self.columns.ports.clashes(port)) or None


def _common_of_many(nodes: Nodes) -> tuple[Any, ...]:
    known, common = nodes.columns.resources, len(_COMMON)
    used, nonzero = known.used[:common, nodes.where], known.nonzero[:common, nodes.where]
    return known.alloc[:common, nodes.where] - used, used.astype(np.float64), nonzero.astype(np.float64)


def _common_of_one(node: OneNode) -> tuple[Any, ...]:
    used = node.uses[: len(_COMMON)]
    return [a - u for a, u in zip(node.allocs, used, strict=False)], used, node.nonzero()[: len(_COMMON)]
