"""The number of pods on each row that match a query, kept up to date as pods are added and removed."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubenexus.base.arrays import IntColumn, grow
from kubenexus.base.intern import ABSENT, UNKNOWN
from kubenexus.state.labels import LabelColumn, LabelColumns

Steps = list[tuple[int, int]]  # (row, change) of each pod that was added or removed
_LOGGED, _FLIPS = 1024, 16
_FEW_ROWS = 64  # rows
_NO_ROWS: NDArray[np.int64] = np.zeros(0, np.int64)
_NO_STEPS: deque[tuple[int, int]] = deque(maxlen=0)
_NO_FLIPS: deque[int] = deque(maxlen=0)


class PodCounter:
    """`rows[n]` is the number of pods on row n; `by_domain(key)` is the same by the code of a topology label's value.

    `version` grows with every change. `presence_version` grows only when a domain in use goes from no pods to some, or
    back: required terms need no more than that. All classes with an equal query share one counter; it is dropped when
    no class refers to it. `missed` is set only on a `LazyCounter`.
    """

    __slots__ = (
        "__weakref__",
        "_domains",
        "_flipped",
        "_labels",
        "_log",
        "max_per_row",
        "missed",
        "presence_version",
        "rows",
        "total",
        "version",
    )

    missed: Any

    def __init__(self, rows: NDArray[np.int64], labels: LabelColumns) -> None:
        self.rows = rows
        self.total = int(rows.sum())
        self.max_per_row = int(rows.max(initial=0))  # the highest count of any row, now or before
        self.version = 0
        self.presence_version = 0
        self._labels = labels
        self._domains: dict[str, tuple[LabelColumn, IntColumn]] = {}
        self._log: deque[tuple[int, int]] = deque(maxlen=_LOGGED)
        self._flipped: deque[int] = deque(maxlen=_FLIPS)

    def presence_changes_since(self, flips: int) -> list[int] | None:
        """Returns the rows whose domains changed presence since `flips`, or None if the log does not reach that far
        back."""
        steps = self.presence_version - flips
        if steps == 1 and self._flipped:
            return [self._flipped[-1]]
        return None if not 0 <= steps <= len(self._flipped) else [self._flipped[i] for i in range(-steps, 0)]

    def steps_since(self, version: int) -> Steps | None:
        """Returns each change since `version`, or None if the log does not reach that far back."""
        steps = self.version - version
        if steps == 1 and self._log:  # as after most decisions
            return [self._log[-1]]
        return None if steps > len(self._log) else [self._log[i] for i in range(-steps, 0)]

    def add(self, row: int, delta: int) -> None:
        if row >= len(self.rows):
            self.rows = grow(self.rows, len(self.rows) + max(row + 1, len(self.rows)))
        before = self.rows.item(row)
        self.rows[row] = before + delta
        self.max_per_row = max(self.max_per_row, before + delta)
        self.total += delta
        self.version += 1
        self._log.append((row, delta))
        flipped = False
        for key, (column, counts) in list(self._domains.items()):
            # A column that replaced this one while it was not in use may have assigned other codes.
            code = column.codes.item(row) if self._labels.column(key) is column else len(counts)
            if code >= len(counts):
                del self._domains[key]
                flipped = True
                continue
            counts[code] += delta
            flipped = flipped or not counts[code] or counts[code] == delta
        if flipped:
            self.presence_version += 1
            self._flipped.append(row)

    def by_domain(self, key: str) -> IntColumn:
        """Returns the number of pods by the code of this label's value. Code 0 is for nodes without the label."""
        column = self._labels.column(key)
        known, counts = self._domains.get(key, (None, None))
        if counts is None or known is not column or len(counts) < len(column.values):
            counts = _by_code(column, self.rows)
            self._domains[key] = (column, counts)
        return counts

    def any_in_domain(self, key: str) -> bool:
        """Returns whether any pod is counted in a domain of this label."""
        return self.total > self.by_domain(key).item(0)

    def mark(self, key: str, some: NDArray[np.bool_]) -> None:
        """Sets `some[code]` for each domain of this label that has pods; true values stay true."""
        some |= self.by_domain(key) > 0

    def pour(self, key: str, weight: int, into: IntColumn) -> None:
        """Adds `weight` for each pod to its domain's entry in `into`."""
        into += weight * self.by_domain(key)

    def differences(self, rows: NDArray[np.int64]) -> list[tuple[int, int, int]]:
        """Returns where this counter differs from a recount, as (row, held, recounted). Row -1 is for the total, or for
        a domain in use."""
        found = _differing(self.rows, rows)
        if self.total != int(rows.sum()):
            found.append((-1, self.total, int(rows.sum())))
        for column, counts in self._domains.values():
            anew = _by_code(column, self.rows)[: len(counts)]
            found += [(-1, held, recounted) for _, held, recounted in _differing(counts, anew)]
        return found

    def set(self, rows: NDArray[np.int64]) -> None:
        """Replaces all counts by a recount."""
        self.rows, self.total = rows, int(rows.sum())
        self.max_per_row = max(self.max_per_row, int(rows.max(initial=0)))
        self.relabelled()

    def relabelled(self) -> None:
        """Drops the counts by domain after a change of node labels. They are counted again when they are next used."""
        self._domains.clear()
        self._log.clear()
        self._flipped.clear()
        self.version += 1
        self.presence_version += 1


