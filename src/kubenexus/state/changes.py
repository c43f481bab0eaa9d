"""Which rows changed since you last looked.

Whoever caches something per row remembers a mark and asks what came after it. The log is bounded: a reader that
slept too long is told so (`None`) and starts afresh.
"""

import numpy as np
from numpy.typing import NDArray

LIMIT = 1 << 16

Rows = NDArray[np.int64]


class Changes:
    """`mark` is now, as a number to hand to `since` later."""

    __slots__ = ("_dropped", "_latest", "_log", "mark")

    def __init__(self) -> None:
        self.mark = 0
        self._dropped = 0
        self._log: Rows = np.zeros(min(1024, 2 * LIMIT), np.int64)
        self._latest: Rows = np.zeros(64, np.int64)  # by row: the mark of its last change

    def note(self, row: int) -> None:
        place, mark = self.mark - self._dropped, self.mark
        if place == len(self._log):
            place = self._make_room()
        if row >= len(self._latest):
            self._latest = np.concatenate([self._latest, np.zeros(row + 1, np.int64)])
        self._log[place] = row
        self._latest[row] = mark
        self.mark = mark + 1

    def since(self, mark: int) -> Rows | None:
        """Rows noted after `mark`, each once; None when that is no longer known. To be read before the next change."""
        if mark < self._dropped:
            return None
        rows = self._log[mark - self._dropped : self.mark - self._dropped]
        if len(rows) < 2:
            return rows
        last = self._latest.take(rows) == np.arange(mark, self.mark)
        return rows if np.count_nonzero(last) == len(rows) else rows[last]

    def _make_room(self) -> int:
        """A longer log while it is short; then its older half is forgotten. Where the next change goes."""
        known = len(self._log)
        if known < 2 * LIMIT:
            self._log = np.concatenate([self._log, np.zeros(known, np.int64)])
            return known
        self._log[:LIMIT] = self._log[LIMIT:]
        self._dropped += LIMIT
        return LIMIT
