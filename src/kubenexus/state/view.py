"""What a rule sees of the nodes: all rows, some rows, or one.

The same accessors serve the first two: over all rows they return slices of the columns (no copy), over some rows
gathered columns, so the expression a rule is written in works for a whole decision and for a repair. For the single
row that the last placement touched, plain integers are several times cheaper than NumPy's overhead: rules that are
asked after every placement also know how to look at `OneNode`.
"""

import functools
from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubenexus.base.arrays import BoolColumn
from kubenexus.state.derived import Derivation
from kubenexus.state.footprint import Port
from kubenexus.state.images import Image
from kubenexus.state.labels import LabelColumn
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.resources import COMMON_RESOURCES, NOTHING, ResourceLayout
from kubenexus.state.taints import TaintSet

Rows = NDArray[np.int64]
# What there is of a resource, what is taken, the same with defaults for those who ask for nothing; and what these two
# leave free and spare.
ALLOC, USED, NONZERO, FREE, FREE_NONZERO = range(5)


class Nodes:
    """Read-only. `where` is what NumPy indexes the last axis with: a slice over all rows, or an array of rows."""

    single = False

    def __init__(self, columns: NodeColumns, rows: Rows | None = None) -> None:
        self.columns = columns
        self.rows = rows
        self.where: Any = slice(0, columns.size) if rows is None else rows
        self.feasible: Any = None  # over all rows of the table, where a score is asked for
        self._common: Any = None
        self._stocks: dict[tuple[str, ...], tuple[Any, bool]] = {}

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

    def endless(self, resource: str) -> Any:
        """What is taken of it by pods that never end by themselves."""
        known = self.columns.resources
        return known.endless[known.index.get(resource, NOTHING), self.where]

    def amounts(self, resources: tuple[str, ...]) -> tuple[Any, bool]:
        """What each node has of some resources: a table for each kind of amount (ALLOC to SPARE) with a row for each
        resource, in floats that hold the integers exactly, or in integers where they would not. And whether every row
        of the table offers them all: then nobody need guard against dividing by 0."""
        known = self._stocks.get(resources)
        if known is None:  # rules ask for the same ones
            layout = self.columns.resources.layout(resources)
            tables = self._amounts(layout) if layout.exact else self._integers(layout)
            known = self._stocks[resources] = (tables, layout.fewest == self.columns.size)
        return known

    def min_free(self, resources: tuple[str, ...]) -> list[float]:
        """At least so much is free of each resource on every row of the table; a careful guess where it is not known
        beforehand."""
        layout = self.columns.resources.layout(resources)
        if not (layout.common and layout.exact and self.columns.size):
            return [-1.0] * len(resources)
        return self.columns.derived.least(_COMMON_AMOUNTS, FREE, self.columns)[: len(resources)]

    @property
    def cordoned(self) -> Any:
        return self.columns.cordoned[self.where]

    @property
    def cordons(self) -> int:
        """How many nodes of the cluster are cordoned."""
        return self.columns.cordoned_count

    @property
    def alive(self) -> Any:
        return self.columns.alive[self.where]

    @property
    def fenced(self) -> Any:
        """Nodes that run something we cannot read; nothing is put there."""
        return self.columns.blocked[self.where]

    @property
    def taints(self) -> Any:
        """The code of each node's taint set, an index into `taint_sets`."""
        return self.columns.taints.codes[self.where]

    @property
    def has_taints(self) -> bool:
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

    def declaring_features(self, features: frozenset[str]) -> BoolColumn:
        """Where all of these features are declared by the kubelet."""
        declared = self.columns.features
        rows = range(self.columns.size) if self.rows is None else self.rows
        return np.fromiter((features <= declared[row] for row in rows), np.bool_, self.width)

    @property
    def has_images(self) -> bool:
        """Whether any node of the cluster reports an image."""
        return self.columns.images.any

    def image(self, name: str) -> Image | None:
        return self.columns.images.find(name)

    def with_image(self, image: Image) -> Any:
        """Where the image is already."""
        has = self.columns.images.column(image, self.columns.size)
        return has if self.rows is None else has[self.rows]

    def port_conflicts(self, port: Port) -> Any:
        """Where taking this port on the host would clash; None when nowhere."""
        tables = self.columns.ports.conflicts(port)
        return self.at([row for table in tables for row in table]) if tables else None

    def derived(self, wanted: Derivation) -> Any:
        """A column, or a table of several, that follows from nodes and usage alone, row by row: computed once, shared
        by all pod classes."""
        return self.columns.derived.all(wanted, self.columns) if self.rows is None else wanted.of(self)

    def _amounts(self, layout: ResourceLayout) -> Any:
        """Every kind of amount of some resources, as floats. Over all rows they are made once for all classes; a view
        of some rows makes those that nearly everybody asks for once for all rules."""
        if not layout.common:
            return self.derived(_amounts_of(tuple(layout.rows)))
        if self._common is None:
            self._common = self.derived(_COMMON_AMOUNTS)
        return self._common[:, : len(layout.rows)]

    def _integers(self, layout: ResourceLayout) -> Any:
        known = self.columns.resources
        alloc, used, nonzero = (held[layout.rows][:, self.where] for held in (known.alloc, known.used, known.nonzero))
        return np.stack([alloc, used, nonzero, alloc - used, alloc - nonzero])

    def cached_until_node_change(self, question: Hashable, answer: Callable[["Nodes"], Any]) -> Any:
        """What follows from the nodes alone. Over all rows it is answered once for all who ask in the same words, until
        a node changes; nobody may write into it."""
        if self.rows is not None:
            return answer(self)
        return self.columns.cached_until_node_change(question, lambda: answer(self))

    def is_device_class_resource(self, resource: str) -> bool:
        """Whether a device class backs this extended resource."""
        return resource in self.columns.device_class_resources

    def locked(self) -> "Nodes":
        """The same rows for plugins from outside: writing into a column fails instead of changing the cluster."""
        view = LockedNodes(self.columns, self.rows)
        view.feasible = None if self.feasible is None else _locked(self.feasible)
        return view


