"""Time is handed in: the same events at the same times always give the same decisions, and a simulation of a week
need not take one.

One axis for everything, seconds since 1970 as a float: ages come from the API server's timestamps, and a backoff that
began at such a moment ends at another.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

Sleep = Callable[[float], Awaitable[object]]  # `asyncio.sleep`, or what a test or a simulation has instead

TOLERATED: Final = 1.0  # seconds that `WallClock` may differ from the machine's clock before it follows
FASTER: Final = 1.0  # while it lags behind, two seconds pass in one
SLOWER: Final = -0.5  # while it is ahead, half a second passes in one


class Clock(Protocol):
    """What the time is. Never goes backwards."""

    def now(self) -> float:
        """Seconds since 1970."""


def counter(clocks: Any = time) -> Callable[[], float]:
    """A clock that counts on while the machine is suspended, where the system has one (CLOCK_BOOTTIME on Linux).
    CLOCK_MONOTONIC stands still then: a leader that is resumed after an hour would take its lease for young."""
    which = getattr(clocks, "CLOCK_BOOTTIME", None)
    found: Callable[[], float] = clocks.monotonic if which is None else partial(clocks.clock_gettime, which)
    return found


SINCE_BOOT: Final = counter()
cpu_seconds: Final = time.thread_time  # of the calling thread; stands still while the process is stopped or throttled


class WallClock:
    """The time on the wall when the process started, carried on by the clock that counts from boot: if the machine's
    clock is set back by an hour, no backoff lasts an hour longer.

    A clock that was wrong at the start need not stay wrong: each `follow` compares, and the difference is worked off
    by seconds that are shorter or longer. Time never jumps and never goes backwards; while it is behind it runs twice
    as fast, while it is ahead half as fast. What must count true seconds, as the fence of a leader does, has a clock
    of its own that nothing calls `follow` on. Any thread may call `now`; one calls `follow`.
    """

    def __init__(self, boot: Callable[[], float] = SINCE_BOOT, wall: Callable[[], float] = time.time) -> None:
        self._boot, self._wall = boot, wall
        # What is added to `boot`; and while a difference is worked off, what a second has more, from when on and for
        # how many seconds. A tuple, replaced as a whole: another thread has the old one or the new one.
        self._course = (wall() - boot(), 0.0, 0.0, 0.0)

    def now(self) -> float:
        offset, more, began, lasts = self._course
        here = self._boot()
        return here + offset + more * min(here - began, lasts) if more else here + offset

    def follow(self) -> None:
        """Compare with the machine's clock, and set the course for it. Called every second or so."""
        offset, more, began, lasts = self._course
        here = self._boot()
        offset += more * min(here - began, lasts)
        error = self._wall() - here - offset
        if abs(error) <= TOLERATED:
            self._course = (offset, 0.0, 0.0, 0.0)
        else:
            rate = FASTER if error > 0 else SLOWER
            self._course = (offset, rate, here, error / rate)


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
