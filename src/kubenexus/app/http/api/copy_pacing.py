"""`CopyPacing`: how soon the process may copy itself again, so that copies cost the loop little of its time.

A fork copies the page tables: 3 ms at 200 MB. Much more is what follows: the kernel copies each page that the loop
writes for the first time after the fork, 6 µs each. A busy scheduler with 5,000 nodes writes 9,000 pages in a quarter
of a second of its CPU: with four copies a second it made 0.80 times the decisions. An idle one writes next to none.
"""

import resource
from collections.abc import Callable
from typing import Final

from kubenexus.base.clock import Clock

SHARE: Final = 0.04  # of the loop's time, for copies
PAGE_SECONDS: Final = 6e-6  # for a page that is copied
MIN_INTERVAL: Final = 0.25  # seconds between two copies
MAX_INTERVAL: Final = 3.0  # also if they cost more


def page_faults() -> int:
    """Returns how many pages the kernel had to copy or provide for this thread."""
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_minflt


class CopyPacing:
    """`began` is called after each fork, with the seconds that it took."""

    def __init__(self, clock: Clock, faults: Callable[[], int] = page_faults) -> None:
        self._clock, self._faults = clock, faults
        self._last: float | None = None
        self._seconds, self._before = 0.0, 0

    def began(self, seconds: float) -> None:
        self._last, self._seconds, self._before = self._clock.now(), seconds, self._faults()

    def pause(self) -> float:
        """Returns the seconds until the next copy. It grows with what the loop writes meanwhile, up to a limit."""
        if self._last is None:
            return 0.0
        cost = self._seconds + (self._faults() - self._before) * PAGE_SECONDS
        interval = min(max(MIN_INTERVAL, cost / SHARE), MAX_INTERVAL)
        return max(0.0, self._last + interval - self._clock.now())
