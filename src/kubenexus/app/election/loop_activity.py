"""What the main loop is doing now, for the thread that renews the lease.

The main loop writes it and the lease thread reads it, without a lock. Each attribute of `LoopActivity`, and `entries`
of its slow jobs, is one reference that is replaced as a whole: the reader gets the old value or the new one.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NoReturn

from kubenexus.app.election.slow_jobs import SlowJobs
from kubenexus.base.clock import Sleep

HEARTBEAT_SECONDS: Final = 1.0  # seconds between two heartbeats
MAX_STALL_SECONDS: Final = 30.0  # seconds without a heartbeat until the loop counts as stalled


class LoopActivity:
    """`beats` counts heartbeats of the main loop. `deciding` is the key of the job being decided and when that began.
    `slow_jobs` are the jobs whose decisions took too long."""

    __slots__ = ("beats", "deciding", "slow_jobs")

    def __init__(self) -> None:
        self.beats = 0
        self.deciding: tuple[str, float] | None = None
        self.slow_jobs = SlowJobs()

    def note(self, now: float) -> str | None:
        """Returns the annotation about slow jobs for the lease. Called in the lease thread."""
        return self.slow_jobs.annotation(self.deciding, now)

    async def beat(self, each: Callable[[], None], sleep: Sleep = asyncio.sleep) -> NoReturn:
        """Counts a heartbeat and calls `each`, every second, until cancelled. Runs in the main loop."""
        while True:
            self.beats += 1
            each()
            await sleep(HEARTBEAT_SECONDS)


class StallDetector:
    """Measures in the lease thread for how long the main loop has shown no heartbeat.

    Only time in which the lease thread itself ran is counted. Otherwise a process that was paused, or a machine that
    was suspended, would look stalled.
    """

    def __init__(self, activity: LoopActivity, now: float) -> None:
        self._activity = activity
        self._beats, self._looked, self._seconds = activity.beats, now, 0.0

    def seconds_stalled(self, now: float) -> float:
        """Returns the seconds without a heartbeat. Called every `HEARTBEAT_SECONDS`; a longer time between two calls
        counts as twice that."""
        passed, self._looked = min(now - self._looked, 2 * HEARTBEAT_SECONDS), now
        beats = self._activity.beats
        self._seconds = self._seconds + passed if beats == self._beats else 0.0
        self._beats = beats
        return self._seconds
