"""A queue of work items with due times. It has no clock: the caller passes the time, real or virtual."""

from collections.abc import Hashable

import msgspec

from kubenexus.base.heap import Heap, Slot


class WorkItem(msgspec.Struct, frozen=True):
    """One item of work: do `what` to `whom` at `when`."""

    what: str
    whom: str
    when: float

    @property
    def key(self) -> Hashable:
        return self.what, self.whom


class DelayingQueue:
    """Holds each (what, whom) once: adding it again moves it. An item that is being processed is not returned again."""

    def __init__(self) -> None:
        self._heap: Heap[WorkItem] = Heap()
        self._slots: dict[Hashable, Slot] = {}
        self._doing: set[Hashable] = set()
        self._again: dict[Hashable, WorkItem] = {}

    def __len__(self) -> int:
        return len(self._heap)

    def plan(self, what: str, whom: str, when: float) -> None:
        """Schedules the item for that time and no other. If it is being processed, it runs once more afterwards."""
        item = WorkItem(what, whom, when)
        if item.key in self._doing:
            self._again[item.key] = item
            return
        self._forget(item.key)
        self._slots[item.key] = self._heap.push(when, item)

    def plan_by(self, what: str, whom: str, when: float) -> None:
        """Schedules the item by that time: an earlier time stays, and an item being processed is not repeated."""
        key = (what, whom)
        slot = self._slots.get(key)
        if key not in self._doing and (slot is None or when < slot[0]):
            self.plan(what, whom, when)

    def drop(self, what: str, whom: str) -> None:
        """Removes the item. Processing that has begun continues."""
        self._forget((what, whom))
        self._again.pop((what, whom), None)

    def next_due(self) -> float | None:
        """Returns the time of the first item, or None."""
        first = self._heap.first()
        return None if first is None else first.when

    def due(self, now: float, most: int) -> list[WorkItem]:
        """Returns up to `most` items due by now, the oldest first. The caller must pass each to `finish`."""
        taken: list[WorkItem] = []
        while len(taken) < most and (first := self._heap.first()) is not None and first.when <= now:
            self._forget(first.key)
            self._doing.add(first.key)
            taken.append(first)
        return taken

    def finish(self, item: WorkItem) -> None:
        """Marks the item as processed, or given up."""
        self._doing.discard(item.key)
        again = self._again.pop(item.key, None)
        if again is not None:
            self.plan(again.what, again.whom, again.when)

    def _forget(self, key: Hashable) -> None:
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._heap.remove(slot)
