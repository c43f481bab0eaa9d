"""How long to wait: the numbers of `KubeSchedulerConfiguration`, and what follows from them."""

import math

import msgspec

_MOST_DOUBLINGS = 62  # beyond this any backoff has long reached its maximum
_MOST_FOR_GANGS = 3.0  # times the maximum: longer, and room that appears is gone before the gang is tried again


class BackoffPolicy(msgspec.Struct, frozen=True):
    """Seconds. A job that was refused n times in a row waits `initial_backoff` * 2**(n-1), at most `max_backoff` (0:
    never), before an event can have it tried again; after `flush_after` it is tried again whatever happened.

    `pop_from_backoff`: when nothing else is to be done, a job need not wait for its backoff to end
    (SchedulerPopFromBackoffQ). So that priority decides among those, backoffs end together at the end of a `window`.
    `batch` bounds the jobs that one `pop` looks at one by one: the loop must never stall. `portion` bounds what costs
    more: the jobs that one `pop` signs again (80 us each), and the lines that are asked about events, woken or flushed,
    or whose backoff ends, in one turn of the loop (10 to 40 us each: 500 are at most 20 ms; `queue.question_cost`).
    """

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    flush_after: float = 300.0
    pop_from_backoff: bool = True
    window: float = 1.0
    batch: int = 5_000
    portion: int = 500

    def duration(self, count: int, pods: int = 1) -> float:
        """How long a job of so many pods waits after so many refusals. A gang costs more to try, so its longest wait
        is longer, by the square root of its size, up to three times."""
        if not count or not self.max_backoff:
            return 0.0
        doubled = math.ldexp(self.initial_backoff, min(count - 1, _MOST_DOUBLINGS))
        return min(doubled, self.max_backoff * min(math.sqrt(pods), _MOST_FOR_GANGS))

    def ends_at(self, now: float, count: int, pods: int = 1) -> float:
        """When a backoff that begins now is over."""
        pause = self.duration(count, pods)
        if not pause:
            return now
        end = now + pause
        return math.ceil(end / self.window) * self.window if self.pop_from_backoff else end