class FewRows(PodCounter):
    """A counter that uses dicts while it counts pods on few rows, as most terms of existing pods do. A full column for
    each of five hundred terms of a pod would take 20 MB.

    Domains are counted again at the first use after the labels of a node changed. `version` and `presence_version` do
    not grow by that: readers compare the mark of node changes as well. There may be a hundred thousand such counters,
    and an event of a node must not cost time for each.
    """

    __slots__ = ("_changes", "_codes", "_few")

    def __init__(self, labels: LabelColumns, few: dict[int, int] | None = None) -> None:
        super().__init__(_NO_ROWS, labels)
        # Until a second change: deques take more memory than all the rest.
        self._log, self._flipped = _NO_STEPS, _NO_FLIPS
        self._changes = labels.changes
        self._few: dict[int, int] | None = {} if few is None else few
        self._codes: dict[str, tuple[LabelColumn, dict[int, int]]] = {}  # as `_domains`, without empty domains
        if few:
            self.total, self.max_per_row = sum(few.values()), max(few.values())
            if len(few) > _FEW_ROWS:
                self._spread(few)

    def _drop_old_domains(self) -> None:
        if self._changes != self._labels.changes:
            self._changes = self._labels.changes
            self._domains.clear()
            self._codes = {}
            self._log.clear()
            self._flipped.clear()

    def add(self, row: int, delta: int) -> None:
        self._drop_old_domains()
        few = self._few
        if few is None:
            super().add(row, delta)
            return
        if self.version == 1:
            self._log, self._flipped = deque(maxlen=_LOGGED), deque(maxlen=_FLIPS)
        self.max_per_row = max(self.max_per_row, _step(few, row, delta))
        self.total += delta
        self.version += 1
        self._log.append((row, delta))
        flipped = False
        for key, (column, counts) in list(self._codes.items()):
            if self._labels.column(key) is not column:
                del self._codes[key]
                flipped = True
                continue
            now = _step(counts, column.codes.item(row), delta)
            flipped = flipped or not now or now == delta
        if flipped:
            self.presence_version += 1
            self._flipped.append(row)
        if len(few) > _FEW_ROWS:
            self._spread(few)

    def _spread(self, few: dict[int, int]) -> None:
        """Switches to full columns. Domains in use are counted again."""
        rows = np.zeros(max(few) + 1, np.int64)
        for row, pods in few.items():
            rows[row] = pods
        self._few, self.rows = None, rows
        for key in self._codes:
            super().by_domain(key)
        self._codes = {}

    def _by_domain(self, key: str, few: dict[int, int]) -> dict[int, int]:
        self._drop_old_domains()
        column = self._labels.column(key)
        known = self._codes.get(key)
        if known is None or known[0] is not column:
            counts: dict[int, int] = {}
            for row, pods in few.items():
                _step(counts, column.codes.item(row), pods)
            known = self._codes[key] = (column, counts)
        return known[1]

    def by_domain(self, key: str) -> IntColumn:
        if self._few is None:
            self._drop_old_domains()
            return super().by_domain(key)
        counts = np.zeros(len(self._labels.column(key).values), np.int64)
        self.pour(key, 1, counts)
        return counts

    def any_in_domain(self, key: str) -> bool:
        if self._few is None:
            return super().any_in_domain(key)
        return self.total > self._by_domain(key, self._few).get(ABSENT, 0)

    def mark(self, key: str, some: NDArray[np.bool_]) -> None:
        if self._few is None:
            super().mark(key, some)
        else:
            for code in self._by_domain(key, self._few):
                some[code] = True

    def pour(self, key: str, weight: int, into: IntColumn) -> None:
        if self._few is None:
            super().pour(key, weight, into)
        else:
            for code, pods in self._by_domain(key, self._few).items():
                into[code] += weight * pods

    def relabelled(self) -> None:
        super().relabelled()
        self._codes = {}


