"""A bounded log of changed rows, for caches that hold a value per row.

A cache remembers the log's `mark` and later reads the rows that changed after it. If the log no longer reaches that far
back, it returns None and the cache recomputes all rows.
"""

import numpy as np
from numpy.typing import NDArray

from kubenexus.base.arrays import grow

LIMIT = 1 << 16

Rows = NDArray[np.int64]
_NONE: Rows = np.zeros(0, np.int64)


class ChangeLog:
    """`mark` counts the recorded changes; a reader keeps it and passes it to `rows_since` later."""

    __slots__ = ("_dropped", "_latest", "_log", "_repeated", "mark")

    def __init__(self) -> None:
        self.mark = 0
        self._dropped = 0
        self._log: Rows = np.zeros(min(1024, 2 * LIMIT), np.int64)
        self._latest: Rows = np.full(64, -1, np.int64)  # by row: the mark of its last change
        self._repeated = -1  # the last mark whose row changed again since: after it no row is in the log twice

    def record(self, row: int) -> None:
        """Records a change of a row."""
        place, mark = self.mark - self._dropped, self.mark
        if place == len(self._log):
            place = self._make_space()
        if row >= len(self._latest):
            self._latest = grow(self._latest, len(self._latest) + row + 1, -1)
        self._log[place] = row
        self._repeated = max(self._repeated, self._latest.item(row))
        self._latest[row] = mark
        self.mark = mark + 1

    def rows_since(self, mark: int) -> Rows | None:
        """Returns the rows recorded since `mark`, each once, or None if the log no longer reaches that far back. The
        result is a view of the log: the caller uses it before the next change."""
        if mark == self.mark:
            return _NONE
        if mark < self._dropped:
            return None
        rows = self._log[mark - self._dropped : self.mark - self._dropped]
        return rows if self._repeated < mark else rows[self._latest.take(rows) == np.arange(mark, self.mark)]

    def _make_space(self) -> int:
        """Doubles the log up to 2 * LIMIT, then drops its older half. Returns the index for the next change."""
        known = len(self._log)
        if known < 2 * LIMIT:
            self._log = grow(self._log, 2 * known)
            return known
        self._log[:LIMIT] = self._log[LIMIT:]
        self._dropped += LIMIT
        return LIMIT
