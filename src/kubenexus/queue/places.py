"""Where lines are: to be tried, backing off, or parked until something happens. Only bookkeeping, no rules.

active    by the order of their first jobs: the next one to be tried is its least
fresh     those of the active ones whose first job has never been tried, by the same order
retries   the other active ones, by the profile's order of when they were refused: kube-scheduler's
backoff   by the time their backoff ends, then by that order
failing   the same, for those nobody is to blame for: not to be tried before the time, however idle we are
parked    in the order they were parked, so that the first is the first to be flushed
aside     the active ones that wait until their namespace is admitted again: by namespace, then as the active ones
ripening  the active ones whose jobs gain urgency by waiting, by the time when they do
watching  those that an event may wake
"""

from collections.abc import Iterable, Iterator
from typing import Any

from kubenexus.base.clock import Clock
from kubenexus.base.heap import Heap
from kubenexus.queue.allowance import Allowance
from kubenexus.queue.entry import Place
from kubenexus.queue.line import Line
from kubenexus.queue.watching import Watching


class Places:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.active: Heap[Line] = Heap()
        self.fresh: Heap[Line] = Heap()
        self.retries: Heap[Line] = Heap()
        self.backoff: Heap[Line] = Heap()
        self.failing: Heap[Line] = Heap()
        self.ripening: Heap[Line] = Heap()
        self.parked: dict[Line, None] = {}
        self.aside: dict[str, Heap[Line]] = {}
        self.watching = Watching()

    def settle(self, line: Line) -> None:
        """Put the line where it says it is, by the order it now has. Called after anything about it changed; an empty
        line is nowhere."""
        if line.aside and (line.place is not Place.ACTIVE or not line.members):
            self._readmit(line)
        self._heaped(line)
        if line.place is not Place.UNSCHEDULABLE or not line.members:
            self.parked.pop(line, None)
        elif line not in self.parked:
            self.parked[line] = None
        self._watch(line)

    def lift(self, line: Line) -> None:
        """Take the line out of everything, because its place, or who is blamed, is about to change."""
        self._readmit(line)
        if line.slot is not None:
            self._heap(line).remove(line.slot)
            line.slot = None
        self._enlist(line, None)
        self.parked.pop(line, None)
        self.watching.drop(line)

    def set_aside(self, line: Line, namespace: str) -> None:
        """An active line is not to be tried until it is released."""
        line.aside = namespace
        self._heaped(line)

    def release(self, namespace: str, lines: int) -> None:
        """So many lines of this namespace may be tried, in their order."""
        for _ in range(lines):
            heap = self.aside.get(namespace)
            line = None if heap is None else heap.first()
            if line is None:
                return
            self._readmit(line)
            self._heaped(line)

    def _readmit(self, line: Line) -> None:
        if line.aside:
            self._stand_aside(line, None)
            line.aside = ""

    def _stand_aside(self, line: Line, order: tuple[Any, ...] | None) -> None:
        """At this place among those of its namespace; None: no longer there."""
        heap = self.aside.setdefault(line.aside, Heap())
        if line.aside_slot is not None and line.aside_slot[0] != order:
            heap.remove(line.aside_slot)
            line.aside_slot = None
        if order is not None and line.aside_slot is None:
            line.aside_slot = heap.push(order, line)
        if not heap:
            del self.aside[line.aside]

    def blame(self, line: Line, plugins: Iterable[str]) -> None:
        """These refused the line; where it is does not change."""
        self.watching.drop(line)
        line.blamed = tuple(sorted(plugins))
        self._watch(line)

    @property
    def first_parked(self) -> Line | None:
        """The one that was parked longest ago."""
        return next(iter(self.parked), None)

    def __iter__(self) -> Iterator[Line]:
        """Every line that has waiting jobs."""
        yield from self.active
        for lines in self.aside.values():
            yield from lines
        yield from self.backoff
        yield from self.failing
        yield from self.parked

    def ripen(self, allowance: Allowance) -> None:
        """Put lines where they belong whose jobs have waited longer now."""
        now = self._clock.now()
        while allowance:
            line = self.ripening.first()
            if line is None or line.ripens is None or line.ripens[0] > now:
                return
            allowance.spend()
            self.ripening.remove(line.ripens)
            line.ripens = None
            self._heaped(line)

    def _heaped(self, line: Line) -> None:
        now = self._clock.now()
        order: tuple[Any, ...] | None = None
        if line.aside:
            self._stand_aside(line, line.order(now))
        elif line.members and line.place is not Place.UNSCHEDULABLE:
            order = line.order(now) if line.place is Place.ACTIVE else (line.until, line.order(now))
            self._watch_age(line, now)
        self._enlist(line, order if line.place is Place.ACTIVE else None)
        if line.slot is not None:
            if line.slot[0] == order:
                return
            self._heap(line).remove(line.slot)
        line.slot = None if order is None else self._heap(line).push(order, line)

    def _enlist(self, line: Line, order: tuple[Any, ...] | None) -> None:
        """Among those that have been tried, or those that have not. None: it is not active."""
        heap = self.retries if line.tried else self.fresh
        if order is not None and heap is self.retries:
            order = line.rules.order(line.priority, line.parked_at)
        if line.lane is not None:
            if line.lane[0] == order and line.lane[3] is heap:
                return
            line.lane[3].remove(line.lane)
        line.lane = None
        if order is not None:
            line.lane = heap.push(order, line)
            line.lane.append(heap)

    def _watch_age(self, line: Line, now: float) -> None:
        """One that is looked at too early is only looked at again, so a slot is kept while it is early enough."""
        grows = line.grows_at(now) if line.place is Place.ACTIVE else None
        if grows is None or (line.ripens is not None and line.ripens[0] <= grows):
            return
        if line.ripens is not None:
            self.ripening.remove(line.ripens)
        line.ripens = self.ripening.push(grows, line)

    def _heap(self, line: Line) -> Heap[Line]:
        if line.place is Place.ACTIVE:
            return self.active
        return self.failing if line.failed else self.backoff

    def _watch(self, line: Line) -> None:
        if line.watched:
            self.watching.put(line)
        else:
            self.watching.drop(line)
