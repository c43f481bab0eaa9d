"""From nodes that volumes cannot tell apart to all rows: outcomes are kept by group, and only those are worked out
again that a change concerns."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kubenexus.base.numbers import IntColumn
from kubenexus.plugins.volume_matching import FOUND, Matching, Outcome, Wanted
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes
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

    def __init__(self, claims: Sequence[Wanted], line: Sequence[int]) -> None:
        self._matching = Matching(claims, line)
        self._classes = sorted({claim.class_name for claim in claims})
        self._groups: Groups | None = None
        self._by_group: list[Outcome] = []
        self._refused: IntColumn = np.zeros(0, np.int64)
        self._scores: IntColumn = np.zeros(0, np.int64)
        self._stamp: tuple[Any, ...] = ()

    def refused_at(self, nodes: Nodes) -> IntColumn:
        groups = self._fresh(nodes.columns).of[nodes.where]
        refused: IntColumn = self._refused[groups]
        return refused

    def scores_at(self, nodes: Nodes) -> IntColumn:
        groups = self._fresh(nodes.columns).of[nodes.where]
        scores: IntColumn = self._scores[groups]
        return scores

    def at(self, row: int, nodes: NodeColumns) -> Outcome:
        group = int(self._fresh(nodes).of[row])
        return self._by_group[group]

    def room_at(self, nodes: Nodes, most: int) -> IntColumn:
        """How many pods with such claims each row could take, one after the other, `most` if nothing limits them."""
        groups, by_group = self._fresh(nodes.columns), []
        for row in groups.rows:
            labels, taken, room = nodes.columns.labels.of_row(row), set[str](), 0
            while room < most:
                outcome = self._matching.outcome(labels, nodes.columns.volumes, taken)
                picked = {pick.volume for pick in outcome.picks if pick.volume}
                if outcome.refused:
                    break
                room = room + 1 if picked else most
                taken |= picked
            by_group.append(room)
        rooms: IntColumn = np.array(by_group, np.int64)[groups.of[nodes.where]]
        return rooms

    def _fresh(self, nodes: NodeColumns) -> Groups:
        """Bring the outcomes up to date, and say which row is in which group."""
        shelves = [nodes.volumes.stock.shelf(name) for name in self._classes]
        versions = [shelf.version for shelf in shelves]
        if self._groups is not None and self._stamp[:2] == (nodes.node_changes.mark, versions):
            return self._groups
        keys = self._keys(shelves, nodes)
        grouped = (nodes.node_changes.mark, keys)
        if self._groups is None or self._stamp[::2] != grouped:
            self._groups, stale = Groups(keys, nodes), None
        else:
            stale = self._stale(shelves, self._groups)
        self._work_out(stale, self._groups, nodes)
        self._stamp = (nodes.node_changes.mark, versions, keys)
        return self._groups

    def _keys(self, shelves: list[Shelf], nodes: NodeColumns) -> tuple[str, ...]:
        """The labels that decide which volumes a node reaches, and whether one can be made for it."""
        keys = self._matching.keys(nodes.volumes)
        for name, shelf in zip(self._classes, shelves, strict=True):
            known = nodes.volumes.classes.get(name)
            keys |= shelf.keys | (known.reach.keys if known is not None and known.reach is not None else set())
        return tuple(sorted(keys))

    def _stale(self, shelves: list[Shelf], groups: Groups) -> set[int] | None:
        """The groups that changes since last time concern; None: all of them."""
        stale: set[int] = set()
        for shelf, version in zip(shelves, self._stamp[1], strict=True):
            touched = shelf.since(version)
            if touched is None:
                return None
            for reach in touched:
                stale.update(groups.within(reach))
        return stale

    def _work_out(self, stale: set[int] | None, groups: Groups, nodes: NodeColumns) -> None:
        number = len(groups.rows)
        if stale is None:
            self._by_group = [Outcome(FOUND)] * number
            self._refused, self._scores = np.zeros(number, np.int64), np.zeros(number, np.int64)
        for group in range(number) if stale is None else stale:
            labels = nodes.labels.of_row(groups.rows[group])
            outcome = self._by_group[group] = self._matching.outcome(labels, nodes.volumes)
            self._refused[group], self._scores[group] = outcome.refused, outcome.score
