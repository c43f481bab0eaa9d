"""Outcomes by group of nodes that are equal to volumes. After a change, only the outcomes of the groups it concerns are
computed again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kubenexus.base.arrays import IntColumn, any_true
from kubenexus.plugins.volume_binding.matching import ClaimMatcher, ClaimOutcome, UnboundClaim
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes
from kubenexus.state.volumes.volume_pool import StorageClassPool
from kubenexus.state.volumes.volume_topology import Label, VolumeTopology

Values = tuple[str | None, ...]
_MAX_CODES = 1 << 40  # above this, combined codes of several labels are renumbered before another is added


class NodeGroups:
    """Rows with equal values of some labels: `of[n]` is row n's group, `values[g]` the values in group g. Many classes
    share an object: callers must not write into it."""

    def __init__(self, keys: Sequence[str], codes: IntColumn, nodes: NodeColumns) -> None:
        self.keys, self.codes = keys, codes
        _, rows, self.of = np.unique(codes, return_index=True, return_inverse=True)
        labels = [nodes.labels.of_row(row) for row in rows.tolist()]
        self.values: list[Values] = [tuple([each.get(key) for key in keys]) for each in labels]
        self._labelled: dict[tuple[str, str | None], list[int]] = {}
        for group, values in enumerate(self.values):
            for label in zip(keys, values, strict=True):
                self._labelled.setdefault(label, []).append(group)

    def __len__(self) -> int:
        return len(self.values)

    def labels(self, group: int) -> dict[str, str]:
        """Returns those of the labels that the nodes of a group have."""
        return {key: value for key, value in zip(self.keys, self.values[group], strict=True) if value is not None}

    def within(self, reach: VolumeTopology | None) -> Iterable[int]:
        """Returns the groups that a change within this reach may concern."""
        certain: set[Label | None] = {None} if reach is None else reach.certain
        if None in certain:
            return range(len(self))
        return {group for label in certain if label is not None for group in self._labelled.get(label, ())}


class ClaimOutcomes:
    """The outcomes of one pod class's claims on all rows; cached with the class."""

    def __init__(self, claims: Sequence[UnboundClaim], line: Sequence[int]) -> None:
        self._matching = ClaimMatcher(claims, line)
        self._classes = sorted({claim.class_name for claim in claims})
        self._groups: NodeGroups | None = None
        self._by_group: list[ClaimOutcome] = []
        self._refused: IntColumn = np.zeros(0, np.int64)
        self._scores: IntColumn = np.zeros(0, np.int64)
        self._stamp: tuple[int, list[int]] = (-1, [])

    def refused_somewhere(self, nodes: NodeColumns) -> bool:
        self._fresh(nodes)
        return any_true(self._refused)

    def refused_at(self, nodes: Nodes) -> IntColumn:
        groups = self._fresh(nodes.columns).of[nodes.where]
        refused: IntColumn = self._refused[groups]
        return refused

    def scores_at(self, nodes: Nodes) -> IntColumn | int:
        groups = self._fresh(nodes.columns).of
        if not any_true(self._scores):
            return 0
        scores: IntColumn = self._scores[groups[nodes.where]]
        return scores

    def at(self, row: int, nodes: NodeColumns) -> ClaimOutcome:
        group = int(self._fresh(nodes).of[row])
        return self._by_group[group]

    def capacity_at(self, nodes: Nodes, most: int) -> IntColumn:
        """Returns how many pods with such claims each row could take, one after the other; `most` if nothing limits
        them."""
        groups = self._fresh(nodes.columns)
        store, labels = nodes.columns.volumes, map(groups.labels, range(len(groups)))
        by_group = np.array([self._matching.capacity(each, store, most) for each in labels], np.int64)
        capacities: IntColumn = by_group[groups.of[nodes.where]]
        return capacities

    def _fresh(self, nodes: NodeColumns) -> NodeGroups:
        """Brings the outcomes up to date and returns the groups."""
        shelves = [nodes.volumes.stock.pool(name) for name in self._classes]
        stamp = (nodes.node_changes.mark, [shelf.version for shelf in shelves])
        if self._groups is None or stamp != self._stamp:
            self._groups = self._catch_up(self._groups, shelves, nodes)
            self._stamp = stamp
        return self._groups

    def _catch_up(self, old: NodeGroups | None, shelves: list[StorageClassPool], nodes: NodeColumns) -> NodeGroups:
        keys = self._keys(shelves, nodes)
        stale = None if old is None or old.keys != keys else self._stale(shelves, old)
        if old is None or stale is None:
            return self._regrouped(keys, {}, nodes)
        if nodes.node_changes.mark != self._stamp[0] and not np.array_equal(old.codes, _groups(keys, nodes).codes):
            return self._regrouped(keys, self._known(old, stale), nodes)
        for group in stale:
            self._set(group, self._matching.outcome(old.labels(group), nodes.volumes))
        return old

    def _regrouped(self, keys: tuple[str, ...], known: Mapping[Values, ClaimOutcome], nodes: NodeColumns) -> NodeGroups:
        groups = _groups(keys, nodes)
        self._by_group = [_NOTHING] * len(groups)
        self._refused, self._scores = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
        for group, values in enumerate(groups.values):
            outcome = known.get(values)
            self._set(group, outcome or self._matching.outcome(groups.labels(group), nodes.volumes))
        return groups

    def _keys(self, shelves: list[StorageClassPool], nodes: NodeColumns) -> tuple[str, ...]:
        """Returns the labels that decide which volumes a node reaches, and whether one can be provisioned for it."""
        keys = self._matching.keys(nodes.volumes)
        for name, shelf in zip(self._classes, shelves, strict=True):
            known = nodes.volumes.classes.get(name)
            keys |= shelf.keys | (known.reach.keys if known is not None and known.reach is not None else set())
        return tuple(sorted(keys))

    def _stale(self, shelves: list[StorageClassPool], groups: NodeGroups) -> set[int] | None:
        """Returns the groups that changes since the last time concern; None: all of them."""
        stale: set[int] = set()
        for shelf, version in zip(shelves, self._stamp[1], strict=True):
            touched = shelf.since(version)
            if touched is None:
                return None
            for reach in touched:
                stale.update(groups.within(reach))
        return stale

    def _known(self, old: NodeGroups, stale: set[int]) -> Mapping[Values, ClaimOutcome]:
        """Returns the outcomes that are still valid, by label values: rows are added, removed and relabelled one at a
        time."""
        return {values: self._by_group[g] for g, values in enumerate(old.values) if g not in stale}

    def _set(self, group: int, outcome: ClaimOutcome) -> None:
        self._by_group[group] = outcome
        self._refused[group], self._scores[group] = outcome.refused, outcome.score


_NOTHING = ClaimOutcome(0)


def _groups(keys: tuple[str, ...], nodes: NodeColumns) -> NodeGroups:
    """Returns the groups of rows by these labels, computed once for all classes until a node changes."""
    found: NodeGroups = nodes.cached_until_node_change(
        (NodeGroups, keys), lambda: NodeGroups(keys, _codes(keys, nodes), nodes)
    )
    return found


def _codes(keys: Sequence[str], nodes: NodeColumns) -> IntColumn:
    """Returns a number for each row, equal where all these labels are equal."""
    codes: Any = np.zeros(nodes.size, np.int64)
    span = 1
    for key in keys:
        column = nodes.labels.column(key)
        if span * len(column.values) > _MAX_CODES:
            codes = np.unique(codes, return_inverse=True)[1]
            span = int(codes.max(initial=0)) + 1
        codes = codes * len(column.values) + column.codes[: nodes.size]
        span *= len(column.values)
    numbered: IntColumn = codes
    return numbered
