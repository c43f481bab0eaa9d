"""Aging: the longer a job waits, the higher its effective priority, so that no job starves behind more urgent ones."""

import math
from typing import Final

import msgspec

HIGHEST: Final = 1_000_000_000  # the largest value of a PriorityClass that users may create
CRITICAL: Final = 2_000_000_000  # `system-cluster-critical`; no job comes before that by waiting
_HAIR: Final = 1e-6  # of a threshold: tolerates the rounding of floats


class Aging(msgspec.Struct, frozen=True, gc=False):
    """Adds `boost` to a job's priority for each `threshold` (seconds) that it has waited, up to `ceiling`.

    The effective priority only orders the queue: it preempts no pod. The queue calls `effective_priority` at most once
    a threshold for each job class that is active. The boost of a tenant is compared after the effective priority, so it
    counts among jobs that have waited for equally many thresholds.
    """

    threshold: float = 60.0
    boost: int = 100
    ceiling: int = HIGHEST

    def effective_priority(self, priority: int, since: float, now: float) -> int:
        """Returns the priority that orders the job now; never less than its own."""
        return max(priority, min(priority + self.boost * self._steps(since, now), self.ceiling))

    def next_increase(self, priority: int, since: float, now: float) -> float | None:
        """Returns the time of the next increase, or None if there is none."""
        if not self.boost or self.effective_priority(priority, since, now) >= self.ceiling:
            return None
        return since + (self._steps(since, now) + 1) * self.threshold

    def _steps(self, since: float, now: float) -> int:
        return max(0, math.floor((now - since) / self.threshold + _HAIR))
