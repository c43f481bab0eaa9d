"""Time is handed in: the same events at the same times always give the same decisions, and a simulation of a week
need not take one.

One axis for everything, seconds since 1970 as a float: ages come from the API server's timestamps, and a backoff that
began at such a moment ends at another.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Protocol

Sleep = Callable[[float], Awaitable[object]]  # `asyncio.sleep`, or what a test or a simulation has instead


class Clock(Protocol):
    """What the time is. Never goes backwards."""

    def now(self) -> float:
        """Seconds since 1970."""


class WallClock:
    """The time on the wall when the process started, carried on by the monotonic clock: if somebody sets the machine's
    clock back by an hour, no backoff lasts an hour longer."""

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()

    def now(self) -> float:
        return self._start + time.monotonic()


class VirtualClock:
    """Stands still until somebody moves it: for tests, and for the simulator's thousands of hours."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> float:
        """So much later. Returns the new time."""
        return self.advance_to(self._now + seconds)

    def advance_to(self, when: float) -> float:
        """To that moment, if it is still to come. Returns the new time."""
        self._now = max(self._now, when)
        return self._now
