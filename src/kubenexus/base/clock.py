"""Clocks. Components get a clock as an argument, so that equal events at equal times give equal decisions and a
simulation can run faster than real time.

All times are seconds since 1970 as a float. Ages start at the API server's timestamps, and backoffs are compared with
them.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

Sleep = Callable[[float], Awaitable[object]]  # `asyncio.sleep`, or its replacement in tests and simulations

TOLERATED: Final = 1.0  # seconds that `WallClock` may differ from the machine's clock before it follows
FASTER: Final = 1.0  # while it lags behind, two seconds pass in one
SLOWER: Final = -0.5  # while it is ahead, half a second passes in one


class Clock(Protocol):
    """A source of the current time. It never goes backwards."""

    def now(self) -> float:
        """Returns seconds since 1970."""


def counter(clocks: Any = time) -> Callable[[], float]:
    """Returns a clock that also runs while the machine is suspended, if the system has one (CLOCK_BOOTTIME on Linux).
    CLOCK_MONOTONIC stops then: a leader resumed after an hour would take its lease for valid."""
    which = getattr(clocks, "CLOCK_BOOTTIME", None)
    found: Callable[[], float] = clocks.monotonic if which is None else partial(clocks.clock_gettime, which)
    return found


SINCE_BOOT: Final = counter()
cpu_seconds: Final = time.thread_time  # of the calling thread; stops while the process is stopped or throttled


class WallClock:
    """The wall time of the process start plus the time since. If the machine's clock is set back by an hour, no backoff
    lasts an hour longer.

    If the clock was wrong at the start, `follow` corrects it: it compares with the machine's clock, and makes seconds
    shorter or longer until the difference is gone. Time never jumps and never goes backwards. It runs twice as fast
    while it is behind, and half as fast while it is ahead. Users that need true seconds, such as the leader's lease,
    have a clock of their own on which `follow` is never called. Any thread may call `now`; only one may call `follow`.
    """

    def __init__(self, boot: Callable[[], float] = SINCE_BOOT, wall: Callable[[], float] = time.time) -> None:
        self._boot, self._wall = boot, wall
        # The offset from `boot`; and while a difference is corrected, the extra length of a second, the start and the
        # duration of the correction. One tuple, replaced as a whole: other threads read the old one or the new one.
        self._course = (wall() - boot(), 0.0, 0.0, 0.0)

    def now(self) -> float:
        offset, more, began, lasts = self._course
        here = self._boot()
        return here + offset + more * min(here - began, lasts) if more else here + offset

    def follow(self) -> None:
        """Compares with the machine's clock and starts or ends a correction. Called about every second."""
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
    """A clock that moves only when `advance` is called, for tests and the simulator."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> float:
        """Moves the clock forward. Returns the new time."""
        return self.advance_to(self._now + seconds)

    def advance_to(self, when: float) -> float:
        """Moves the clock to `when`, unless that is in the past. Returns the new time."""
        self._now = max(self._now, when)
        return self._now
