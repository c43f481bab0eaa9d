"""The plugins' view of the nodes: all rows, some rows, or one.

`Nodes` has the same accessors for all rows and for some. Over all rows they return slices of the columns, without a
copy; over some rows they return gathered columns. A plugin's expression therefore serves a whole decision and a repair.
For the single row that the last placement changed, plain integers are several times cheaper than NumPy. Plugins that
run after every placement can also read `OneNode`.
"""

import functools
from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubenexus.base.arrays import BoolColumn
from kubenexus.state.derived import Derivation
from kubenexus.state.devices.one_node import OneNodeDevices
from kubenexus.state.devices.view import NodeDeviceSets
from kubenexus.state.footprint import Port
from kubenexus.state.images import Image
from kubenexus.state.labels import LabelColumn
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.resources import COMMON_RESOURCES, NOTHING, ResourceLayout
from kubenexus.state.taints import TaintSet

Rows = NDArray[np.int64]
# Kinds of amount of a resource: allocatable, used, used with defaults for containers without requests, and what the
# latter two leave free.
ALLOC, USED, NONZERO, FREE, FREE_NONZERO = range(5)


class Nodes:
    """A read-only view. `where` indexes the last axis of a column: a slice over all rows, or an array of rows."""

    single = False
    feasible: Any = None  # over all rows of the table, set where a score is computed
    # What is read at the first call: `by_row`, the amounts of common resources, and those of any.
    _by_row: Any = None
    _common: Any = None
    _stocks: dict[tuple[str, ...], tuple[Any, bool]] | None = None

    def __init__(self, columns: NodeColumns, rows: Rows | None = None) -> None:
        self.columns = columns
        self.rows = rows
        self.where: Any = slice(0, columns.size) if rows is None else rows

    @property
    def width(self) -> int:
        """The number of rows of this view, rows without a node included."""
        return self.columns.size if self.rows is None else len(self.rows)

    @property
    def total(self) -> int:
        """The number of nodes of the cluster, for any view."""
        return self.columns.count

    def alloc(self, resource: str) -> Any:
        """Returns the allocatable amount of a resource on each row."""
        known = self.columns.resources  # [r][rows]: to index both at once takes NumPy 12 instead of 2 us
        return known.alloc[known.index.get(resource, NOTHING)][self.where]

    def used(self, resource: str) -> Any:
        """Returns the used amount of a resource on each row."""
        known = self.columns.resources
        return known.used[known.index.get(resource, NOTHING)][self.where]

    def endless(self, resource: str) -> Any:
        """Returns the amount of a resource that pods hold which never end by themselves."""
        known = self.columns.resources
        return known.endless[known.index.get(resource, NOTHING)][self.where]

    def amounts(self, resources: tuple[str, ...]) -> tuple[Any, bool]:
        """Returns the amounts of some resources, and whether every row of the table offers them all. The amounts are a
        table for each kind (ALLOC to FREE_NONZERO) with a row for each resource. They are floats where these are exact,
        else integers. If every row offers them all, the caller need not guard against dividing by 0."""
        if self._stocks is None:
            self._stocks = {}
        known = self._stocks.get(resources)
        if known is None:  # plugins use the same ones
            layout = self.columns.resources.layout(resources)
            tables = self._amounts(layout) if layout.exact else self._integers(layout)
            known = self._stocks[resources] = (tables, layout.fewest == self.columns.size)
        return known

    @property
    def by_row(self) -> Any:
        """The amounts of each row of a view of some rows (`ResourceColumns.by_row`)."""
        if self._by_row is None:  # plugins use the same ones
            self._by_row = self.columns.resources.by_row.take(self.rows, axis=0)
        return self._by_row

    def min_free(self, resources: tuple[str, ...]) -> list[float]:
        """Returns a lower bound of the free amount of each resource over all rows of the table; -1 where none is
        cached."""
        layout = self.columns.resources.layout(resources)
        if not (layout.common and layout.exact and self.columns.size):
            return [-1.0] * len(resources)
        return self.columns.derived.least(_COMMON_AMOUNTS, FREE, self.columns)[: len(resources)]

    @property
    def cordoned(self) -> Any:
        return self.columns.cordoned[self.where]

    @property
    def cordons(self) -> int:
        """The number of cordoned nodes of the cluster."""
        return self.columns.cordoned_count

    @property
    def alive(self) -> Any:
        return self.columns.alive[self.where]

    @property
    def fenced(self) -> Any:
        """Whether a node runs a pod that cannot be read; no pod is placed there."""
        return self.columns.blocked[self.where]

    @property
    def taints(self) -> Any:
        """The code of each row's taint set, an index into `taint_sets`."""
        return self.columns.taints.codes[self.where]

    @property
    def has_taints(self) -> bool:
        """Whether any node of the cluster has a taint."""
        return self.columns.taints.any

    @property
    def taint_sets(self) -> list[TaintSet]:
        return self.columns.taints.sets

    def label(self, key: str) -> tuple[Any, LabelColumn]:
        """Returns the codes of a label's values, and the column that maps codes to values."""
        column = self.columns.labels.column(key)
        return column.codes[self.where], column

    def named(self, names: Collection[str]) -> Any:
        """Returns a mask of the nodes with these names."""
        rows = [self.columns.row_of[name] for name in names if name in self.columns.row_of]
        return self.at(rows)

    def at(self, rows: Collection[int]) -> Any:
        """Returns a mask of this view that is true on these rows of the table."""
        mask = np.zeros(self.columns.size, np.bool_)
        mask[list(rows)] = True
        return mask if self.rows is None else mask[self.rows]

    def declaring_features(self, features: frozenset[str]) -> BoolColumn:
        """Returns a mask of the nodes whose kubelet declares all of these features."""
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
        """Returns a mask of the rows that have the image."""
        has = self.columns.images.column(image, self.columns.size)
        return has if self.rows is None else has[self.rows]

    def port_conflicts(self, port: Port) -> Any:
        """Returns a mask of the rows on which this host port would conflict, or None if there are none."""
        tables = self.columns.ports.conflicts(port)
        return self.at([row for table in tables for row in table]) if tables else None

    def derived(self, wanted: Derivation) -> Any:
        """Returns a derived column, or a table of several. Over all rows it is computed once and shared by all pod
        classes."""
        return self.columns.derived.all(wanted, self.columns) if self.rows is None else wanted.of(self)

    def derived_for_all(self, wanted: Derivation) -> Any:
        """Returns the same, taken out of the column of all rows. That is brought up to date once for all classes, which
        is less work where many classes ask for it, each for other rows. The caller must not write into it."""
        found = self.columns.derived.all(wanted, self.columns)
        return found if self.rows is None else found.take(self.rows, axis=-1)

    def _amounts(self, layout: ResourceLayout) -> Any:
        """Returns every kind of amount as floats. Over all rows they are computed once for all classes. A view of some
        rows computes the common resources once for all plugins."""
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
        """Returns `answer(self)`. Over all rows it is cached under `question` until a node changes. The caller must not
        write into it."""
        if self.rows is not None:
            return answer(self)
        return self.columns.cached_until_node_change(question, lambda: answer(self))

    @functools.cached_property
    def devices(self) -> Any:
        """Sets of devices (`state.devices.view`)."""
        return NodeDeviceSets(self)

    def table_rows(self) -> Rows:
        """Returns the row of the table for each row of this view."""
        return np.arange(self.columns.size) if self.rows is None else self.rows

    def is_device_class_resource(self, resource: str) -> bool:
        """Returns whether a device class backs this extended resource."""
        return resource in self.columns.device_class_resources

    def locked(self) -> "Nodes":
        """Returns the same rows for out-of-tree plugins: writing into a column raises instead of changing the
        cluster."""
        view = LockedNodes(self.columns, self.rows)
        view.feasible = None if self.feasible is None else _locked(self.feasible)
        return view


