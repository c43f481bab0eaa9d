"""Limits log lines to one a minute for each key and counts those left out: a failure that repeats must not fill the
disk."""

from typing import Final

from kubenexus.base.clock import Clock

PERIOD: Final = 60.0
REMEMBERED: Final = 1024  # keys


class LogThrottle:
    """Remembers at most `REMEMBERED` keys. Beyond that it forgets the keys whose minute is over, or else the oldest
    key."""

    def __init__(self, clock: Clock, period: float = PERIOD) -> None:
        self._clock, self._period = clock, period
        self._lines: dict[str, tuple[float, int]] = {}  # when the next line may be written, and how many were left out

    def left_out(self, key: str) -> int | None:
        """Returns None if the line must be left out now; otherwise how many lines were left out since the last one."""
        now = self._clock.now()
        due, count = self._lines.get(key, (now, 0))
        if now < due:
            self._lines[key] = (due, count + 1)
            return None
        self._lines.pop(key, None)
        if len(self._lines) >= REMEMBERED:
            self._forget(now)
        self._lines[key] = (now + self._period, 0)
        return count

    def _forget(self, now: float) -> None:
        self._lines = {key: line for key, line in self._lines.items() if now < line[0]}
        if len(self._lines) >= REMEMBERED:
            del self._lines[next(iter(self._lines))]
