"""Job classes that wait for events, and the events that their hints have not been called for.

An event is recorded once for each plugin whose refusals it may end. The hints for the classes that the plugin refused
are called later, as many in each turn of the loop as the allowance permits (`queue.work_allowance`). One tenant can
have 10,000 classes, and to check and wake all of them takes 0.4 s.

    _lines     for each plugin of a profile, by share, the classes it refused: those checked the longest ago come first
    _events    for each plugin of a profile, the numbered events that some of its classes have not been checked for
    _unchecked the shares with such classes, by priority
    _partly    for each share, the class that has been checked for some of its events

A share is a priority in a namespace. Shares of the highest priority are checked first, so that no job takes capacity
that an event gives to a job of higher priority. Shares of one priority take turns class by class, so that a namespace
with 10,000 classes does not delay a namespace with a single one.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from heapq import merge
from typing import Final, NamedTuple

from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.queue.job_class import ClassShare, JobClass
from kubenexus.queue.object_events import WILDCARD_EVENT
from kubenexus.queue.question_cost import EventCost
from kubenexus.queue.queue_profile import ANY_PLUGIN, QueueProfile

# Events that are kept for a plugin. A class that is further behind is woken without a question: a useless attempt costs
# about as much as a hundred answers, and a job must never miss an event that helps it.
MAX_EVENTS: Final = 4096
MAX_BYTES: Final = 16 << 20  # that these events may weigh: 8,000 labels are 2 MB, and a pod can be relabelled for ever

_Key = tuple[QueueProfile, str]
_NONE: Final[OrderedDict[JobClass, None]] = OrderedDict()
_NO_COST: Final = EventCost(0, 0)


class NumberedEvent(NamedTuple):
    """An event and its number; `plugin` is the one whose refusals it may end."""

    number: int
    plugin: str
    event: ClusterEvent
    cost: EventCost


class EventWaiters:
    def __init__(self, limit: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        # Ordered, since the first of thousands is taken again and again: a plain dictionary would skip all before it.
        self._lines: dict[_Key, dict[ClassShare, OrderedDict[JobClass, None]]] = {}
        self._events: dict[_Key, list[NumberedEvent]] = {}
        self._bytes: dict[_Key, int] = {}
        self._partly: dict[ClassShare, JobClass] = {}
        self._unchecked: dict[int, dict[ClassShare, None]] = {}
        self._count = 0

    def __bool__(self) -> bool:
        """Whether any job class waits for events."""
        return bool(self._lines)

    @property
    def has_unchecked(self) -> bool:
        """Whether some class may not have been checked for some event."""
        return bool(self._unchecked)

    def waiting_for(self, profile: QueueProfile, plugin: str) -> Iterator[JobClass]:
        """Yields the job classes that this plugin refused."""
        for job_classes in self._lines.get((profile, plugin), {}).values():
            yield from job_classes

    # --- classes come and go ----------------------------------------------------------------------------------------

    def add(self, job_class: JobClass) -> None:
        """Lets the class wait for events that come from now on. A class that waits already keeps its position."""
        for plugin in job_class.unschedulable_plugins:
            shares = self._lines.setdefault((job_class.profile, plugin), {})
            job_classes = shares.setdefault(job_class.share, OrderedDict())
            if job_class not in job_classes:
                job_classes[job_class] = None
                job_class.last_event = self._count

    def remove(self, job_class: JobClass) -> None:
        for plugin in job_class.unschedulable_plugins:
            shares = self._lines.get((job_class.profile, plugin), {})
            job_classes = shares.get(job_class.share, _NONE)
            if job_class in job_classes:
                del job_classes[job_class]
                if not job_classes:
                    del shares[job_class.share]
                if not shares:
                    del self._lines[job_class.profile, plugin]
        self._end_partly(job_class)

    # --- events -----------------------------------------------------------------------------------------------------

    def record(self, profile: QueueProfile, event: ClusterEvent, cost: EventCost = _NO_COST) -> None:
        """Records an event. Takes time by plugins and namespaces, not by classes."""
        self._count += 1
        concerned = profile.plugins_for(event)
        for key, shares in self._lines.items():
            if key[0] is profile and (event.is_wildcard or key[1] in concerned or (concerned and key[1] == ANY_PLUGIN)):
                self._note(key, NumberedEvent(self._count, key[1], event, cost))
                for share in shares:
                    self._unchecked.setdefault(share.priority, {})[share] = None

    def unchecked(self, job_class: JobClass) -> int:
        """Returns how many questions are left for each sample pod of the class, at most."""
        return sum(len(events) - _position(events, job_class) for events in self._lists(job_class))

    def events_for(self, job_class: JobClass) -> Iterator[NumberedEvent]:
        """Yields the events that the class has not been checked for and that may concern it, by number."""
        lists = [events[_position(events, job_class) :] for events in self._lists(job_class)]
        for numbered in lists[0] if len(lists) == 1 else merge(*lists, key=_number):
            event = numbered.event
            if event.max_priority is not None and job_class.priority > event.max_priority:
                continue
            if not event.backoffs or job_class.avoids(event.backoffs):
                yield numbered

    def _lists(self, job_class: JobClass) -> list[list[NumberedEvent]]:
        keys = [(job_class.profile, plugin) for plugin in job_class.unschedulable_plugins]
        return [self._events[key] for key in keys if key in self._events]

    def mark_partly(self, job_class: JobClass, number: int) -> None:
        """Notes that the class was checked for all events up to this number. It goes on before the others of its share,
        which stay in the order in which they were last checked for everything."""
        job_class.last_event = number
        self._partly[job_class.share] = job_class

    def _end_partly(self, job_class: JobClass) -> None:
        if self._partly.get(job_class.share) is job_class:
            del self._partly[job_class.share]

    def mark_checked(self, job_class: JobClass) -> None:
        """Notes that the class was checked for all events. If it still waits it becomes the last of its share."""
        job_class.last_event = self._count
        self._end_partly(job_class)
        for plugin in job_class.unschedulable_plugins:
            job_classes = self._lines.get((job_class.profile, plugin), {}).get(job_class.share, _NONE)
            if job_class in job_classes:
                job_classes.move_to_end(job_class)

    def next_class(self) -> JobClass | None:
        """Returns the class to be checked next; None: all are checked, and the events are dropped."""
        while self._unchecked:
            priority = max(self._unchecked)
            shares = self._unchecked[priority]
            share = next(iter(shares))
            del shares[share]
            job_class = self._behind(share)
            if job_class is not None:
                shares[share] = None  # behind the others of this priority
                return job_class
            if not shares:
                del self._unchecked[priority]
        self._events.clear()
        self._bytes.clear()
        return None

    def _behind(self, share: ClassShare) -> JobClass | None:
        """Returns a class of this share that has not been checked for some event. Each plugin's classes are in the
        order in which they were last checked, so only the first has to be looked at."""
        if share in self._partly:
            return self._partly[share]
        for (profile, plugin), events in self._events.items():
            job_classes = self._lines.get((profile, plugin), {}).get(share)
            job_class = next(iter(job_classes)) if job_classes else None
            if job_class is not None and job_class.last_event < events[-1].number:
                return job_class
        return None

    def _note(self, key: _Key, numbered: NumberedEvent) -> None:
        events = self._events.setdefault(key, [])
        events.append(numbered)
        size = self._bytes[key] = self._bytes.get(key, 0) + numbered.cost.size
        if len(events) > self._limit or size > self._max_bytes:
            self._forget_older(key, events)

    def _forget_older(self, key: _Key, events: list[NumberedEvent]) -> None:
        """Replaces the older half, by number or by weight, by one wildcard event."""
        gone = freed = 0
        while gone < len(events) - self._limit // 2 or (
            self._bytes[key] - freed > self._max_bytes // 2 and gone < len(events)
        ):
            freed += events[gone].cost.size
            gone += 1
        events[:gone] = [NumberedEvent(events[gone - 1].number, key[1], WILDCARD_EVENT, _NO_COST)]
        self._bytes[key] -= freed


def _number(numbered: NumberedEvent) -> int:
    return numbered.number


def _position(events: list[NumberedEvent], job_class: JobClass) -> int:
    """Returns the position of the first event that the class has not been checked for."""
    return bisect_right(events, job_class.last_event, key=_number)
