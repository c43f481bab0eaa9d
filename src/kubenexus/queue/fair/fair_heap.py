"""Active job classes along the tree of queues: the first is found by walking down.

    root ─▶ the queue with the least share ─▶ ... ─▶ the namespace whose turn it is ─▶ its first class

- Of sibling queues the one with the least share goes first (`QueueNode.current`); of equal ones the one with the first
  job, by priority and age.
- Of the namespaces of a queue one with jobs of the highest priority and boost goes first; of several the one whose last
  turn was the longest ago.
- Within a namespace the order is that of jobs without queues.

Each queue with waiting jobs has a heap of what is below it. A share that changes moves one queue in one heap for each
level, and so does a class that comes or goes: O(depth * log n), however many jobs wait. What changed is sorted when the
first class is next asked for: a pop changes a namespace several times.

Jobs that are critical for the cluster, in namespaces that no queue takes, go before all queues.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from kubenexus.base.heap import Heap, Slot
from kubenexus.framework.aging import CRITICAL
from kubenexus.queue.fair.namespace_turns import NamespaceTurns
from kubenexus.queue.job_class import JobClass
from kubenexus.state.queues.queue_node import QueueNode
from kubenexus.state.queues.queue_tree import QueueTree

_PRIORITY_AND_BOOST = 2  # how many parts of an order come before the turns of namespaces
_USUAL = 4  # parts of an order: priority, boost, age, number. The order of a foreign plugin has no turns


class _Namespace:
    """The waiting classes of a namespace. `order` is that of the first one."""

    __slots__ = ("branch", "classes", "name", "order", "slot")

    def __init__(self, name: str) -> None:
        self.name = name
        self.classes: Heap[JobClass] = Heap()
        self.branch: _Branch | None = None
        self.slot: Slot | None = None
        self.order: tuple[Any, ...] = ()


class _Branch:
    """A queue with waiting jobs. `items` are queues and namespaces below it; `order` is that of its first job."""

    __slots__ = ("items", "node", "order", "parent", "slot")

    def __init__(self, node: QueueNode, parent: "_Branch | None") -> None:
        self.node, self.parent = node, parent
        self.items: Heap[_Branch | _Namespace] = Heap()
        self.slot: Slot | None = None
        self.order: tuple[Any, ...] = ()


class FairHeap:
    """A heap of job classes; `push`, `remove` and `first` as those of `Heap`."""

    def __init__(self, tree: QueueTree, turns: NamespaceTurns) -> None:
        self._tree, self._turns = tree, turns
        self._entries: dict[str, _Namespace] = {}
        self._entry_of: dict[JobClass, _Namespace] = {}
        self._branches: dict[QueueNode, _Branch] = {}
        self._critical = _Namespace("")
        self._root = _Branch(tree.root, None)
        self._unsorted: dict[_Namespace, None] = {}
        self._changed: dict[QueueNode, None] = {}

    def __len__(self) -> int:
        return len(self._entry_of)

    def __iter__(self) -> Iterator[JobClass]:
        return iter(self._entry_of)

    def push(self, order: tuple[Any, ...], job_class: JobClass) -> Slot:
        """Adds a class. Returns its slot, which `remove` needs."""
        head = job_class.head
        namespace = job_class.share.namespace if head is None else head.job.namespace
        if job_class.priority >= CRITICAL and not self._tree.is_mapped(namespace):
            entry = self._critical
        else:
            entry = self._entries.get(namespace) or self._open(namespace)
            self._unsorted[entry] = None
        self._entry_of[job_class] = entry
        return entry.classes.push(order, job_class)

    def remove(self, slot: Slot) -> None:
        """Removes a class. Does nothing if it is removed already."""
        job_class: JobClass | None = slot[2]
        if job_class is not None:
            entry = self._entry_of.pop(job_class)
            entry.classes.remove(slot)
            if entry is not self._critical:
                self._unsorted[entry] = None

    def first(self) -> JobClass | None:
        """Returns the class to be tried next, or None. O(depth), and O(depth * log n) for each namespace and each queue
        that changed since the last call."""
        if self._critical.classes:
            return self._critical.classes.first()
        if self._unsorted:
            self._sort()
        if self._changed:
            self._sort_changed()
        item: _Branch | _Namespace | None = self._root
        while isinstance(item, _Branch):
            item = item.items.first()
        return None if item is None else item.classes.first()

    def turn_taken(self, namespace: str) -> None:
        """Notes that a namespace has had its turn."""
        entry = self._entries.get(namespace)
        if entry is not None:
            self._unsorted[entry] = None

    def shares_changed(self, nodes: Iterable[QueueNode]) -> None:
        """Notes queues whose own namespaces use more or less now. The tree has the shares of all above them."""
        self._changed.update(dict.fromkeys(nodes))

    def all_shares_changed(self) -> None:
        """Notes that all queues have other shares: the cluster has other amounts."""
        self._changed.update(dict.fromkeys(self._branches))

    def build(self) -> None:
        """Builds the tree again: queues, or the queues of namespaces, have changed. Only namespaces move, not their
        classes."""
        self._branches, self._root = {}, _Branch(self._tree.root, None)
        for entry in self._entries.values():
            entry.branch, entry.slot = self._branch(self._tree.queue_of(entry.name)), None
            self._unsorted[entry] = None
        self._changed.clear()

    # --- internal -------------------------------------------------------------------------------------------------

    def _open(self, namespace: str) -> _Namespace:
        entry = self._entries[namespace] = _Namespace(namespace)
        entry.branch = self._branch(self._tree.queue_of(namespace))
        return entry

    def _branch(self, node: QueueNode) -> _Branch:
        if node is self._tree.root:
            return self._root
        branch = self._branches.get(node)
        if branch is None:
            parent = self._root if node.parent is None else self._branch(node.parent)
            branch = self._branches[node] = _Branch(node, parent)
        return branch

    def _sort(self) -> None:
        """Puts each namespace that changed at its place in its queue, and all queues above it."""
        for entry in self._unsorted:
            branch, first, key = entry.branch, entry.classes.first_slot(), None
            if branch is None or self._entries.get(entry.name) is not entry:
                continue
            if first is not None:
                order = entry.order = first[0]
                key = order
                if len(order) == _USUAL:
                    turn = self._turns.of(entry.name)
                    key = (*order[:_PRIORITY_AND_BOOST], turn, *order[_PRIORITY_AND_BOOST:])
            else:
                del self._entries[entry.name]
            if _placed(entry, key):
                self._sort_branches(branch)
        self._unsorted.clear()

    def _sort_changed(self) -> None:
        """Puts queues with other shares at their places. Mostly `_sort` has done so."""
        for each in self._changed:
            for node in each.path():
                branch = self._branches.get(node)
                if branch is not None:
                    _placed(branch, (*node.current, branch.order))
        self._changed.clear()

    def _sort_branches(self, branch: _Branch) -> None:
        """Puts a queue at its place among its siblings, and all above it, until one stays where it is."""
        while branch.parent is not None:
            first, key = branch.items.first(), None
            if first is None:
                self._branches.pop(branch.node, None)
            else:
                self._branches[branch.node] = branch  # it may have been empty a moment ago
                branch.order = first.order
                key = (*branch.node.current, first.order)
            if not _placed(branch, key):
                return
            branch = branch.parent


def _placed(item: _Branch | _Namespace, key: tuple[Any, ...] | None) -> bool:
    """Puts an item into the heap above it by this key; None: takes it out. Returns whether that changed anything."""
    above = item.parent if isinstance(item, _Branch) else item.branch
    if above is None:
        return False
    if item.slot is not None:
        if item.slot[0] == key:
            return False
        above.items.remove(item.slot)
    item.slot = None if key is None else above.items.push(key, item)
    return True
