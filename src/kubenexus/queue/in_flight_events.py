"""Jobs in flight, and what happened since they took off.

A decision speaks of the cluster as it was when it was made. If the job then turns out to be refused, everything that
happened in between may have been what it was waiting for, and no event must be lost. So events are kept as long as
some job in flight took off before them, and not a moment longer: when the oldest lands, all before the next oldest's
take-off is dropped.

A job that never lands (somebody forgot it) would keep them for ever. There is a limit; beyond it the oldest events go,
and a job that took off before them is told that anything may have happened.
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
        self._marks: dict[int, int] = {}  # by turn, the oldest first: how many events had come at its take-off
        self._events: deque[tuple[ClusterEvent, int]] = deque()
        self.weight = 0  # of all of them, in bytes
        self._dropped = 0
        self._turns = 0

    def __len__(self) -> int:
        """How many are in flight."""
        return len(self._marks)

    @property
    def remembered(self) -> int:
        """How many events are kept now: `inflight_events`."""
        return len(self._events)

    def by_label(self) -> Counter[str]:
        """The same by what they are called."""
        return Counter(event.label for event, _ in self._events)

    def start(self) -> int:
        """Returns the number of this turn; there is no other like it."""
        self._turns += 1
        self._marks[self._turns] = self._dropped + len(self._events)
        return self._turns

    def record(self, event: ClusterEvent, size: int = 0) -> None:
        """Keeps the event while a job is in flight. Beyond a limit the older half goes, by number or by weight."""
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
        """What came since that take-off; None if it was too much to remember."""
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
