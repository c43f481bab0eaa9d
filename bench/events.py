"""What it costs to tell the ledger what the API server said: an event about a pod that runs, or about a node.

Objects are decoded beforehand (`decode` is a bench of its own). Each round ends with the cluster as it began.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import TypeVar

from bench import objects
from bench.cluster import BenchError, Cluster
from bench.measure import Round, clock
from bench.objects import Template
from kubenexus.api.codec import decode_node, decode_pod
from kubenexus.api.core import Node, Pod

T = TypeVar("T")


def per_event(tell: Callable[[T], object], things: Iterable[T]) -> float:
    things = list(things)
    start = clock()
    for thing in things:
        tell(thing)
    return (clock() - start) / len(things)


class PodEvents:
    """Pods that somebody bound, spread over the nodes."""

    def __init__(self, cluster: Cluster, calls: int) -> None:
        self._ledger = cluster.ledger
        self._places = [(next(cluster.numbers), objects.node_name(i % cluster.size)) for i in range(calls)]

    def _pods(self) -> list[Pod]:
        """Decoded anew: an update never brings the object we already have."""
        return [decode_pod(objects.pod(Template(), number, node).encode()) for number, node in self._places]

    def added(self) -> float:
        pods = self._pods()
        spent = per_event(self._ledger.upsert_pod, pods)
        self._remove(pods)
        return spent

    def updated(self) -> float:
        """Something changed that scheduling does not count: the status, as happens several times in a pod's life."""
        pods = self._pods()
        self._add(pods)
        spent = per_event(self._ledger.upsert_pod, self._pods())
        self._remove(pods)
        return spent

    def confirmed(self) -> float:
        """The API server shows a pod bound where we assumed it."""
        pods = self._pods()
        for pod in pods:
            self._ledger.assume(pod, pod.spec.node_name, 0.0)
        spent = per_event(self._ledger.upsert_pod, self._pods())
        self._remove(pods)
        return spent

    def deleted(self) -> float:
        pods = self._pods()
        self._add(pods)
        return per_event(self._ledger.remove_pod, [pod.key for pod in pods])

    def _add(self, pods: list[Pod]) -> None:
        for pod in pods:
            self._ledger.upsert_pod(pod)

    def _remove(self, pods: list[Pod]) -> None:
        for pod in pods:
            self._ledger.remove_pod(pod.key)


class NodeEvents:
    """The first nodes of the cluster, again and again."""

    def __init__(self, cluster: Cluster, calls: int) -> None:
        self._ledger = cluster.ledger
        self._kind = cluster.kind.nodes
        self._some = range(min(calls, cluster.size))
        self._beats = itertools.count(1)

    def _nodes(self, generation: int) -> list[Node]:
        beat = next(self._beats)
        return [decode_node(objects.node(i, self._kind, beat, generation).encode()) for i in self._some]

    def heartbeat(self) -> float:
        """Says that the kubelet is alive, and nothing else."""
        nodes, before = self._nodes(0), self._ledger.generation
        spent = per_event(self._ledger.upsert_node, nodes)
        if self._ledger.generation != before:
            raise BenchError("a heartbeat was taken for a change")
        return spent

    def changed(self) -> float:
        """A label is new; and back again."""
        changed, before = self._nodes(1), self._ledger.generation
        spent = per_event(self._ledger.upsert_node, changed)
        if self._ledger.generation == before:
            raise BenchError("a changed label was overlooked")
        for node in self._nodes(0):
            self._ledger.upsert_node(node)
        return spent


Make = Callable[[Cluster, int], Round]

ABOUT_PODS: dict[str, Make] = {
    "pod added": lambda cluster, calls: PodEvents(cluster, calls).added,
    "pod updated": lambda cluster, calls: PodEvents(cluster, calls).updated,
    "pod confirmed": lambda cluster, calls: PodEvents(cluster, calls).confirmed,
    "pod deleted": lambda cluster, calls: PodEvents(cluster, calls).deleted,
}
ABOUT_NODES: dict[str, Make] = {
    "node heartbeat": lambda cluster, calls: NodeEvents(cluster, calls).heartbeat,
    "node changed": lambda cluster, calls: NodeEvents(cluster, calls).changed,
}
