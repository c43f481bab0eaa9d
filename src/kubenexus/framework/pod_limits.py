"""How much work a pod may be: what its spec asks to be looked at is counted before any of it is done.

An object of a megabyte and a half holds thousands of constraints, terms or resources, and each of them is looked at on
every node. One thread decides for all tenants, so what one pod may cost is bounded: not by a clock, which `decide` does
not have, but by *row operations*. One of them is about a nanosecond: what NumPy takes to look at one row for one
constraint. A pod beyond the budget is refused as a whole, with a reason that names what it has too many of; all others
go on.

The weights are measured (`python -m bench --only longest`). They are generous, and what every ordinary pod has is free:
no pod that anybody would write by hand comes near.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from kubenexus.api.core import Affinity, NodeAffinity, NodeSelectorTerm, Pod, PodAffinity, PodAffinityTerm, PodSpec
from kubenexus.api.selectors import LabelSelector
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.state.nodes import NodeColumns

POD_LIMITS: Final = "PodLimits"  # who refused, in a diagnosis
# The pod itself may become smaller, and fewer nodes are less work. Nothing else helps.
EVENTS_TO_REGISTER: Final = {
    POD_LIMITS: (
        ClusterEventWithHint(EventResource.NODE, ActionType.DELETE),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE),
    )
}
BUDGET: Final = 50_000_000  # row operations: 50 ms, half of what a turn of the loop may take
PER_ROW: Final = 500  # row operations that count as much as asking all plugins about one row again
_SHARES: Final = 3  # of the work, that are named when it is too much together


class EntryCost(msgspec.Struct, frozen=True, eq=False):
    """What one entry costs in row operations: in itself, and for each node, pod, namespace or set of taints there is.
    `free` of them cost nothing."""

    what: str
    fixed: int
    nodes: int = 0
    pods: int = 0
    namespaces: int = 0
    taints: int = 0
    free: int = 16


class ClusterScale(NamedTuple):
    """The cluster that a pod is looked at on. All but the nodes are rounded up to a power of two."""

    nodes: int
    pods: int
    namespaces: int
    taints: int

    def cost(self, weight: EntryCost) -> int:
        """Of one entry."""
        per_node, per_pod = self.nodes * weight.nodes, self.pods * weight.pods
        return weight.fixed + per_node + per_pod + self.namespaces * weight.namespaces + self.taints * weight.taints


SPREAD: Final = EntryCost("topology spread constraints", 60_000, nodes=70, pods=8)
TERMS: Final = EntryCost("pod affinity terms", 60_000, nodes=40, pods=8, namespaces=300)
POD_REQUIREMENTS: Final = EntryCost("requirements on pod labels", 6_000, pods=3, free=32)
POD_KEYS: Final = EntryCost("keys of pod labels", 4_000, pods=40)
NAMESPACES: Final = EntryCost("namespaces in pod affinity terms", 1_000, free=64)
NODE_TERMS: Final = EntryCost("node affinity terms", 1_500, nodes=8)
NODE_REQUIREMENTS: Final = EntryCost("requirements on node labels", 1_500, nodes=8, free=32)
NODE_KEYS: Final = EntryCost("keys of node labels", 1_000, nodes=200)
VALUES: Final = EntryCost("values in selectors", 1_500, free=256)
TOLERATIONS: Final = EntryCost("tolerations", 1_000, taints=600)
CONTAINERS: Final = EntryCost("containers", 4_500, nodes=2, free=32)
STATUSES: Final = EntryCost("container statuses", 10_000, free=32)
RESOURCES: Final = EntryCost("different resources", 40_000, nodes=30)
PORTS: Final = EntryCost("host ports", 4_000, nodes=2, free=64)
CLAIMS: Final = EntryCost("volumes that are claimed or attached", 60_000, nodes=20)

Counts = Mapping[EntryCost, int]


def cluster_scale(columns: NodeColumns) -> ClusterScale:
    pods = columns.pods
    return ClusterScale(columns.count, _power(pods.count), _power(pods.namespaces), _power(columns.taints.distinct))


def count_entries(pod: Pod, claims: int = 0) -> Counts:
    """How many of everything a pod has that costs something to look at, from the fields that its class is made of, and
    from how many claims and disks it mounts. Takes time in proportion to its length."""
    spec, affinity = pod.spec, pod.spec.affinity
    found = {
        CLAIMS: claims,
        TOLERATIONS: len(spec.tolerations),
        STATUSES: len(pod.status.container_statuses) + len(pod.status.init_container_statuses),
        **_containers(spec),
    }
    if affinity is not None or spec.node_selector:
        found.update(_nodes_selected(spec.node_selector, None if affinity is None else affinity.node_affinity))
    if affinity is not None or spec.topology_spread_constraints:
        _add(found, _pods_selected(spec, affinity))
    return found


def pod_work(counts: Counts, columns: NodeColumns) -> dict[EntryCost, int]:
    """What a pod costs on this cluster, in row operations, besides what every ordinary one does: nothing, mostly."""
    beyond = {weight: number - weight.free for weight, number in counts.items() if number > weight.free}
    if not beyond:
        return beyond
    scale = cluster_scale(columns)
    return {weight: scale.cost(weight) * number for weight, number in beyond.items()}


def limit_exceeded(counts: Counts, work: Mapping[EntryCost, int], nodes: int) -> str:
    """Why a pod is too much work on so many nodes; "" if it is not."""
    if sum(work.values()) <= BUDGET:
        return ""
    dear = sorted(work, key=lambda weight: -work[weight])
    first = next((weight for weight, spent in work.items() if spent > BUDGET), None)
    if first is not None:
        most = first.free + BUDGET * (counts[first] - first.free) // work[first]
        return f"pod has {counts[first]} {first.what}; at {nodes} nodes at most {most} can be evaluated"
    named = ", ".join(f"{counts[weight]} {weight.what}" for weight in dear[:_SHARES])
    return f"pod has {named}; together they are too many to be evaluated at {nodes} nodes"


# --- counting ---------------------------------------------------------------------------------------------------------


def _power(number: int) -> int:
    """The next power of two: so that a pod that more is placed hardly ever changes what may be asked."""
    return 1 << max(number - 1, 0).bit_length()


def _add(found: dict[EntryCost, int], more: Counts) -> None:
    for weight, number in more.items():
        found[weight] = found.get(weight, 0) + number


def _containers(spec: PodSpec) -> dict[EntryCost, int]:
    containers = (*spec.containers, *spec.init_containers)
    resources: set[str] = set(spec.overhead or ())
    ports = 0
    for container in containers:
        ports += len(container.ports)
        resources.update(container.resources.requests or ())
    if spec.resources is not None:
        resources.update(spec.resources.requests or ())
    every = len(containers) + len(spec.ephemeral_containers)
    return {CONTAINERS: every, RESOURCES: len(resources), PORTS: ports}


def _nodes_selected(selector: Mapping[str, str], affinity: NodeAffinity | None) -> Counts:
    terms: list[NodeSelectorTerm] = []
    if affinity is not None:
        terms = [wish.preference for wish in affinity.preferred]
        terms += affinity.required.node_selector_terms if affinity.required is not None else ()
    keys, requirements, values = set(selector), len(selector), 0
    for term in terms:
        requirements += len(term.match_expressions) + len(term.match_fields)
        for wanted in (*term.match_expressions, *term.match_fields):
            keys.add(wanted.key)
            values += len(wanted.values)
    return {NODE_TERMS: len(terms), NODE_REQUIREMENTS: requirements, NODE_KEYS: len(keys), VALUES: values}


def _pods_selected(spec: PodSpec, affinity: Affinity | None) -> Counts:
    terms = [] if affinity is None else [*terms_of(affinity.pod_affinity), *terms_of(affinity.pod_anti_affinity)]
    constraints = spec.topology_spread_constraints
    asked = [term.label_selector for term in terms] + [each.label_selector for each in constraints]
    keys: set[str] = {key for each in constraints for key in each.match_label_keys}
    requirements, values = len(keys), 0
    for selector in (each for each in asked if each is not None):
        requirements += len(selector.match_labels) + len(selector.match_expressions)
        values += _values(selector)
        keys |= selector.keys()
    over = [term.namespace_selector for term in terms if term.namespace_selector is not None]
    topologies = {term.topology_key for term in terms} | {each.topology_key for each in constraints}
    return {
        SPREAD: len(constraints),
        TERMS: len(terms),
        POD_REQUIREMENTS: requirements + sum(len(each.match_labels) + len(each.match_expressions) for each in over),
        POD_KEYS: len(keys),
        NODE_KEYS: len(topologies),
        NAMESPACES: sum(len(term.namespaces) for term in terms),
        VALUES: values + sum(_values(each) for each in over),
    }


def terms_of(affinity: PodAffinity | None) -> Iterable[PodAffinityTerm]:
    if affinity is None:
        return ()
    return (*affinity.required, *(wish.pod_affinity_term for wish in affinity.preferred))


def _values(selector: LabelSelector) -> int:
    return sum(len(wanted.values) for wanted in selector.match_expressions)
