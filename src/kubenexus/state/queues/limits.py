"""Finds the first limit that a job would exceed, from its namespace up the tree of queues."""

from collections.abc import Mapping
from typing import NamedTuple

from kubenexus.api.resource_names import Amounts
from kubenexus.state.queues.queue_node import QueueNode


class ReachedLimit(NamedTuple):
    """The limit that a job would exceed. `node` is the queue or namespace that has it; `used` and `asked` are amounts
    of `resource`. `held`: what counts as used there because other queues do not lend it. `tiers`: the limits of all
    hardware tiers that have the resource, if each of them is reached; the first of them is this one."""

    node: QueueNode
    resource: str
    asked: int
    used: int
    most: int
    held: int = 0
    tiers: tuple["ReachedLimit", ...] = ()


def reached(namespace: QueueNode, wanted: Amounts) -> ReachedLimit | None:
    """Returns the limit that so much more for a namespace would exceed, the lowest in the tree; or None."""
    node: QueueNode | None = namespace
    while node is not None:
        most = node.most
        if most:
            used = node.used
            for resource, amount in wanted:
                limit = most.get(resource)
                if limit is not None and used.get(resource, 0) + amount > limit:
                    return ReachedLimit(node, resource, amount, used.get(resource, 0), limit)
        node = node.parent
    return None


def reached_with_held(namespace: QueueNode, wanted: Amounts, totals: Mapping[str, float]) -> ReachedLimit | None:
    """Returns the same if what queues do not lend counts as used. `totals` is what the cluster has."""
    held: dict[str, int] = {}
    child: QueueNode | None = None
    for node in namespace.path():
        if child is not None:
            held = _others_held(node, child, held)
        for resource, amount in wanted if node.most or held else ():
            found = _exceeded(node, resource, amount, held.get(resource, 0), totals)
            if found is not None:
                return found
        child = node
    return None


def _exceeded(
    node: QueueNode, resource: str, amount: int, held: int, totals: Mapping[str, float]
) -> ReachedLimit | None:
    most = node.most.get(resource)
    if most is None:
        if node.parent is not None or not held:
            return None
        most = int(totals.get(resource, 0.0))
    used = node.used.get(resource, 0)
    return ReachedLimit(node, resource, amount, used, most, held) if used + held + amount > most else None


def _others_held(node: QueueNode, child: QueueNode, held: Mapping[str, int]) -> dict[str, int]:
    """Returns what is held below `node` for queues that are not on the path through `child`. `held` is that of the
    level below."""
    found = dict(held)
    for name, amount in node.held_below.items():
        found[name] = found.get(name, 0) + amount - child.held.get(name, 0)
    return {name: amount for name, amount in found.items() if amount > 0}
