"""Waiting makes urgent: what keeps a job from being overtaken for ever by those with more priority."""

import math
from typing import Final

import msgspec

HIGHEST: Final = 1_000_000_000  # what a PriorityClass of users may have at most
CRITICAL: Final = 2_000_000_000  # `system-cluster-critical`; nobody comes before that by waiting
_HAIR: Final = 1e-6  # of a threshold: what arithmetic may lose


class Aging(msgspec.Struct, frozen=True, gc=False):
    """Each `threshold` (seconds) that a job has waited counts as `boost` more priority, up to `ceiling`. Only for the
    order in which jobs are tried: nobody is preempted for it.

    Asked by the queue, which calls `effective_priority` at most once a threshold for each kind of job that is waiting
    its turn. What else shall count within a priority, such as a tenant's standing, is to be added to the priority
    before it comes here.
    """

    threshold: float = 60.0
    boost: int = 100
    ceiling: int = HIGHEST

    def effective_priority(self, priority: int, since: float, now: float) -> int:
        """The priority that a job counts with now; never less than its own."""
        return max(priority, min(priority + self.boost * self._steps(since, now), self.ceiling))

    def next_increase(self, priority: int, since: float, now: float) -> float | None:
        """When it counts with more; None: never."""
        if not self.boost or self.effective_priority(priority, since, now) >= self.ceiling:
            return None
        return since + (self._steps(since, now) + 1) * self.threshold

    def _steps(self, since: float, now: float) -> int:
        return max(0, math.floor((now - since) / self.threshold + _HAIR))
