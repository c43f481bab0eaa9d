"""The limit on the work that one pod may cause, counted from its spec before any plugin is called.

An object of 1.5 MB holds thousands of constraints, terms or resources, and plugins evaluate each on every node. One
thread decides for all tenants, so the work for one pod is bounded. `decide` has no clock, so the unit is the *row
operation*: about a nanosecond, the time of NumPy for one constraint on one row. A pod beyond the budget is refused as a
whole, with a reason that names what it has too many of.

The weights are measured (`python -m bench --only longest`). They are generous, and the first entries of each kind are
free: no spec written by hand comes near the limit.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from kubenexus.api.core import Affinity, NodeAffinity, NodeSelectorTerm, Pod, PodAffinity, PodAffinityTerm, PodSpec
from kubenexus.api.selectors import LabelSelector
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.state.nodes import NodeColumns

POD_LIMITS: Final = "PodLimits"  # the plugin name in a diagnosis
# Only a smaller pod or fewer nodes help.
EVENTS_TO_REGISTER: Final = {
    POD_LIMITS: (
        ClusterEventWithHint(EventResource.NODE, ActionType.DELETE),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE),
    )
}
BUDGET: Final = 50_000_000  # row operations: 50 ms, half of what an iteration of the loop may take
PER_ROW: Final = 500  # row operations that cost as much as calling all plugins for one row
# More than the budget allows at any number of nodes. Of more entries than that, the different names are not counted.
_MAX_POD_REQUIREMENTS: Final = 10_000
_MAX_RESOURCES: Final = 2_000
_SHARES: Final = 3  # kinds of entries that a reason names when only their sum is too much


class EntryCost(msgspec.Struct, frozen=True, eq=False):
    """The cost of one entry in row operations: `fixed`, and for each node, pod, namespace or set of taints.

    The first `free` entries cost nothing.
    """

    what: str
    fixed: int
    nodes: int = 0
    pods: int = 0
    namespaces: int = 0
    taints: int = 0
    free: int = 16


class ClusterScale(NamedTuple):
    """The size of the cluster. All numbers but the nodes are rounded up to a power of two."""

    nodes: int
    pods: int
    namespaces: int
    taints: int

    def cost(self, weight: EntryCost) -> int:
        """Returns the row operations for one entry."""
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
    """Returns the number of entries of each kind in the fields of a class. `claims` are the claims and disks it mounts.

    Takes time in proportion to the length of the spec, but for maps of strings no more than for as many entries as can
    be evaluated: a spec has room for 110,000 labels, and a set of those takes 10 ms.
    """
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
    """Returns the row operations for the entries that are not free. Empty for nearly all pods."""
    beyond = {weight: number - weight.free for weight, number in counts.items() if number > weight.free}
    if not beyond:
        return beyond
    scale = cluster_scale(columns)
    return {weight: scale.cost(weight) * number for weight, number in beyond.items()}


def limit_exceeded(counts: Counts, work: Mapping[EntryCost, int], nodes: int) -> str:
    """Returns why a pod is too much work on so many nodes, or ""."""
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
    """Rounds up to a power of two, so that a further pod in the cluster hardly ever changes a limit."""
    return 1 << max(number - 1, 0).bit_length()


def _add(found: dict[EntryCost, int], more: Counts) -> None:
    for weight, number in more.items():
        found[weight] = found.get(weight, 0) + number


def _containers(spec: PodSpec) -> dict[EntryCost, int]:
    containers = (*spec.containers, *spec.init_containers)
    several = [container.resources.requests for container in containers if container.resources.requests]
    if spec.overhead:
        several.append(spec.overhead)
    if spec.resources is not None and spec.resources.requests:
        several.append(spec.resources.requests)
    every = len(containers) + len(spec.ephemeral_containers)
    ports = sum([len(container.ports) for container in containers])
    return {CONTAINERS: every, RESOURCES: _different(several), PORTS: ports}


def _different(several: list[dict[str, Any]]) -> int:
    """Returns how many different names these maps have. If one alone has too many, the others are not read."""
    largest = max(map(len, several), default=0)
    if largest > _MAX_RESOURCES or len(several) < 2:
        return largest
    return len(set().union(*several))


def _nodes_selected(selector: Mapping[str, str], affinity: NodeAffinity | None) -> Counts:
    terms: list[NodeSelectorTerm] = []
    if affinity is not None:
        terms = [wish.preference for wish in affinity.preferred]
        terms += affinity.required.node_selector_terms if affinity.required is not None else ()
    keys, requirements, values = set[str](), len(selector), 0
    for term in terms:
        requirements += len(term.match_expressions) + len(term.match_fields)
        for wanted in (*term.match_expressions, *term.match_fields):
            if wanted.key not in selector:
                keys.add(wanted.key)
            values += len(wanted.values)
    names = len(selector) + len(keys)
    return {NODE_TERMS: len(terms), NODE_REQUIREMENTS: requirements, NODE_KEYS: names, VALUES: values}


def _pods_selected(spec: PodSpec, affinity: Affinity | None) -> Counts:
    terms = [] if affinity is None else [*terms_of(affinity.pod_affinity), *terms_of(affinity.pod_anti_affinity)]
    constraints = spec.topology_spread_constraints
    asked = [term.label_selector for term in terms] + [each.label_selector for each in constraints]
    keys: set[str] = {key for each in constraints for key in each.match_label_keys}
    requirements, values = len(keys), 0
    for selector in asked:  # a pod may have 12,000: 0.5 us each without a call of a function, 1.5 us with three
        if selector is None:
            continue
        labels, expressions = selector.match_labels, selector.match_expressions
        requirements += len(labels) + len(expressions)
        if expressions:
            values += _values(selector)
        if requirements <= _MAX_POD_REQUIREMENTS:
            keys.update(labels)
            if expressions:
                keys.update([wanted.key for wanted in expressions])
    over = [term.namespace_selector for term in terms if term.namespace_selector is not None]
    topologies = {term.topology_key for term in terms} | {each.topology_key for each in constraints}
    return {
        SPREAD: len(constraints),
        TERMS: len(terms),
        POD_REQUIREMENTS: requirements + sum([len(each.match_labels) + len(each.match_expressions) for each in over]),
        POD_KEYS: len(keys),
        NODE_KEYS: len(topologies),
        NAMESPACES: sum([len(term.namespaces) for term in terms]),
        VALUES: values + sum([_values(each) for each in over]),
    }


def terms_of(affinity: PodAffinity | None) -> Iterable[PodAffinityTerm]:
    if affinity is None:
        return ()
    return (*affinity.required, *(wish.pod_affinity_term for wish in affinity.preferred))


def _values(selector: LabelSelector) -> int:
    return sum([len(wanted.values) for wanted in selector.match_expressions])
