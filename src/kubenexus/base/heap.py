"""A heap from which anything can be taken, not only the least.

`heapq` is written in C and many times faster than a heap of our own with positions could be, but cannot find things
inside. So what is removed is only crossed out, and stays until it comes up or until more is crossed out than not; then
the heap is built again. Every operation is O(log n) on average, and memory stays within twice of what is in it.
"""

import heapq
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# What `push` returns and `remove` takes: [order, number, the item or None]. A list, since heapq compares those in C.
Slot = list[Any]

_SLACK = 16  # crossed-out slots that are never worth a rebuild


class Heap(Generic[T]):
    """Items by their order, equal ones in the order they came."""

    __slots__ = ("_count", "_live", "_slots")

    def __init__(self) -> None:
        self._slots: list[Slot] = []
        self._live = 0
        self._count = 0

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[T]:
        """All items, in no particular order."""
        return (slot[2] for slot in self._slots if slot[2] is not None)

    def push(self, order: Any, item: T) -> Slot:
        """Put an item in; the slot is needed to remove it later."""
        slot: Slot = [order, self._count, item]
        self._count += 1
        self._live += 1
        heapq.heappush(self._slots, slot)
        return slot

    def first(self) -> T | None:
        """The least item, which stays; None if there is none."""
        slots = self._slots
        while slots and slots[0][2] is None:
            heapq.heappop(slots)
        return slots[0][2] if slots else None

    def remove(self, slot: Slot) -> None:
        """Take an item out, wherever it is. Removing it twice is a mistake that is forgiven."""
        if slot[2] is None:
            return
        slot[2] = None
        self._live -= 1
        if len(self._slots) > 2 * self._live + _SLACK:
            self._slots = [each for each in self._slots if each[2] is not None]
            heapq.heapify(self._slots)
