"""A ledger and the same cluster as plain objects, told the same; each thing that happens is returned as the events the
queue would hear of."""

from copy import copy
from typing import Any

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.api.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.framework.job import Job
from kubenexus.framework.profile import EnabledPlugin, Profile, ProfilePlugins
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import BUILT_IN
from kubenexus.queue import object_events
from kubenexus.state.ledger import Ledger
from kubenexus.testing.harness import on_node
from tests.plugins.random_cluster import RandomCluster

LEAVING = "2026-01-01T00:00:00Z"
Group = Service | ReplicationController | ReplicaSet | StatefulSet


def only(*names: str, **args: Any) -> ProfilePlugins:
    """A profile of just these plugins; the last one has the arguments."""
    enabled = [EnabledPlugin(name, args=args if name == names[-1] else {}) for name in names]
    return ProfilePlugins(Profile("test", tuple(enabled)), BUILT_IN)


class PluginCluster:
    """`pods` are those that count on a node, by name (names are used once, whatever the namespace)."""

    def __init__(self, profile_plugins: ProfilePlugins) -> None:
        self.ledger = Ledger()
        self.planner = Planner(profile_plugins)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        self.groups: dict[tuple[str, str, str], Group] = {}
        self.assumed: set[str] = set()
        self.nominees: list[Pod] = []
        self.tried: frozenset[str] = frozenset()  # names of pods that are here only because they are nominated

    @staticmethod
    def of(random_cluster: RandomCluster, profile_plugins: ProfilePlugins, steps: int = 0) -> "PluginCluster":
        cluster = PluginCluster(profile_plugins)
        for event in [*random_cluster.start(), *(random_cluster.event() for _ in range(steps))]:
            cluster.tell(*event)
        return cluster

    def tell(self, kind: str, *about: Any) -> list[ClusterEvent]:
        events: list[ClusterEvent] | None = getattr(self, kind)(*about)
        return events or []

    def nominated(self, pod: Pod) -> None:
        self.nominees.append(pod)
        self.ledger.upsert_pod(pod)

    def with_nominees(self, pod: Pod, node: str) -> "PluginCluster":
        """The cluster as this pod must look at one node: those that wait for it and are no less important are there."""
        there = [
            n for n in self.nominees if n.status.nominated_node_name == node and n.spec.priority >= pod.spec.priority
        ]
        cluster = copy(self)
        cluster.pods = self.pods | {each.metadata.name: on_node(each, node) for each in there}
        cluster.tried = frozenset(each.metadata.name for each in there)
        return cluster

    def pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.spec.node_name == node]

    # --- nodes ------------------------------------------------------------------------------------------------------

    def upsert_node(self, node: Node) -> list[ClusterEvent]:
        name = node.metadata.name
        old, self.nodes[name] = self.nodes.get(name), node
        self.ledger.upsert_node(node)
        return [object_events.node_added(node)] if old is None else object_events.node_changed(old, node)

    def remove_node(self, name: str) -> list[ClusterEvent]:
        old = self.nodes.pop(name, None)
        self.ledger.remove_node(name)
        return [] if old is None else [object_events.node_gone(old)]

    # --- pods -------------------------------------------------------------------------------------------------------

    def bound(self, pod: Pod, node: str) -> list[ClusterEvent]:
        events = self.gone(pod.metadata.name)
        there = self.pods[pod.metadata.name] = on_node(pod, node)
        self.ledger.upsert_pod(there)
        return [*events, object_events.pod_bound(there)]

    def schedule(self, pod: Pod) -> list[ClusterEvent]:
        name = pod.metadata.name
        decision = self.planner.decide(Job.of(pod), self.ledger.snapshot(), 0.0)
        if name in self.pods or not decision.placed:
            return []
        commit(decision, Job.of(pod), self.ledger, 0.0)
        self.pods[name] = on_node(pod, decision.placements[0].node)
        self.assumed.add(name)
        return [object_events.pod_bound(self.pods[name])]

    def considered(self, pods: list[Pod]) -> None:
        """A whole job is seated, member by member, and everything taken back."""
        self.planner.decide(Job("default/job", tuple(pods), 1), self.ledger.snapshot(), 0.0)

    def forget(self, name: str) -> list[ClusterEvent]:
        if name not in self.assumed:
            return []
        self.assumed.discard(name)
        pod = self.pods.pop(name)
        self.ledger.forget(pod.key)
        return [object_events.pod_forgotten(pod, pod.spec.node_name)]

    def gone(self, name: str) -> list[ClusterEvent]:
        pod = self.pods.pop(name, None)
        if pod is None:
            return []
        self.assumed.discard(name)
        self.ledger.remove_pod(pod.key)
        return [object_events.pod_gone(pod)]

    def relabelled(self, name: str, labels: dict[str, str]) -> list[ClusterEvent]:
        return self._changed(name, labels=labels)

    def leaving(self, name: str) -> list[ClusterEvent]:
        return self._changed(name, deletion_timestamp=LEAVING)

    def _changed(self, name: str, **meta: Any) -> list[ClusterEvent]:
        if name not in self.pods:
            return []
        self.assumed.discard(name)  # the API server shows it bound
        old = self.pods[name]
        new = self.pods[name] = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, **meta))
        self.ledger.upsert_pod(new)
        return object_events.pod_changed(old, new)

    # --- what says which pods belong together -------------------------------------------------------------------------

    def upsert_namespace(self, namespace: Namespace) -> None:
        self.namespaces[namespace.metadata.name] = namespace.metadata.labels
        self.ledger.upsert_namespace(namespace)

    def remove_namespace(self, name: str) -> None:
        self.namespaces.pop(name, None)
        self.ledger.remove_namespace(name)

    def group_seen(self, group: Group) -> None:
        self.groups[type(group).__name__, group.metadata.namespace, group.metadata.name] = group
        self.ledger.upsert_owner(group)

    def group_gone(self, kind: type[Any], namespace: str, name: str) -> None:
        self.groups.pop((kind.__name__, namespace, name), None)
        self.ledger.remove_owner(kind, namespace, name)