class LockedNodes(Nodes):
    """Columns are the ledger's own arrays, or shared by all classes; these cannot be written to."""

    def alloc(self, resource: str) -> Any:
        return _locked(super().alloc(resource))

    def used(self, resource: str) -> Any:
        return _locked(super().used(resource))

    def amounts(self, resources: tuple[str, ...]) -> tuple[Any, bool]:
        tables, every = super().amounts(resources)
        return _locked(tables), every

    @property
    def cordoned(self) -> Any:
        return _locked(super().cordoned)

    @property
    def alive(self) -> Any:
        return _locked(super().alive)

    @property
    def fenced(self) -> Any:
        return _locked(super().fenced)

    @property
    def taints(self) -> Any:
        return _locked(super().taints)

    def label(self, key: str) -> tuple[Any, LabelColumn]:
        codes, column = super().label(key)
        return _locked(codes), column

    def with_image(self, image: Image) -> Any:
        return _locked(super().with_image(image))

    def derived(self, wanted: Derivation) -> Any:
        return _locked(super().derived(wanted))


def _locked(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


class OneNode(Nodes):
    """A single row as plain numbers. Only rules that say they can (`scalar = True`) are shown this view: they see
    `single`, and read amounts by the resources' rows (`state.resources.ResourceColumns.rows`)."""

    single = True

    def __init__(self, columns: NodeColumns, row: int) -> None:
        self.columns = columns
        self.row = row
        # `nonzero` is as `uses`, with defaults for containers without requests.
        self.allocs, self.uses, self.nonzero = columns.resources.by_row[row].tolist()

    @property
    def width(self) -> int:
        return 1

    def as_column(self) -> Nodes:
        """The same row as columns of length one: for the rare answer that plain numbers make clumsy."""
        return Nodes(self.columns, np.array([self.row]))

    def locked(self) -> Nodes:
        """Its numbers are copies."""
        return self

    def rows_of(self, resources: tuple[str, ...]) -> list[int]:
        return self.columns.resources.layout(resources).rows

    def port_conflicts(self, port: Port) -> Any:
        return any(self.row in table for table in self.columns.ports.conflicts(port)) or None


@functools.lru_cache(maxsize=256)
def _amounts_of(resources: tuple[int, ...]) -> Derivation:
    """A table for each kind of amount, from ALLOC to SPARE, with a row for each resource."""
    which = slice(len(resources)) if resources == tuple(range(len(resources))) else list(resources)

    def amounts(nodes: Nodes) -> Any:
        cards = nodes.columns.resources.by_row
        cards = cards[nodes.where] if nodes.rows is None else cards.take(nodes.rows, axis=0)
        table = np.empty((FREE_NONZERO + 1, len(resources), len(cards)))
        table[:3] = cards.transpose(1, 2, 0)[:, which]
        np.subtract(table[0], table[1:3], out=table[3:])  # exact, but for what hostile pods ask for, which fits nowhere
        return table

    return Derivation(f"amounts of {resources}", amounts)


_COMMON_AMOUNTS = _amounts_of(tuple(COMMON_RESOURCES))
