"""A heap from which any item can be removed, not only the least.

`heapq` is written in C and many times faster than a heap with positions in Python, but cannot find items inside. So a
removed item is only marked, and stays until it is the least or until the heap has more marked items than others. Then
the heap is rebuilt. Every operation is O(log n) on average, and memory stays within twice the number of items.
"""

import heapq
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# What `push` returns and `remove` takes: [order, number, the item or None]. A list, since heapq compares those in C.
Slot = list[Any]

_SLACK = 16  # marked slots that are never worth a rebuild


class Heap(Generic[T]):
    """Items by their order; equal ones in order of arrival."""

    __slots__ = ("_count", "_live", "_slots")

    def __init__(self) -> None:
        self._slots: list[Slot] = []
        self._live = 0
        self._count = 0

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[T]:
        """Iterates over all items, in no particular order."""
        return (slot[2] for slot in self._slots if slot[2] is not None)

    def push(self, order: Any, item: T) -> Slot:
        """Adds an item. Returns its slot, which `remove` needs."""
        slot: Slot = [order, self._count, item]
        self._count += 1
        self._live += 1
        heapq.heappush(self._slots, slot)
        return slot

    def first(self) -> T | None:
        """Returns the least item without removing it, or None if the heap is empty."""
        slots = self._slots
        while slots and slots[0][2] is None:
            heapq.heappop(slots)
        return slots[0][2] if slots else None

    def first_slot(self) -> Slot | None:
        """Returns the slot of the least item, or None if the heap is empty."""
        return self._slots[0] if self.first() is not None else None

    def remove(self, slot: Slot) -> None:
        """Removes an item. Does nothing if it is removed already."""
        if slot[2] is None:
            return
        slot[2] = None
        self._live -= 1
        if not self._live:
            self._slots.clear()
        elif len(self._slots) > 2 * self._live + _SLACK:
            self._slots = [each for each in self._slots if each[2] is not None]
            heapq.heapify(self._slots)
