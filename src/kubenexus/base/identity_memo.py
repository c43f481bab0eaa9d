"""A bounded memory of what was worked out from objects, found by the object itself and not by its content."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class IdentityMemo(Generic[T]):
    """Values by object and `variant`; the values used the longest ago are dropped once their weights exceed `most`.

    A lookup takes 0.3 us, however large the object is: hashing or encoding a pod's affinity takes up to a millisecond.
    Each entry holds its object, so the identity cannot be used again for another one. Only for objects that never
    change.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[tuple[int, Hashable], tuple[object, T, int]] = OrderedDict()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, thing: object, variant: Hashable = None) -> T | None:
        """Returns the value put in for this very object, or None."""
        key = (id(thing), variant)
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, thing: object, value: T, weight: int, variant: Hashable = None) -> T:
        """Keeps the value, unless it alone weighs more than all may; returns it."""
        key = (id(thing), variant)
        known = self._entries.pop(key, None)
        self.weight += weight - (0 if known is None else known[2])
        self._entries[key] = (thing, value, weight)
        while self.weight > self._most:
            self.weight -= self._entries.popitem(last=False)[1][2]
        return value
