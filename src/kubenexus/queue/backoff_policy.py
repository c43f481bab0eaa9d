"""Backoffs and other times of the queue, from the values in `KubeSchedulerConfiguration`."""

import math

import msgspec

MAX_COUNT = 63  # refusals after which any backoff has long reached its maximum
_MAX_FOR_GANGS = 3.0  # times the maximum: after a longer wait, capacity that appears is gone before the gang is tried


class BackoffPolicy(msgspec.Struct, frozen=True):
    """Times in seconds, and limits of work.

    A job that was refused n times in a row waits `initial_backoff` * 2**(n-1), at most `max_backoff` (0: not at all),
    before an event can make it be tried again. After `flush_after` it is tried again without an event.

    `pop_from_backoff`: an idle queue returns jobs whose backoff has not ended (SchedulerPopFromBackoffQ). Backoffs end
    together at the end of a `window`, so that priority decides among those jobs.

    `batch` bounds the jobs that one `pop` looks at, so that the loop never stalls. `portion` bounds the jobs that one
    `pop` signs again (80 us each). It also is the work allowance of one turn of the loop: questions about events, and
    job classes that are woken, flushed or end their backoff (10 to 40 us each: 500 are at most 20 ms;
    `queue.question_cost`).
    """

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    flush_after: float = 300.0
    pop_from_backoff: bool = True
    window: float = 1.0
    batch: int = 5_000
    portion: int = 500

    def duration(self, count: int, pods: int = 1) -> float:
        """Returns the backoff of a job of so many pods after so many refusals. The maximum for a gang is longer, by the
        square root of its size up to three times, since an attempt costs more."""
        if not count or not self.max_backoff:
            return 0.0
        doubled = math.ldexp(self.initial_backoff, min(count, MAX_COUNT) - 1)
        return min(doubled, self.max_backoff * min(math.sqrt(pods), _MAX_FOR_GANGS))

    def ends_at(self, now: float, count: int, pods: int = 1) -> float:
        """Returns when a backoff that begins now ends."""
        pause = self.duration(count, pods)
        if not pause:
            return now
        end = now + pause
        return math.ceil(end / self.window) * self.window if self.pop_from_backoff else end
