"""A ledger and the same cluster as plain objects, told the same; each thing that happens is returned as the events the
queue would hear of."""

from copy import copy
from typing import Any

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.api.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from kubenexus.framework.events import Event
from kubenexus.framework.job import Job
from kubenexus.framework.profile import Enabled, Lineup, Profile
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import BUILT_IN
from kubenexus.queue import changes
from kubenexus.state.ledger import Ledger
from kubenexus.testing.harness import on_node
from tests.plugins.dice import Dice

LEAVING = "2026-01-01T00:00:00Z"
Group = Service | ReplicationController | ReplicaSet | StatefulSet


def only(*names: str, **args: Any) -> Lineup:
    """A profile of just these plugins; the last one has the arguments."""
    enabled = [Enabled(name, args=args if name == names[-1] else {}) for name in names]
    return Lineup(Profile("test", tuple(enabled)), BUILT_IN)


class Scene:
    """`pods` are those that count on a node, by name (names are used once, whatever the namespace)."""

    def __init__(self, lineup: Lineup) -> None:
        self.ledger = Ledger()
        self.planner = Planner(lineup)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        self.groups: dict[tuple[str, str, str], Group] = {}
        self.assumed: set[str] = set()
        self.nominees: list[Pod] = []
        self.tried: frozenset[str] = frozenset()  # names of pods that are here only because they are nominated

    @staticmethod
    def of(dice: Dice, lineup: Lineup, steps: int = 0) -> "Scene":
        scene = Scene(lineup)
        for event in [*dice.start(), *(dice.event() for _ in range(steps))]:
            scene.tell(*event)
        return scene

    def tell(self, kind: str, *about: Any) -> list[Event]:
        events: list[Event] | None = getattr(self, kind)(*about)
        return events or []

    def nominated(self, pod: Pod) -> None:
        self.nominees.append(pod)
        self.ledger.pod_seen(pod)

    def with_nominees(self, pod: Pod, node: str) -> "Scene":
        """The cluster as this pod must look at one node: those that wait for it and are no less important are there."""
        there = [
            n for n in self.nominees if n.status.nominated_node_name == node and n.spec.priority >= pod.spec.priority
        ]
        scene = copy(self)
        scene.pods = self.pods | {each.metadata.name: on_node(each, node) for each in there}
        scene.tried = frozenset(each.metadata.name for each in there)
        return scene

    def pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.spec.node_name == node]

    # --- nodes ------------------------------------------------------------------------------------------------------

    def node_seen(self, node: Node) -> list[Event]:
        name = node.metadata.name
        old, self.nodes[name] = self.nodes.get(name), node
        self.ledger.node_seen(node)
        return [changes.node_added(node)] if old is None else changes.node_changed(old, node)

    def node_gone(self, name: str) -> list[Event]:
        old = self.nodes.pop(name, None)
        self.ledger.node_gone(name)
        return [] if old is None else [changes.node_gone(old)]

    # --- pods -------------------------------------------------------------------------------------------------------

    def bound(self, pod: Pod, node: str) -> list[Event]:
        events = self.gone(pod.metadata.name)
        there = self.pods[pod.metadata.name] = on_node(pod, node)
        self.ledger.pod_seen(there)
        return [*events, changes.pod_bound(there)]

    def schedule(self, pod: Pod) -> list[Event]:
        name = pod.metadata.name
        decision = self.planner.decide(Job.of(pod), self.ledger.snapshot(), 0.0)
        if name in self.pods or not decision.placed:
            return []
        commit(decision, Job.of(pod), self.ledger, 0.0)
        self.pods[name] = on_node(pod, decision.placements[0].node)
        self.assumed.add(name)
        return [changes.pod_bound(self.pods[name])]

    def considered(self, pods: list[Pod]) -> None:
        """A whole job is seated, member by member, and everything taken back."""
        self.planner.decide(Job("default/job", tuple(pods), 1), self.ledger.snapshot(), 0.0)

    def forget(self, name: str) -> list[Event]:
        if name not in self.assumed:
            return []
        self.assumed.discard(name)
        pod = self.pods.pop(name)
        self.ledger.forget(pod.key)
        return [changes.pod_forgotten(pod, pod.spec.node_name)]

    def gone(self, name: str) -> list[Event]:
        pod = self.pods.pop(name, None)
        if pod is None:
            return []
        self.assumed.discard(name)
        self.ledger.pod_gone(pod.key)
        return [changes.pod_gone(pod)]

    def relabelled(self, name: str, labels: dict[str, str]) -> list[Event]:
        return self._changed(name, labels=labels)

    def leaving(self, name: str) -> list[Event]:
        return self._changed(name, deletion_timestamp=LEAVING)

    def _changed(self, name: str, **meta: Any) -> list[Event]:
        if name not in self.pods:
            return []
        self.assumed.discard(name)  # the API server shows it bound
        old = self.pods[name]
        new = self.pods[name] = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, **meta))
        self.ledger.pod_seen(new)
        return changes.pod_changed(old, new)

    # --- what says which pods belong together -------------------------------------------------------------------------

    def namespace_seen(self, namespace: Namespace) -> None:
        self.namespaces[namespace.metadata.name] = namespace.metadata.labels
        self.ledger.namespace_seen(namespace)

    def namespace_gone(self, name: str) -> None:
        self.namespaces.pop(name, None)
        self.ledger.namespace_gone(name)

    def group_seen(self, group: Group) -> None:
        self.groups[type(group).__name__, group.metadata.namespace, group.metadata.name] = group
        self.ledger.owner_seen(group)

    def group_gone(self, kind: type[Any], namespace: str, name: str) -> None:
        self.groups.pop((kind.__name__, namespace, name), None)
        self.ledger.owner_gone(kind, namespace, name)
