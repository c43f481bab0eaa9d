"""From nodes that volumes cannot tell apart to all rows: outcomes are kept by group, and only those are worked out
again that a change concerns."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from kubenexus.base.numbers import IntColumn
from kubenexus.plugins.volume_matching import FOUND, Matching, Outcome
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.volumes.reach import Label, Reach
from kubenexus.state.volumes.shelf import Shelf

_MOST_CODES = 1 << 40  # beyond it, codes of several labels are numbered anew before another is added


class Groups:
    """Rows that agree in some labels. `of[n]` is row n's group, `rows[g]` one row of group g."""

    def __init__(self, keys: Iterable[str], nodes: NodeColumns) -> None:
        size = nodes.size
        codes: Any = np.zeros(size, np.int64)
        span = 1
        for key in keys:
            column = nodes.labels.column(key)
            if span * len(column.values) > _MOST_CODES:
                codes = np.unique(codes, return_inverse=True)[1]
                span = int(codes.max(initial=0)) + 1
            codes = codes * len(column.values) + column.codes[:size]
            span *= len(column.values)
        _, rows, self.of = np.unique(codes, return_index=True, return_inverse=True)
        self.rows: list[int] = rows.tolist()
        self._labelled: dict[Label, list[int]] = {}
        for group, row in enumerate(self.rows):
            labels = nodes.labels.of_row(row)
            for key in keys:
                if key in labels:
                    self._labelled.setdefault((key, labels[key]), []).append(group)

    def within(self, reach: Reach | None) -> Iterable[int]:
        """The groups that something within this reach may concern."""
        certain = {None} if reach is None else reach.certain
        if None in certain:
            return range(len(self.rows))
        return {group for label in certain if label is not None for group in self._labelled.get(label, ())}


class Outcomes:
    """Of one pod class's claims, on all rows; kept with the class."""

    def __init__(self, matching: Matching, classes: Iterable[str]) -> None:
        self.matching = matching
        self.by_group: list[Outcome] = []
        self.refused: IntColumn = np.zeros(0, np.int64)
        self.scores: IntColumn = np.zeros(0, np.int64)
        self._classes = sorted(set(classes))
        self._groups: Groups | None = None
        self._stamp: tuple[Any, ...] = ()
        self._versions: list[int] = []

    def fresh(self, nodes: NodeColumns) -> Groups:
        """Bring the outcomes up to date, and say which row is in which group."""
        shelves = [nodes.volumes.stock.shelf(name) for name in self._classes]
        keys = self._keys(shelves, nodes)
        stamp = (nodes.node_changes.mark, nodes.size, keys)
        if self._groups is None or stamp != self._stamp:
            self._groups, self._stamp = Groups(keys, nodes), stamp
            self._work_out(None, self._groups, nodes)
        else:
            self._work_out(self._stale(shelves, self._groups), self._groups, nodes)
        self._versions = [shelf.version for shelf in shelves]
        return self._groups

    def _keys(self, shelves: list[Shelf], nodes: NodeColumns) -> tuple[str, ...]:
        """The labels that decide which volumes a node reaches, and whether one can be made for it."""
        keys: set[str] = set()
        for name, shelf in zip(self._classes, shelves, strict=True):
            known = nodes.volumes.classes.get(name)
            keys |= shelf.keys | (known.reach.keys if known is not None and known.reach is not None else set())
        keys |= self.matching.keys(nodes.volumes)
        return tuple(sorted(keys))

    def _stale(self, shelves: list[Shelf], groups: Groups) -> Iterable[int] | None:
        """The groups that changes since last time concern; None: all of them."""
        stale: set[int] = set()
        for shelf, version in zip(shelves, self._versions, strict=True):
            touched = shelf.since(version)
            if touched is None:
                return None
            for reach in touched:
                stale.update(groups.within(reach))
        return stale

    def _work_out(self, stale: Iterable[int] | None, groups: Groups, nodes: NodeColumns) -> None:
        if stale is None:
            stale, number = range(len(groups.rows)), len(groups.rows)
            self.by_group = [Outcome(FOUND)] * number
            self.refused, self.scores = np.zeros(number, np.int64), np.zeros(number, np.int64)
        for group in stale:
            labels = nodes.labels.of_row(groups.rows[group])
            outcome = self.by_group[group] = self.matching.outcome(labels, nodes.volumes)
            self.refused[group], self.scores[group] = outcome.refused, outcome.score
