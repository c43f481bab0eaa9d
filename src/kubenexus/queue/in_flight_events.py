"""The events that came while scheduling attempts were under way.

A decision is about the cluster as it was when the attempt began. If the job is refused, an event since then may be the
one that helps, and none must be lost. So an event is kept while some attempt began before it. When the oldest attempt
ends, all events before the start of the next oldest are dropped.

An attempt that never ends would keep events for ever. There are limits by number and by weight: beyond them the oldest
events are dropped, and for attempts that began before them `events_since` returns None. The job is tried again then.
"""

from collections import Counter, deque
from itertools import islice

from kubenexus.framework.cluster_events import ClusterEvent

LIMIT = 1 << 14
MAX_BYTES = 64 << 20  # that the events may weigh (`queue.question_cost`)


class InFlightEvents:
    def __init__(self, limit: int = LIMIT, max_bytes: int = MAX_BYTES) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._marks: dict[int, int] = {}  # by attempt, the oldest first: how many events had come when it began
        self._events: deque[tuple[ClusterEvent, int]] = deque()
        self.weight = 0  # of all of them, in bytes
        self._dropped = 0
        self._turns = 0

    def __len__(self) -> int:
        """How many attempts are under way."""
        return len(self._marks)

    @property
    def remembered(self) -> int:
        """How many events are kept now: the metric `inflight_events`."""
        return len(self._events)

    def by_label(self) -> Counter[str]:
        """The same by event label."""
        return Counter(event.label for event, _ in self._events)

    def start(self) -> int:
        """Begins an attempt and returns its number, which is never used again."""
        self._turns += 1
        self._marks[self._turns] = self._dropped + len(self._events)
        return self._turns

    def record(self, event: ClusterEvent, size: int = 0) -> None:
        """Keeps the event while an attempt is under way. Beyond a limit the older half is dropped."""
        if not self._marks:
            return
        self._events.append((event, size))
        self.weight += size
        if len(self._events) > self._limit:
            self._drop(self._dropped + self._limit // 2)
        if self.weight > self._max_bytes:
            while self.weight > self._max_bytes // 2:
                self._drop(self._dropped + 1)

    def events_since(self, turn: int) -> list[ClusterEvent] | None:
        """Returns the events since the attempt began, or None if some were dropped."""
        mark = self._marks[turn]
        return (
            None if mark < self._dropped else [event for event, _ in islice(self._events, mark - self._dropped, None)]
        )

    def finish(self, turn: int) -> None:
        del self._marks[turn]
        everything = self._dropped + len(self._events)
        self._drop(next(iter(self._marks.values()), everything))

    def _drop(self, before: int) -> None:
        while self._dropped < before:
            self.weight -= self._events.popleft()[1]
            self._dropped += 1
