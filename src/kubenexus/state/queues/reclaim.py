"""Reclaim: what a queue below its guarantee may take back, by evictions, from queues that borrow it.

A job may take back at each level of the tree where its queue is below its guarantee and stays within it, from siblings
that use more than theirs. No queue that loses pods falls below its guarantee by that, neither the sibling nor a queue
below it. So a queue that has reached its guarantee keeps it, and one that has not loses nothing: it takes back no more
than its guarantee, and evictions come to an end with any weights.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kubenexus.api.queues.settings import tier_of
from kubenexus.api.resource_names import PODS, Amounts
from kubenexus.state.queues.queue_node import QueueNode
from kubenexus.state.queues.queue_tree import QueueTree

Loss = tuple[str, Amounts]  # the namespace of a pod, and what it uses (`QueueTree.on_node`)
_Lost = dict[QueueNode, dict[str, int]]


class Expected:
    """What queues will use when pods that are nominated have come and those that leave are gone."""

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        self._more: dict[QueueNode, dict[str, int]] = {}

    def add(self, namespace: str, node: str, amounts: Amounts, sign: int) -> None:
        """Adds what a pod on a node will use (+1) or will not use any more (-1). O(depth)."""
        whole = self._tree.on_node(node, amounts)
        for queue in self._tree.queue_of(namespace).path():
            more = self._more.setdefault(queue, {})
            for name, amount in whole:
                more[name] = more.get(name, 0) + sign * amount

    def used(self, node: QueueNode, name: str) -> int:
        return node.used.get(name, 0) + self._more.get(node, {}).get(name, 0)


class _Lender(NamedTuple):
    """A queue on the way from a namespace up to a sibling that borrows, and the resources that are taken back."""

    node: QueueNode
    names: tuple[str, ...]


class Reclaim:
    """What a job of `namespace` may take back now. `borrowed` has by namespace how much its queues borrow of these
    resources: a pod that uses more must not go. O(namespaces)."""

    def __init__(
        self, tree: QueueTree, namespace: str, asked: Amounts, pods: int, expected: Expected | None = None
    ) -> None:
        self._expected = expected or Expected(tree)
        self._lenders: dict[str, list[_Lender]] = {}
        self.borrowed: dict[str, Mapping[str, int]] = {}
        wanted = (*asked, (PODS, pods))
        borrowers: dict[QueueNode, tuple[str, ...]] = {}
        for some in (wanted, *tree.by_tier(wanted)):
            self._add_borrowers(borrowers, tree.queue_of(namespace), dict(some))
        for each in tree.namespaces() if borrowers else ():
            if each.used:
                self._add(each, borrowers)

    def _add_borrowers(
        self, found: dict[QueueNode, tuple[str, ...]], queue: QueueNode, wanted: Mapping[str, int]
    ) -> None:
        """Adds the queues that borrow, with the resources that the job may take back from each. `wanted` is of all
        nodes, or of those of one hardware tier."""
        for node in queue.path():
            parent, names = node.parent, self._within_guarantee(node, wanted)
            if parent is None or not names:
                continue
            for sibling in (*parent.children.values(), *([parent.own] if parent.own is not None else [])):
                more = tuple([name for name in names if self._spare(sibling, name) > 0])
                if sibling is not node and more:
                    found[sibling] = (*found.get(sibling, ()), *more)

    def _within_guarantee(self, node: QueueNode, wanted: Mapping[str, int]) -> list[str]:
        """Returns the guaranteed resources that are wanted, if the queue is below its guarantee and stays within it."""
        names = [name for name in wanted if wanted[name] and guarantee(node, name)]
        if not names or any([self._spare(node, name) + wanted[name] > 0 for name in names]):  # noqa: C419
            return []
        return [] if self._has_guarantee(node, tier_of(names[0]), {}) else names

    def _add(self, namespace: QueueNode, borrowers: Mapping[QueueNode, tuple[str, ...]]) -> None:
        path: list[QueueNode] = []
        for node in namespace.path():
            if node is not namespace:
                path.append(node)
            names = borrowers.get(node)
            if names is not None:
                most = {name: min([self._spare(each, name) for each in path]) for name in names}
                self.borrowed[namespace.name] = {name: amount for name, amount in most.items() if amount > 0}
                self._lenders[namespace.name] = [_Lender(each, names) for each in path]
                return

    def allows(self, losses: Iterable[Loss], namespaces: Iterable[str]) -> bool:
        """Whether all queues keep their guarantees if these pods go, of which those of `namespaces` are taken back."""
        lost: _Lost = {}
        self._count(lost, losses, +1)
        return self._all_keep(lost, namespaces)

    def together(self, groups: Iterable[Sequence[Loss]]) -> list[bool]:
        """Returns which groups of pods can all go together: each, in order, that leaves all guarantees whole beside
        those before it."""
        found, lost = list[bool](), _Lost()
        for group in groups:
            self._count(lost, group, +1)
            found.append(self._all_keep(lost, {namespace for namespace, _ in group}))
            if not found[-1]:
                self._count(lost, group, -1)
        return found

    def _count(self, lost: _Lost, losses: Iterable[Loss], sign: int) -> None:
        for namespace, amounts in losses:
            for node, _ in self._lenders.get(namespace, ()):
                sums = lost.setdefault(node, {})
                for name, amount in amounts:
                    sums[name] = sums.get(name, 0) + sign * amount

    def _all_keep(self, lost: _Lost, namespaces: Iterable[str]) -> bool:
        lenders = {each.node: each for namespace in namespaces for each in self._lenders[namespace]}
        return all([self._keeps(each, lost[each.node]) for each in lenders.values()])  # noqa: C419

    def _keeps(self, lender: _Lender, lost: Mapping[str, int]) -> bool:
        node, names = lender
        if any([self._spare(node, name) < lost.get(name, 0) for name in names if lost.get(name)]):  # noqa: C419
            return False
        tiers = {tier_of(name) for name, amount in lost.items() if amount}
        return all([self._has_guarantee(node, tier, lost) for tier in tiers])  # noqa: C419

    def _has_guarantee(self, node: QueueNode, tier: str, lost: Mapping[str, int]) -> bool:
        """Whether the queue uses as much as is guaranteed of some resource, as for its share, of all nodes ("") or of a
        tier; or has no guarantee there."""
        amounts = node.guaranteed_by_tier if tier else node.guaranteed
        names = [name for name, amount in amounts.items() if amount and tier_of(name) == tier]
        return not names or any([self._spare(node, name) >= lost.get(name, 0) for name in names])  # noqa: C419

    def _spare(self, node: QueueNode, name: str) -> int:
        return self._expected.used(node, name) - guarantee(node, name)


def guarantee(node: QueueNode, name: str) -> int:
    """Returns what a queue is guaranteed of a resource, of all nodes or of a tier."""
    return (node.guaranteed_by_tier if tier_of(name) else node.guaranteed).get(name, 0)
