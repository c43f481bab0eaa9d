"""Which namespaces hold what a queue may take back: others borrow it while the queue is below its guarantee.

A job may take back at each level of the tree where its queue stays within its guarantee, from siblings that use more
than theirs. A queue that took back borrows nothing, so nothing is taken back from it: what all queues borrow in sum
becomes less each time, and evictions come to an end whatever the weights are.
"""

from collections.abc import Mapping

from kubenexus.api.resource_names import PODS, Amounts
from kubenexus.state.queues.queue_node import QueueNode
from kubenexus.state.queues.queue_tree import QueueTree


class Expected:
    """What queues will use when pods that are nominated have come and those that leave are gone."""

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        self._more: dict[QueueNode, dict[str, int]] = {}

    def add(self, namespace: str, amounts: Amounts, sign: int) -> None:
        """Adds what a pod will use (+1) or will not use any more (-1). O(depth)."""
        for node in self._tree.queue_of(namespace).path():
            more = self._more.setdefault(node, {})
            for name, amount in (*amounts, (PODS, 1)):
                more[name] = more.get(name, 0) + sign * amount

    def used(self, node: QueueNode, name: str) -> int:
        return node.used.get(name, 0) + self._more.get(node, {}).get(name, 0)


def reclaimable(
    tree: QueueTree, namespace: str, asked: Amounts, pods: int, expected: Expected | None = None
) -> dict[str, Mapping[str, int]]:
    """Returns by namespace how much its queue borrows of the resources that a job of `namespace` may take back. A pod
    that uses more of them than that must not go: its queue would be below its own guarantee. O(namespaces)."""
    expected = expected or Expected(tree)
    wanted = dict((*asked, (PODS, pods)))
    borrowing: dict[QueueNode, Mapping[str, int]] = {}
    for node in tree.queue_of(namespace).path():
        parent, names = node.parent, _within_guarantee(node, wanted, expected)
        if parent is None or not names:
            continue
        siblings = [*parent.children.values(), *([parent.own] if parent.own is not None else [])]
        for sibling in siblings:
            more = {name: expected.used(sibling, name) - sibling.guaranteed.get(name, 0) for name in names}
            borrowed = {name: amount for name, amount in more.items() if amount > 0}
            if sibling is not node and borrowed:
                borrowing[sibling] = borrowed
    if not borrowing:
        return {}
    found: dict[str, Mapping[str, int]] = {}
    for each in tree.namespaces():
        borrower = next((node for node in each.path() if node in borrowing), None)
        if borrower is not None and each.used:
            found[each.name] = borrowing[borrower]
    return found


def _within_guarantee(node: QueueNode, wanted: Mapping[str, int], expected: Expected) -> list[str]:
    """Returns the guaranteed resources that are wanted, if the queue stays within all of these guarantees."""
    names = [name for name in wanted if name in node.guaranteed and wanted[name]]
    if any([expected.used(node, name) + wanted[name] > node.guaranteed[name] for name in names]):  # noqa: C419
        return []
    return names
