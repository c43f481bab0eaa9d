"""Random pods and nodes that have to do with each other, and random events: few names, so that everything meets
everything. All from a seed."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from kubenexus.api.core import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubenexus.api.meta import ObjectMeta, OwnerReference
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement
from kubenexus.api.workloads import (
    Namespace,
    OwnerSpec,
    ReplicaSet,
    ReplicationController,
    Service,
    ServiceSpec,
    StatefulSet,
)
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod, a_term

RACK, NOWHERE = "example.com/rack", "nobody/has-this"
NODES = [f"n{i}" for i in range(6)]
PODS = [f"p{i}" for i in range(10)]
NAMESPACES = ["default", "team", "stranger"]
TOPOLOGIES = [ZONE, ZONE, ZONE, HOSTNAME, HOSTNAME, RACK, RACK, NOWHERE]
ZONES = [{ZONE: "a"}, {ZONE: "a"}, {ZONE: "b"}, {ZONE: "b"}, {ZONE: "c"}, {ZONE: ""}, {}]
RACKS = [{RACK: "1"}, {RACK: "1"}, {RACK: "2"}, {}]
TAINTS = [[], [], [], [], ["gpu:NoSchedule"], ["spot=yes:NoExecute"], ["slow:PreferNoSchedule"]]


def _where(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=[LabelSelectorRequirement(key=key, operator=operator, values=list(values))])


WEB = LabelSelector(match_labels={"app": "web"})
SELECTORS = [
    *[WEB] * 6,
    LabelSelector(match_labels={"app": "db"}),
    LabelSelector(match_labels={"app": "web", "tier": "front"}),
    _where("app", "In", "web", "db"),
    _where("tier", "NotIn", "front"),
    _where("tier", "Exists"),
    _where("version", "DoesNotExist"),
    LabelSelector(),
    None,
]
SPACES: list[Any] = [
    *[{}] * 6,
    {"namespaces": ["team"]},
    {"namespaces": ["default", "stranger"]},
    {"namespace_selector": LabelSelector()},
    {"namespace_selector": LabelSelector(match_labels={"env": "prod"})},
    {"namespace_selector": _where("env", "NotIn", "prod"), "namespaces": ["default"]},
]
OWNERS = ["web", "db"]
_CONTROLLERS = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1", "Job": "batch/v1"}


class RandomCluster(Random):
    """`names` are the nodes there may be, `topologies` the labels that terms and constraints speak of."""

    names, topologies = NODES, TOPOLOGIES

    def rarely(self) -> bool:
        return self.random() < 0.1

    # --- objects ----------------------------------------------------------------------------------------------------

    def node(self, name: str) -> Node:
        labels = {HOSTNAME: name, **self.choice(ZONES), **self.choice(RACKS), **self.choice([{"disk": "ssd"}, {}])}
        if self.rarely():
            labels[HOSTNAME] = "shared"
        elif self.rarely():
            del labels[HOSTNAME]
        node = a_node(name, taints=self.choice(TAINTS), cordoned=self.rarely())
        return msgspec.structs.replace(node, metadata=ObjectMeta(name=name, uid=name, labels=labels))

    def labels(self) -> dict[str, str]:
        some = [{"app": self.choice(["web", "web", "web", "db"])}, {"tier": self.choice(["front", "back"])}]
        some.append({"version": self.choice("12")})
        return {key: value for each in some if self.random() < 0.7 for key, value in each.items()}

    def pod(self, name: str, *, terms: float = 0.6, constraints: float = 0.6) -> Pod:
        """`terms` and `constraints`: how likely it has some."""
        pod = a_pod(
            name,
            namespace=self.choice(["default"] * 4 + NAMESPACES),
            labels=self.labels(),
            tolerates=self.choice([[], [], ["gpu"], ["*"]]),
            selects=self.choice([{}] * 5 + [{"disk": "ssd"}, {ZONE: "a"}]),
            topology_spread_constraints=self.constraints() if self.random() < constraints else [],
        )
        spec = msgspec.structs.replace(pod.spec, affinity=self.affinity(terms))
        refs = [self.owner()] if self.random() < 0.4 else []
        return Pod(metadata=msgspec.structs.replace(pod.metadata, owner_references=refs), spec=spec)

    def owner(self) -> OwnerReference:
        kind, version = self.choice(list(_CONTROLLERS.items()))
        return OwnerReference(
            kind=kind,
            name=self.choice(OWNERS),
            controller=not self.rarely(),
            api_version="other/v1" if self.rarely() else version,
        )

    def affinity(self, likely: float) -> Affinity:
        node = None
        if self.random() < 0.15:
            terms = self.sample([a_term(t) for t in ("disk In ssd", f"{ZONE} In a b", "disk Like ssd", "")], 2)
            node = NodeAffinity(required=NodeSelector(node_selector_terms=terms))
        near = self.towards() if self.random() < likely else None
        return Affinity(
            node_affinity=node,
            pod_affinity=near,
            pod_anti_affinity=self.towards() if self.random() < likely else None,
        )

    def towards(self) -> PodAffinity:
        wishes = [
            WeightedPodAffinityTerm(weight=self.choice([1, 10, 100]), pod_affinity_term=self.term()) for _ in "12"
        ]
        return PodAffinity(
            required=[self.term() for _ in range(self.choice([0, 0, 1, 1, 2]))],
            preferred=wishes[: self.choice([0, 1, 2])],
        )

    def term(self) -> PodAffinityTerm:
        return PodAffinityTerm(
            topology_key=self.choice(self.topologies),
            label_selector=self.choice(SELECTORS),
            match_label_keys=self.choice([[], ["version"]]),
            mismatch_label_keys=self.choice([[], ["tier"]]),
            **self.choice(SPACES),
        )

    def constraints(self) -> list[TopologySpreadConstraint]:
        return [self.constraint() for _ in range(self.choice([1, 1, 2, 3]))]

    def constraint(self) -> TopologySpreadConstraint:
        return TopologySpreadConstraint(
            max_skew=self.choice([1, 1, 2, 3]),
            topology_key=self.choice(self.topologies),
            when_unsatisfiable=self.choice(["DoNotSchedule", "ScheduleAnyway"]),
            label_selector=self.choice(SELECTORS),
            min_domains=self.choice([None, None, 1, 2, 3, 5]),
            node_affinity_policy=self.choice(["Honor", "Honor", "Ignore"]),
            node_taints_policy=self.choice(["Ignore", "Honor"]),
            match_label_keys=self.choice([[], [], ["version"], ["nobody"]]),
        )

    def namespace(self, name: str) -> Namespace:
        return Namespace(metadata=ObjectMeta(name=name, labels=self.choice([{}, {"env": "prod"}, {"env": "test"}])))

    def group(self) -> Service | ReplicationController | ReplicaSet | StatefulSet:
        meta = ObjectMeta(name=self.choice(OWNERS), namespace=self.choice(["default", "default", "team"]))
        plain = ServiceSpec(
            selector=self.choice([{"app": "web"}, {"app": "web", "tier": "front"}, {"tier": "back"}, {}])
        )
        full = OwnerSpec(selector=self.choice(SELECTORS))
        kinds: list[Any] = [(Service, plain), (Service, plain), (ReplicationController, plain)]
        kind, spec = self.choice([*kinds, (ReplicaSet, full), (StatefulSet, full)])
        group: Service | ReplicationController | ReplicaSet | StatefulSet = kind(metadata=meta, spec=spec)
        return group

    # --- what happens -----------------------------------------------------------------------------------------------

    def start(self) -> list[tuple[Any, ...]]:
        """A cluster with some of everything; most pods run somewhere."""
        events: list[tuple[Any, ...]] = [("upsert_node", self.node(name)) for name in self.names if not self.rarely()]
        events += [("upsert_namespace", self.namespace(name)) for name in NAMESPACES[:2]]
        events += [("group_seen", self.group()) for _ in "12"]
        events += [
            ("bound", self.pod(name, terms=0.25), self.choice(self.names)) for name in PODS if self.random() < 0.6
        ]
        self.shuffle(events)
        return [*events, *[("leaving", name) for name in self.sample(PODS, 2)]]

    def event(self) -> tuple[Any, ...]:
        happens: Callable[[], tuple[Any, ...]] = self.choice([*[self.pod_event] * 3, self.node_event, self.other_event])
        return happens()

    def pod_event(self) -> tuple[Any, ...]:
        name = self.choice(PODS)
        match self.choice(
            ["bound", "schedule", "schedule", "considered", "gone", "gone", "forget", "relabelled", "leaving"]
        ):
            case "bound":
                return "bound", self.pod(name, terms=0.25), self.choice(self.names)
            case "schedule":
                return "schedule", self.pod(name, terms=0.25)
            case "considered":
                return "considered", [self.pod(f"j{i}", terms=0.25) for i in range(3)]
            case "relabelled":
                return "relabelled", name, self.labels()
            case kind:
                return kind, name

    def node_event(self) -> tuple[Any, ...]:
        name = self.choice(self.names)
        return self.choice([("upsert_node", self.node(name)), ("upsert_node", self.node(name)), ("remove_node", name)])

    def other_event(self) -> tuple[Any, ...]:
        group, namespace = self.group(), self.choice(NAMESPACES)
        events: list[tuple[Any, ...]] = [
            ("group_seen", group),
            ("group_gone", type(group), group.metadata.namespace, group.metadata.name),
            ("upsert_namespace", self.namespace(namespace)),
            ("remove_namespace", namespace),
        ]
        return self.choice(events)


class Few(RandomCluster):
    """Three nodes, only labels that nodes have, and pods that insist: one event is then likely to matter."""

    names, topologies = NODES[:3], [ZONE, ZONE, HOSTNAME, RACK]

    def constraint(self) -> TopologySpreadConstraint:
        selector = WEB if self.random() < 0.7 else self.choice(SELECTORS)
        skew = self.choice([1, 1, 1, 2])
        return msgspec.structs.replace(
            super().constraint(), when_unsatisfiable="DoNotSchedule", label_selector=selector, max_skew=skew
        )

    def start(self) -> list[tuple[Any, ...]]:
        service = Service(
            metadata=ObjectMeta(name="all", namespace="default"), spec=ServiceSpec(selector={"app": "web"})
        )
        return [("group_seen", service), *super().start()]
