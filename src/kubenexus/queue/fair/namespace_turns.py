"""When each namespace last had a turn: those of one queue go round-robin."""

from collections import OrderedDict
from typing import Final

MAX_NAMESPACES: Final = 10_000  # whose turns are remembered; one that is forgotten goes first once


class NamespaceTurns:
    """Numbers of turns; smaller ones were longer ago. 0: never, or too long ago to be known."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, int] = OrderedDict()
        self._count = 0

    def of(self, namespace: str) -> int:
        return self._turns.get(namespace, 0)

    def take(self, namespace: str) -> None:
        """Notes that a job of the namespace is tried now."""
        self._count += 1
        self._turns[namespace] = self._count
        self._turns.move_to_end(namespace)
        if len(self._turns) > MAX_NAMESPACES:
            self._turns.popitem(last=False)
