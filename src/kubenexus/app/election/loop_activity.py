"""What the main loop is doing, for the thread that renews the lease.

The main loop writes it and the lease thread reads it. Each attribute of `LoopActivity`, and the `entries` of its slow
jobs, is one reference that is replaced as a whole: the reader has the old value or the new one, never half of one, so
no lock is needed.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NoReturn

from kubenexus.app.election.slow_jobs import SlowJobs
from kubenexus.base.clock import Sleep

HEARTBEAT_SECONDS: Final = 1.0  # seconds between two signs of life
MAX_STALL_SECONDS: Final = 30.0  # seconds without one before the loop counts as standing still


class LoopActivity:
    """`beats` counts signs of life; `deciding` is the job that is being decided, and since when; `slow_jobs` are those
    that took too long."""

    __slots__ = ("beats", "deciding", "slow_jobs")

    def __init__(self) -> None:
        self.beats = 0
        self.deciding: tuple[str, float] | None = None
        self.slow_jobs = SlowJobs()

    def note(self, now: float) -> str | None:
        """What the lease is to say about slow jobs. For the lease thread."""
        return self.slow_jobs.annotation(self.deciding, now)

    async def beat(self, each: Callable[[], None], sleep: Sleep = asyncio.sleep) -> NoReturn:
        """Shows life every second, in the main loop, until cancelled; calls `each` as often."""
        while True:
            self.beats += 1
            each()
            await sleep(HEARTBEAT_SECONDS)


class StallDetector:
    """How long the loop has stood still, as far as the looking thread can tell.

    Only time in which that thread itself ran counts: a process that was stopped, or a machine that was suspended, has
    nothing to hold against its main loop.
    """

    def __init__(self, activity: LoopActivity, now: float) -> None:
        self._activity = activity
        self._beats, self._looked, self._seconds = activity.beats, now, 0.0

    def seconds_stalled(self, now: float) -> float:
        """Seconds without a sign of life. Called every `HEARTBEAT_SECONDS` seconds; a longer time between two looks
        counts as twice that."""
        passed, self._looked = min(now - self._looked, 2 * HEARTBEAT_SECONDS), now
        beats = self._activity.beats
        self._seconds = self._seconds + passed if beats == self._beats else 0.0
        self._beats = beats
        return self._seconds
