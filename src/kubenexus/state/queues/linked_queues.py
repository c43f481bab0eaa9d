"""Links queues to a tree, from their settings alone: parents, weights, limits, and the guarantees of inner queues.

Usage is not read here: `QueueTree` adds it to the linked nodes.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubenexus.api.queues.settings import DEFAULT_QUEUE, QueueSettings
from kubenexus.state.queues.queue_node import QueueNode

MAX_DEPTH: Final = 8  # queues above one another
ROOT: Final = ""  # the name of the node above all queues, which is no queue itself


class LinkedQueues(NamedTuple):
    """`queues` by name. `ordered` has the root and all queues, each after the one above it. `warnings`: what is wrong
    with parents, by object."""

    root: QueueNode
    queues: dict[str, QueueNode]
    ordered: list[QueueNode]
    warnings: dict[str, str]


def link_queues(settings: Mapping[str, QueueSettings], before: Mapping[str, QueueNode]) -> LinkedQueues:
    """Returns the tree of these queues and the queue `default`. Nodes in `before` are used again, since jobs refer to
    them; those that are no queues any more are reset, as jobs may still wait for their limits."""
    root, warnings = QueueNode(ROOT), dict[str, str]()
    queues = {
        name: _reset(before.get(name) or QueueNode(name), settings.get(name)) for name in (*settings, DEFAULT_QUEUE)
    }
    for name in before.keys() - queues.keys():
        _reset(before[name], None)
    for name, node in queues.items():
        parent, problem = _parent(name, settings)
        if problem:
            warnings[f"Queue {name}"] = f"{problem}; it counts as a queue without a parent"
        node.parent = queues[parent] if parent else root
        node.parent.children[name] = node
    ordered = [root]
    for node in ordered:
        ordered.extend(node.children.values())
    _sum_guarantees(ordered)
    return LinkedQueues(root, queues, ordered, warnings)


def _parent(queue: str, settings: Mapping[str, QueueSettings]) -> tuple[str, str]:
    """Returns the parent of a queue, or "" and a reason: it does not exist, or is below the queue itself."""
    own = settings.get(queue)
    parent = "" if own is None else own.parent
    if parent and parent not in settings:
        return "", f"its parent {parent} does not exist"
    depth, above = 1, parent
    while above:
        depth, found = depth + 1, settings[above]
        if above == queue:
            return "", "it is below itself"
        if depth > MAX_DEPTH:
            return "", f"more than {MAX_DEPTH} queues are above one another"
        above = found.parent if found.parent in settings else ""
    return parent, ""


def _sum_guarantees(ordered: list[QueueNode]) -> None:
    """Gives each queue at least the guarantees of those below it: else these would be worth nothing above it."""
    for node in reversed(ordered[1:]):
        children = node.children.values()
        node.guaranteed = _at_least(node.guaranteed, [each.guaranteed for each in children])
        node.guaranteed_by_tier = _at_least(node.guaranteed_by_tier, [each.guaranteed_by_tier for each in children])


def _reset(node: QueueNode, settings: QueueSettings | None) -> QueueNode:
    """Returns the node with these settings, and as if nothing was below it."""
    settings = settings or QueueSettings(node.name)
    node.weight, node.guaranteed, node.most = settings.weight, settings.guaranteed, settings.most
    node.kept, node.namespace_limit = settings.kept, settings.namespace_limit
    node.guaranteed_by_tier = settings.guaranteed_by_tier
    node.used, node.held, node.held_below, node.children, node.own = {}, {}, {}, {}, None
    return node


def _at_least(own: Mapping[str, int], below: list[Mapping[str, int]]) -> Mapping[str, int]:
    """Returns amounts, of each resource at least the sum of those below."""
    sums: dict[str, int] = {}
    for amounts in below:
        for name, amount in amounts.items():
            sums[name] = sums.get(name, 0) + amount
    return {name: max(own.get(name, 0), sums.get(name, 0)) for name in {*own, *sums}} if sums else own
