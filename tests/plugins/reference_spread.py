"""PodTopologySpread a second time, for one pod and one node: plain loops, written from Kubernetes' documentation and,
where that is silent, from what kube-scheduler does."""

import math
from collections.abc import Mapping, Sequence

from kubenexus.api.core import Node, Pod, TopologySpreadConstraint
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement
from kubenexus.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubenexus.framework.verdict import Code
from kubenexus.testing.builders import HOSTNAME, ZONE
from kubenexus.testing.harness import NodeInfo, ReferenceCluster
from tests.plugins import reference
from tests.plugins.checked_cluster import PluginCluster
from tests.plugins.reference_affinity import Refusal, holds, selects

UNLABELLED = ("node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE)
SKEWED = ("node(s) didn't match pod topology spread constraints", Code.UNSCHEDULABLE)
SYSTEM = [
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),
]
Wanted = list[LabelSelectorRequirement] | None  # what a pod's labels must be to count; None: no pod counts


class ReferenceSpread:
    """`defaults` are the profile's constraints; without them the system's."""

    def __init__(self, defaults: Sequence[TopologySpreadConstraint] | None = None) -> None:
        self.defaults = SYSTEM if defaults is None else defaults
        self.system = defaults is None

    # --- may it run there? ------------------------------------------------------------------------------------------

    def refusal(self, pod: Pod, node: Node, cluster: PluginCluster) -> Refusal | None:
        """The first constraint that the node breaks."""
        hard = self._constraints(pod, cluster, "DoNotSchedule")
        keys = {constraint.topology_key for constraint, _ in hard}
        for constraint, wanted in hard:
            value = node.metadata.labels.get(constraint.topology_key)
            if value is None:
                return UNLABELLED
            counts: dict[str, int] = {}
            for other in cluster.nodes.values():
                if keys <= other.metadata.labels.keys() and counts_for(constraint, pod, other):
                    domain = other.metadata.labels[constraint.topology_key]
                    counts[domain] = counts.get(domain, 0) + matching(wanted, pod, other, cluster)
            fewest = min(counts.values(), default=0)
            if len(counts) < (1 if constraint.min_domains is None else constraint.min_domains):
                fewest = 0
            itself = wanted is not None and all(holds(each, pod.metadata.labels) for each in wanted)
            if counts.get(value, 0) + itself - fewest > constraint.max_skew:
                return SKEWED
        return None

    # --- how good is it? --------------------------------------------------------------------------------------------

    def scores(self, pod: Pod, feasible: list[Node], cluster: PluginCluster) -> dict[str, int] | None:
        """-1 for a node that lacks a label it should have: such nodes take no part."""
        soft = self._constraints(pod, cluster, "ScheduleAnyway")
        if not soft:
            return None
        needed = {constraint.topology_key for constraint, _ in soft} if self._insists(pod) else set()
        scored = [node for node in feasible if needed <= node.metadata.labels.keys()]
        found = {}
        for node in feasible:
            points = 0.0
            for constraint, wanted in soft:
                key = constraint.topology_key
                if key in node.metadata.labels:
                    domains = len(scored) if key == HOSTNAME else len({n.metadata.labels.get(key, "") for n in scored})
                    counted = self._counted(constraint, wanted, needed, pod, node, cluster)
                    points += counted * math.log(domains + 2) + (constraint.max_skew - 1)
            found[node.metadata.name] = math.floor(points + 0.5) if node in scored else -1
        return found

    def _counted(
        self,
        constraint: TopologySpreadConstraint,
        wanted: Wanted,
        needed: set[str],
        pod: Pod,
        node: Node,
        cluster: PluginCluster,
    ) -> int:
        """Pods in the node's domain; by hostname those on the node itself, whatever the policies say."""
        if constraint.topology_key == HOSTNAME:
            return matching(wanted, pod, node, cluster)
        value, count = node.metadata.labels[constraint.topology_key], 0
        for other in cluster.nodes.values():
            inside = needed <= other.metadata.labels.keys() and counts_for(constraint, pod, other)
            if inside and other.metadata.labels.get(constraint.topology_key, "") == value:
                count += matching(wanted, pod, other, cluster)
        return count

    def normalized(self, raw: Mapping[str, int]) -> dict[str, int]:
        """The fewer the better."""
        scored = [points for points in raw.values() if points != -1]
        least, most = min(scored, default=0), max(scored, default=0)
        good = {name: 100 * (most + least - points) // most if most else 100 for name, points in raw.items()}
        return {name: 0 if raw[name] == -1 else points for name, points in good.items()}

    # --- which constraints, and which pods count ----------------------------------------------------------------------

    def _insists(self, pod: Pod) -> bool:
        """Whether a node must have all labels to be scored; the system's constraints do without."""
        return bool(pod.spec.topology_spread_constraints) or not self.system

    def _constraints(
        self, pod: Pod, cluster: PluginCluster, kind: str
    ) -> list[tuple[TopologySpreadConstraint, Wanted]]:
        own = pod.spec.topology_spread_constraints
        if own:
            return [(each, own_pods(each, pod)) for each in own if each.when_unsatisfiable == kind]
        wanted = belonging(pod, cluster)
        return [(each, wanted) for each in self.defaults if each.when_unsatisfiable == kind and wanted]


def own_pods(constraint: TopologySpreadConstraint, pod: Pod) -> Wanted:
    labels, selector = pod.metadata.labels, constraint.label_selector
    if selector is None:
        return None
    return written(selector) + [exactly(key, labels[key]) for key in constraint.match_label_keys if key in labels]


def belonging(pod: Pod, cluster: PluginCluster) -> list[LabelSelectorRequirement]:
    """What the pod's services and its controller select by, together."""
    meta = pod.metadata
    merged: dict[str, str] = {}
    for (_, namespace, _), group in cluster.groups.items():
        if isinstance(group, Service) and namespace == meta.namespace:
            chosen = selects(LabelSelector(match_labels=group.spec.selector), meta.labels)
            merged.update(group.spec.selector if chosen else {})
    more: list[LabelSelectorRequirement] = []
    for owner in meta.owner_references:
        group_of = cluster.groups.get((owner.kind, meta.namespace, owner.name))
        if not owner.controller:
            continue
        if isinstance(group_of, ReplicationController) and owner.api_version == "v1":
            merged.update(group_of.spec.selector)
        if isinstance(group_of, (ReplicaSet, StatefulSet)) and owner.api_version == "apps/v1":
            more = written(group_of.spec.selector or LabelSelector())
    return [exactly(key, value) for key, value in merged.items()] + more


def written(selector: LabelSelector) -> list[LabelSelectorRequirement]:
    return [exactly(key, value) for key, value in selector.match_labels.items()] + selector.match_expressions


def exactly(key: str, value: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator="In", values=[value])


def matching(wanted: Wanted, pod: Pod, node: Node, cluster: PluginCluster) -> int:
    """Pods of the same namespace on a node that count. Those that are being deleted do not; and where nothing at all is
    asked of them, only those do that are tried there because they are nominated."""
    there = [other.metadata for other in cluster.pods_on(node.metadata.name)]
    mates = [meta for meta in there if meta.namespace == pod.metadata.namespace and not meta.deletion_timestamp]
    if wanted == []:
        mates = [meta for meta in mates if meta.name in cluster.tried]
    return 0 if wanted is None else sum(all(holds(each, meta.labels) for each in wanted) for meta in mates)


def counts_for(constraint: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    """Whether the node is one of those the constraint looks at."""
    info = NodeInfo(node, (), ReferenceCluster())
    if constraint.node_affinity_policy == "Honor" and reference.NodeAffinity().filter_one(pod, info):
        return False
    return constraint.node_taints_policy != "Honor" or not reference.TaintToleration().filter_one(pod, info)
