"""What queues used in the past, as an average that forgets half in each half-life: an option for the order of queues.

    past(t) = past(s) * 2^-(t-s)/h + borrowed * (1 - 2^-(t-s)/h)     while the queue borrows the same amount

A queue that borrows the same amount for long has that amount as its past; one that borrows nothing any more has half
of it after a half-life. All queues forget at the same rate, so numbers are compared as of one time: they are computed
exactly when a queue's usage changes, and put into the tree for all queues at once, in steps of 1/128 of a half-life.
Between two steps the order is that of the last step and of what is used now, so a change of usage costs O(depth).

Only the queue's clock is read, so virtual time gives the same order each time. A new process begins without a past.
"""

from collections.abc import Iterable
from typing import Final

from kubenexus.state.queues.queue_node import QueueNode
from kubenexus.state.queues.queue_tree import QueueTree

STEPS: Final = 128  # in a half-life: the past of a queue changes by 0.6 % at most in one
LEAST_STEP: Final = 1.0  # seconds
_FORGOTTEN: Final = 1e-3  # of a unit of a resource: less counts as nothing


class _Past:
    """The past of one queue as of the time `at`, and what it borrows since then."""

    __slots__ = ("at", "average", "borrowed")

    def __init__(self, at: float) -> None:
        self.at = at
        self.average: dict[str, float] = {}
        self.borrowed: dict[str, int] = {}

    def settle(self, now: float, half_life: float) -> None:
        """Brings the average up to this time."""
        if now <= self.at:
            return
        kept = 2.0 ** (-(now - self.at) / half_life)
        names = {*self.average, *self.borrowed}
        values = {n: self.average.get(n, 0.0) * kept + self.borrowed.get(n, 0) * (1.0 - kept) for n in sorted(names)}
        self.average = {name: value for name, value in values.items() if value > _FORGOTTEN or name in self.borrowed}
        self.at = now


class PastUsage:
    """The past of all queues. `half_life` is in seconds. Called by `FairOrder` only."""

    def __init__(self, tree: QueueTree, half_life: float) -> None:
        self._tree, self._half_life = tree, half_life
        self._step = max(half_life / STEPS, LEAST_STEP)
        self._next = 0.0
        self._pasts: dict[tuple[str, bool], _Past] = {}

    def changed(self, queues: Iterable[QueueNode], now: float) -> None:
        """Takes in that these queues, and all above them, use more or less from now on. O(depth) for each."""
        for queue in queues:
            for node in queue.path():
                if node.parent is not None:
                    self._take(node, now)

    def step(self, now: float) -> bool:
        """Puts the past of all queues into the tree, if a step has passed. Returns whether it did. O(queues)."""
        if now < self._next:
            return False
        self._next = now + self._step
        known: dict[tuple[str, bool], _Past] = {}
        for node in self._nodes():
            past = self._take(node, now)
            node.past = dict(past.average)
            if past.average or past.borrowed:
                known[_key(node)] = past
        self._pasts = known
        return True

    def rebuilt(self, now: float) -> None:
        """Takes in that queues, or their guarantees, have changed."""
        self._next = 0.0
        self.step(now)

    def _take(self, node: QueueNode, now: float) -> _Past:
        past = self._pasts.get(_key(node))
        if past is None:
            past = self._pasts[_key(node)] = _Past(now)
        past.settle(now, self._half_life)
        past.borrowed = node.borrowed()
        return past

    def _nodes(self) -> Iterable[QueueNode]:
        for node in self._tree.queues():
            yield node
            if node.own is not None:
                yield node.own


def _key(node: QueueNode) -> tuple[str, bool]:
    """Nodes come and go with changes of the tree; a queue and its own namespaces have one name."""
    return node.name, node.parent is not None and node.parent.own is node