class LockedNodes(Nodes):
    """A view whose columns cannot be written to. They are the ledger's own arrays, or shared by all classes."""

    def alloc(self, resource: str) -> Any:
        return _locked(super().alloc(resource))

    def used(self, resource: str) -> Any:
        return _locked(super().used(resource))

    def amounts(self, resources: tuple[str, ...]) -> tuple[Any, bool]:
        tables, every = super().amounts(resources)
        return _locked(tables), every

    @property
    def by_row(self) -> Any:
        return _locked(super().by_row)

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

    def derived_for_all(self, wanted: Derivation) -> Any:
        return _locked(super().derived_for_all(wanted))


def _locked(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


class OneNode(Nodes):
    """A single row as plain numbers. Only plugins with `supports_one_node = True` get this view. They check `single`,
    and index amounts by the resources' indices (`rows_of`)."""

    single = True

    def __init__(self, columns: NodeColumns, row: int) -> None:
        self.columns = columns
        self.row = row
        # `nonzero` is `uses` with defaults for containers without requests.
        self.allocs, self.uses, self.nonzero = columns.resources.by_row[row].tolist()
        self._devices: OneNodeDevices | None = None

    @property
    def width(self) -> int:
        return 1

    @property
    def labels(self) -> dict[str, str]:
        return self.columns.labels.of_row(self.row)

    def as_column(self) -> Nodes:
        """Returns the same row as columns of length one, for the rare result that plain numbers make clumsy."""
        return Nodes(self.columns, np.array([self.row]))

    def locked(self) -> Nodes:
        """Returns itself: its numbers are copies."""
        return self

    @property
    def devices(self) -> Any:  # no cached property: in Python 3.11 that takes a lock, 1 us
        if self._devices is None:
            self._devices = OneNodeDevices(self.columns, self.row)
        return self._devices

    def rows_of(self, resources: tuple[str, ...]) -> list[int]:
        return self.columns.resources.layout(resources).rows

    def port_conflicts(self, port: Port) -> Any:
        return any(self.row in table for table in self.columns.ports.conflicts(port)) or None


@functools.lru_cache(maxsize=256)
def _amounts_of(resources: tuple[int, ...]) -> Derivation:
    """Returns the derivation of a table for each kind of amount, from ALLOC to FREE_NONZERO, with a row for each
    resource."""
    which = slice(len(resources)) if resources == tuple(range(len(resources))) else list(resources)

    def amounts(nodes: Nodes) -> Any:
        cards = nodes.columns.resources.by_row[nodes.where] if nodes.rows is None else nodes.by_row
        table = np.empty((FREE_NONZERO + 1, len(resources), len(cards)))
        table[:3] = cards.transpose(1, 2, 0)[:, which]
        np.subtract(table[0], table[1:3], out=table[3:])  # exact, except for amounts that fit no node
        return table

    return Derivation(f"amounts of {resources}", amounts)


_COMMON_AMOUNTS = _amounts_of(tuple(COMMON_RESOURCES))
