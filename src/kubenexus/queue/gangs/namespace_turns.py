"""`NamespaceTurns`: items that wait, of which each namespace gives one in its turn."""

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class NamespaceTurns(Generic[T]):
    """Items by namespace, each with a count. A namespace with 10,000 items delays one with a single item by one item.

    All operations take constant time: ordered dictionaries, since a plain one skips all deleted entries before its
    first.
    """

    def __init__(self) -> None:
        self._namespaces: OrderedDict[str, OrderedDict[T, int]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._namespaces)

    def contains(self, namespace: str, item: T) -> bool:
        return item in self._namespaces.get(namespace, ())

    def add(self, namespace: str, item: T) -> int:
        """Adds an item behind the others of its namespace, or counts it once more. Returns its count."""
        items = self._namespaces.get(namespace)
        if items is None:
            items = self._namespaces[namespace] = OrderedDict()
        items[item] = count = items.get(item, 0) + 1
        return count

    def discard(self, namespace: str, item: T) -> None:
        items = self._namespaces.get(namespace)
        if items is not None and items.pop(item, None) is not None and not items:
            del self._namespaces[namespace]

    def first(self) -> T | None:
        """Returns the first item of the namespace whose turn it is; None if there is none."""
        for items in self._namespaces.values():
            return next(iter(items))
        return None

    def end_turn(self) -> None:
        """Gives the next namespace its turn."""
        self._namespaces.move_to_end(next(iter(self._namespaces)))
