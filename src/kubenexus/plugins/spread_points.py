"""Soft constraints as points: where PodTopologySpread would rather have a pod.

All constraints of a pod together take few values, however many nodes there are: each combination of their points has a
code, and each row the code of its combination. A pod more or less on a row moves the code of that row and the points of
its domains, and nothing else: so codes follow the pods, and only the few points are worked out for each decision.
"""

import functools
import math
from typing import Any

import numpy as np

from kubenexus.base.numbers import BoolColumn, IntColumn
from kubenexus.framework.points import Coded
from kubenexus.plugins.spread import HOSTNAME, Constraint, Domains, labelled
from kubenexus.plugins.terms import axis
from kubenexus.state.counters import Counter, Steps
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

IGNORED = -1  # a node that lacks a topology label: 0 points, and no part in normalising
_MOST_STEPS = 32  # with more behind, it is quicker to start afresh
_FEW = 1024  # combinations, on a small cluster; on others up to as many as rows


class ByNode:
    """A constraint over hostnames: a row's index is the number of its pods that count."""

    def __init__(self, constraint: Constraint, counter: Counter) -> None:
        self.constraint = constraint
        self.counter = counter
        self._seen = 0
        self._missing: Any = None
        self._pods: Any = None  # of each index
        self._base: Any = None

    @property
    def layout(self) -> int:
        """Indices mean the same while this, and the nodes, are the same."""
        return self.counter.most

    def index(self, nodes: Nodes) -> tuple[Any, int]:
        """Of all rows, as of now, and how many there are. The last one stands for nodes without the label."""
        last = self.counter.most + 1
        self._pods, self._base = np.arange(last + 1.0), _base(self.constraint, last)
        self._pods[-1] = 0.0
        self._seen = self.counter.version
        codes, rows = axis(HOSTNAME, nodes)
        self._missing = codes == 0 if rows[0] else None
        index = np.zeros(nodes.width, np.intp)
        known = self.counter.rows[: nodes.width]
        index[: len(known)] = known
        if self._missing is not None:
            index[self._missing] = last
        return index, last + 1

    def steps(self) -> Steps | None:
        """How indices changed since they were last asked for; None when that is no longer known."""
        steps, self._seen = self.counter.since(self._seen), self.counter.version
        if steps and self._missing is not None:
            return [(row, by) for row, by in steps if not self._missing.item(row)]
        return steps

    def points(self, scored: BoolColumn, number: int) -> Any:
        """Of each index: every row that is scored, which are so many, is a domain."""
        return self._pods * math.log(number + 2) + self._base


class ByDomain:
    """A constraint over zones, racks or the like: a row's index is the code of its domain, which stays."""

    def __init__(self, domains: Domains) -> None:
        self.constraint = domains.constraint
        self.counter = domains.counter
        self._domains = domains
        self._base: Any = None

    @property
    def layout(self) -> int:
        return self._domains.recounts

    def index(self, nodes: Nodes) -> tuple[Any, int]:
        codes, rows = axis(self.constraint.topology, nodes)
        last = len(rows)
        self._base = _base(self.constraint, last)
        return np.where(codes == 0, last, codes) if rows[0] else codes, last + 1

    def steps(self) -> Steps | None:
        return []

    def points(self, scored: BoolColumn, number: int) -> Any:
        """More pods in a node's domain are more points; domains of a topology with many values weigh more."""
        return self._domains.padded * math.log(self._domains.in_use(scored, number) + 2) + self._base


def _base(constraint: Constraint, last: int) -> Any:
    """What every domain is given, whatever runs there; nodes without the label are given nothing."""
    base = np.full(last + 1, constraint.max_skew - 1.0)
    base[last] = 0.0
    return base


