"""A heap from which anything can be taken: it agrees with a sorted list, and does not grow with what was removed."""

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.base.heap import Heap, Slot


def drained(heap: Heap[str], slots: dict[str, Slot]) -> list[str]:
    found = []
    while (item := heap.first()) is not None:
        found.append(item)
        heap.remove(slots.pop(item))
    return found


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=80))
def test_items_come_in_order_and_equal_ones_as_they_came(pushed: list[tuple[int, bool]]) -> None:
    heap: Heap[str] = Heap()
    slots = {f"item {i}": heap.push(order, f"item {i}") for i, (order, _) in enumerate(pushed)}
    for i, (_, stays) in enumerate(pushed):
        if not stays:
            heap.remove(slots.pop(f"item {i}"))
    kept = [(order, i) for i, (order, stays) in enumerate(pushed) if stays]
    assert len(heap) == len(kept)
    assert sorted(heap) == sorted(f"item {i}" for _, i in kept)
    assert drained(heap, slots) == [f"item {i}" for _, i in sorted(kept)]
    assert len(heap) == 0
    assert heap.first() is None


def test_removing_twice_is_forgiven() -> None:
    heap: Heap[str] = Heap()
    slot = heap.push(1, "a")
    heap.push(2, "b")
    heap.remove(slot)
    heap.remove(slot)
    assert len(heap) == 1
    assert heap.first() == "b"


def test_what_was_removed_takes_no_room_for_long() -> None:
    heap: Heap[int] = Heap()
    stay = [heap.push(i, i) for i in range(100)]
    for i in range(10_000):
        heap.remove(heap.push(1_000 + i, i))
    assert len(heap._slots) <= 2 * len(stay) + 16
    assert list(heap) == list(range(100))
