"""Which rows changed since you last looked.

Whoever caches something per row remembers a mark and asks what came after it. The log is bounded: a reader that
slept too long is told so (`None`) and starts afresh.
"""

LIMIT = 1 << 16


class Changes:
    __slots__ = ("_dropped", "_rows")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._dropped = 0

    @property
    def mark(self) -> int:
        """Now, as a number to hand to `since` later."""
        return self._dropped + len(self._rows)

    def note(self, row: int) -> None:
        if len(self._rows) >= 2 * LIMIT:
            del self._rows[:LIMIT]
            self._dropped += LIMIT
        self._rows.append(row)

    def since(self, mark: int) -> list[int] | None:
        """Rows noted after `mark`, repeats included; None when that is no longer known."""
        if mark < self._dropped:
            return None
        return self._rows[mark - self._dropped :]
