"""What queues use, for metrics: read from the ledger's tree and from the scheduling queue at each scrape."""

from collections.abc import Mapping

from kubenexus.observe.share_metrics import QueueUse
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.queues.queue_tree import QueueTree


def queue_uses(tree: QueueTree, queue: SchedulingQueue) -> list[QueueUse]:
    """Returns what each queue uses and how many jobs wait below it. Empty without queues. O(queues + namespaces)."""
    if not tree.is_active:
        return []
    waiting: dict[str, int] = {}
    for namespace, jobs in queue.jobs_by_namespace():
        for node in tree.queue_of(namespace).path():
            if node.parent is None or node.parent.own is not node:
                waiting[node.name] = waiting.get(node.name, 0) + jobs
    positions = _positions(tree, waiting)
    return [
        QueueUse(
            node.name,
            _dominant(node.used, tree.totals),
            waiting.get(node.name, 0),
            node.used,
            {**node.guaranteed, **node.guaranteed_by_tier},
            node.most,
            positions.get(node.name, 0),
            _dominant(node.past, tree.totals),
        )
        for node in tree.queues()
    ]


def _positions(tree: QueueTree, waiting: Mapping[str, int]) -> dict[str, int]:
    """Returns the place of each queue with waiting jobs among its siblings that have some."""
    found: dict[str, int] = {}
    for above in (tree.root, *tree.queues()):
        some = [child for name, child in above.children.items() if waiting.get(name)]
        some.sort(key=lambda child: (child.current, child.name))
        found.update({child.name: place for place, child in enumerate(some, start=1)})
    return found


def _dominant(used: Mapping[str, float], totals: dict[str, float]) -> float:
    """Returns the largest part of any resource of the cluster."""
    return max([amount / totals[name] for name, amount in used.items() if totals.get(name)], default=0.0)