class DomainCounter(PodCounter):
    """Counts by the domains of one topology label alone, and holds no rows. Counts are never negative."""

    __slots__ = ("_topology",)

    def __init__(self, topology: str, labels: LabelColumns) -> None:
        super().__init__(_NO_ROWS, labels)
        self._log, self._flipped = deque(maxlen=_FLIPS), deque(maxlen=_FLIPS)
        self._topology = topology
        self._replace(labels.column(topology), _NO_ROWS)

    @property
    def nbytes(self) -> int:
        """The size of the counts and of the logs."""
        return 256 * _FLIPS + self._domains[self._topology][1].nbytes

    def by_domain(self, key: str) -> IntColumn:
        column = self._labels.column(key)
        known, counts = self._domains[key]
        if known is not column:
            self._take_over(column, known, counts)
            counts = self._domains[key][1]
        if len(counts) < len(column.values):
            counts = grow(counts, len(column.values))
            self._domains[key] = (column, counts)
        return counts

    def _take_over(self, column: LabelColumn, known: LabelColumn, counts: IntColumn) -> None:
        """Finds the codes of the same values in a column that was built again."""
        self.relabelled()
        moved = np.zeros(len(column.values), np.int64)
        for code in np.flatnonzero(counts).tolist():
            now = column.values.find(known.values.names[code]) if code else ABSENT
            if now != UNKNOWN:
                moved[now] = counts[code]
        self._domains[self._topology], self.total = (column, moved), int(moved.sum())

    def add(self, row: int, delta: int) -> None:
        counts = self.by_domain(self._topology)
        code = self._domains[self._topology][0].codes.item(row)
        counts[code] += delta
        self.total += delta
        self.version += 1
        self._log.append((row, delta))
        if not counts[code] or counts[code] == delta:
            self.presence_version += 1
            self._flipped.append(row)

    def set(self, rows: NDArray[np.int64]) -> None:
        """Replaces the counts by a recount by row. If few domains differ, readers learn which, by one row of each."""
        before = self.by_domain(self._topology)
        column = self._domains[self._topology][0]
        change = _by_code(column, rows) - before
        differing = np.flatnonzero(change).tolist()
        places = [int((column.codes == code).argmax()) for code in differing[: _FLIPS + 1]]
        if (
            len(places) > _FLIPS or [column.codes.item(row) for row in places] != differing
        ):  # too many, or a domain has no rows any more
            self._replace(column, rows)
            return
        for row, code in zip(places, differing, strict=True):
            self.add(row, change.item(code))

    def _replace(self, column: LabelColumn, rows: NDArray[np.int64]) -> None:
        self.relabelled()
        self._domains[self._topology] = (column, _by_code(column, rows))
        self.total = int(rows.sum())


def _by_code(column: LabelColumn, rows: NDArray[np.int64]) -> IntColumn:
    """Returns counts by row as counts by the code of the row's value."""
    codes = column.codes[: len(rows)]
    return np.bincount(codes, weights=rows[: len(codes)], minlength=len(column.values)).astype(np.int64)


def _step(counts: dict[int, int], which: int, by: int) -> int:
    """Adds `by` to a count and returns it; a count of 0 is removed."""
    now = counts.get(which, 0) + by
    if now:
        counts[which] = now
    else:
        counts.pop(which, None)
    return now


def _differing(held: NDArray[np.int64], recounted: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    size = max(len(held), len(recounted))
    ours, theirs = (np.pad(each, (0, size - len(each))) for each in (held, recounted))
    return [(i, ours.item(i), theirs.item(i)) for i in np.flatnonzero(ours != theirs).tolist()]
