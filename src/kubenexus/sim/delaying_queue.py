"""What is to be done and when. A plain value: whoever has a clock, real or virtual, asks what is due."""

from collections.abc import Hashable

import msgspec

from kubenexus.base.heap import Heap, Slot


class WorkItem(msgspec.Struct, frozen=True):
    """One thing to do: `what` is done to `whom` at `when`."""

    what: str
    whom: str
    when: float

    @property
    def key(self) -> Hashable:
        return self.what, self.whom


class DelayingQueue:
    """Each chore is there once: planned again it moves, and while it is being done it is not handed out again."""

    def __init__(self) -> None:
        self._heap: Heap[WorkItem] = Heap()
        self._slots: dict[Hashable, Slot] = {}
        self._doing: set[Hashable] = set()
        self._again: dict[Hashable, WorkItem] = {}

    def __len__(self) -> int:
        return len(self._heap)

    def plan(self, what: str, whom: str, when: float) -> None:
        """At that time, and at no other. While it is being done: once more after it."""
        chore = WorkItem(what, whom, when)
        if chore.key in self._doing:
            self._again[chore.key] = chore
            return
        self._forget(chore.key)
        self._slots[chore.key] = self._heap.push(when, chore)

    def plan_by(self, what: str, whom: str, when: float) -> None:
        """By that time: what is planned for earlier stays, and what is being done is not done again."""
        key = (what, whom)
        slot = self._slots.get(key)
        if key not in self._doing and (slot is None or when < slot[0]):
            self.plan(what, whom, when)

    def drop(self, what: str, whom: str) -> None:
        """Not at all any more. What is being done cannot be called back."""
        self._forget((what, whom))
        self._again.pop((what, whom), None)

    def next_due(self) -> float | None:
        """When there will be something to do; None if nothing is planned."""
        first = self._heap.first()
        return None if first is None else first.when

    def due(self, now: float, most: int) -> list[WorkItem]:
        """What is to be done by now, the oldest first. Each has to be given back by `finish`."""
        taken: list[WorkItem] = []
        while len(taken) < most and (first := self._heap.first()) is not None and first.when <= now:
            self._forget(first.key)
            self._doing.add(first.key)
            taken.append(first)
        return taken

    def finish(self, chore: WorkItem) -> None:
        """It has been done, or given up."""
        self._doing.discard(chore.key)
        again = self._again.pop(chore.key, None)
        if again is not None:
            self.plan(again.what, again.whom, again.when)

    def _forget(self, key: Hashable) -> None:
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._heap.remove(slot)