class Leaning:
    """The soft constraints of a class together; shared by all classes that spread alike."""

    def __init__(self, parts: list[ByNode | ByDomain], all_labels: bool) -> None:
        self.counters = [part.counter for part in parts]
        self._parts = parts
        self._all_labels = all_labels
        self._layout: list[int] = []
        self._codes: Any = None  # None: there are too many combinations to give each a code
        self._rows: Any = None  # how many rows have each code
        self._key = object()  # names the codes
        self._indices: list[Any] = []  # by constraint: the index that each code stands for
        self._strides: list[int] = []  # by constraint: how far codes are apart whose indices are neighbours
        self._labelled: Any = None  # rows with all labels; None when that is no question
        self._ignored: Any = None  # combinations in which some label is missing; None when no row has one

    def score(self, nodes: Nodes) -> IntColumn | Coded:
        """Raw scores as of now. The domains were refreshed before."""
        self._follow(nodes.columns)
        scored = nodes.feasible if self._labelled is None else nodes.feasible & self._labelled
        number = int(np.count_nonzero(scored))
        tables = [part.points(scored, number) for part in self._parts]
        if self._codes is None:
            return self._row_by_row(tables, nodes)
        raw = _added(tables, self._indices)
        if self._ignored is not None:
            raw[self._ignored] = IGNORED
        if nodes.rows is None:
            return Coded(self._codes, raw, self._key, self._rows)
        return Coded(self._codes[nodes.rows], raw)

    def _follow(self, nodes: NodeColumns) -> None:
        layout = [nodes.node_changes.mark, *[part.layout for part in self._parts]]
        if layout != self._layout or (self._codes is not None and not self._step()):
            self._layout = layout
            self._recode(Nodes(nodes))

    def _recode(self, nodes: Nodes) -> None:
        found = [part.index(nodes) for part in self._parts]
        sizes, self._key, self._codes = [size for _, size in found], object(), None
        self._strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
        combinations = math.prod(sizes)
        with_labels = labelled([part.constraint for part in self._parts], nodes) if self._all_labels else None
        self._labelled = None if with_labels is None or with_labels.all() else with_labels
        if combinations <= max(_FEW, nodes.width):
            self._codes = sum(index * stride for (index, _), stride in zip(found, self._strides, strict=True))
            self._rows = np.bincount(self._codes, minlength=combinations)
            self._indices = list(np.unravel_index(np.arange(combinations), sizes))
            self._ignored = None if self._labelled is None else _ignored(self._indices, sizes)

    def _step(self) -> bool:
        """Follow the pods that came or went; whether that could be done."""
        several = [part.steps() for part in self._parts]
        known = [steps for steps in several if steps is not None]
        if len(known) < len(several) or sum(map(len, known)) > _MOST_STEPS:
            return False
        if any(known):
            # Tables hold on to the codes they were given: these are others.
            self._key, self._codes, self._rows = object(), self._codes.copy(), self._rows.copy()
            for steps, stride in zip(known, self._strides, strict=True):
                for row, by in steps:
                    self._move(row, by * stride)
        return True

    def _move(self, row: int, by: int) -> None:
        code = self._codes.item(row)
        self._codes[row] = code + by
        self._rows[code] -= 1
        self._rows[code + by] += 1

    def _row_by_row(self, tables: list[Any], nodes: Nodes) -> IntColumn:
        every = Nodes(nodes.columns)
        raw = _added(tables, [part.index(every)[0] for part in self._parts])
        if self._labelled is not None:
            raw[~self._labelled] = IGNORED
        some: IntColumn = raw[nodes.where]
        return some


def _added(tables: list[Any], indices: list[Any]) -> Any:
    """The points of all constraints together, rounded: they are not negative."""
    several = [table.take(index) for table, index in zip(tables, indices, strict=True)]
    return (functools.reduce(np.add, several) + 0.5).astype(np.int64)


def _ignored(indices: list[Any], sizes: list[int]) -> BoolColumn:
    """The combinations in which some constraint's label is missing."""
    missing = [index == size - 1 for index, size in zip(indices, sizes, strict=True)]
    ignored: BoolColumn = np.logical_or.reduce(missing)
    return ignored
