"""Jobs that are tried after all others: a decision about them took so long that it held up all others.

The room looks here when it is about to hand a job out, which is the one place that every way into a turn leads through:
a newcomer of the same kind, an event, a backoff that ends, a bind that failed. Jobs that are alike share one line, cost
the same to decide, and are late together.
"""

from typing import Final

from kubenexus.queue.line import Line

YIELDS: Final = 1.0  # seconds until it is looked again whether others are still ready
PATIENCE: Final = 600.0  # seconds that a job whose pause is over lets others go first


class LateJobs:
    """Until when jobs rest, by key. Times are handed in."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def add(self, key: str, until: float, now: float) -> None:
        """Forgets those whose time is long over: each costs seconds to come by, so there are never many."""
        self._until = {each: end for each, end in self._until.items() if end + PATIENCE > now}
        self._until[key] = until

    def discard(self, key: str) -> None:
        self._until.pop(key, None)

    def mark(self, line: Line, key: str) -> None:
        """The job stands in this line now: those like it are late, too."""
        line.late = max(line.late, self._until.get(key, 0.0))

    def rests(self, line: Line, key: str, now: float, *, alone: bool) -> float | None:
        """Until when the line is to wait, whose first job this is; None: it may be tried. `alone`: no other line is
        ready."""
        late = max(line.late, self._until.get(key, 0.0))
        if now < late:
            return late
        if not late or alone or now >= late + PATIENCE:
            return None
        return now + YIELDS
