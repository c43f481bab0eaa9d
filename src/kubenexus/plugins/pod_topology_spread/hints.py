"""What may help a pod that PodTopologySpread refused: a pod that counts, a domain that comes or goes, or other wishes.

Each function answers for one event and one waiting pod, and says no only when the event cannot have made a difference.
Upstream's hints, and more where these lose a pod until the flush: a pod that is being deleted no longer counts, a node
may leave its domain because it is no longer one the pod could use, and `matchLabelKeys` may select other pods now.

Where the constraints are the profile's, services and controllers say which pods count. They are not known here, so any
pod of the namespace may be one.
"""

from collections.abc import Sequence
from typing import Any

from kubenexus.api.core import Node, Pod, TopologySpreadConstraint
from kubenexus.api.node_selectors import matches, node_selector_term, parse_required
from kubenexus.api.selectors import Selector, compile_selector
from kubenexus.api.tolerations import untolerated
from kubenexus.base.identity_memo import IdentityMemo
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, parse_constraint

Constraints = Sequence[TopologySpreadConstraint]

_MAX_SELECTORS_KEPT = 1 << 15  # parsed selectors that are kept for the next question
_parsed = IdentityMemo[Sequence[Selector]](_MAX_SELECTORS_KEPT)


def pod_counted(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """A pod counts in some domain that did not before, or no longer does."""
    before, after = _shown(pod, event.old), _shown(pod, event.new)
    if before == after:  # as with most of what is heard about pods that run
        return False
    return not pod.spec.topology_spread_constraints or any(
        (before is not None and selector.matches(before)) != (after is not None and selector.matches(after))
        for selector in _selectors(pod)
    )


def _selectors(pod: Pod) -> Sequence[Selector]:
    """The selectors of the pod's own hard constraints, parsed once for each pod object."""
    known = _parsed.get(pod)
    if known is not None:
        return known
    constraints = _hard(pod.spec.topology_spread_constraints)
    selectors = [parse_constraint(each, "", pod.metadata.labels, None).term.selector for each in constraints]
    return _parsed.put(pod, selectors, 1 + len(selectors))


def pod_differs(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """The pod itself tolerates more where taints matter, or has other labels of those that are asked about."""
    old, new, own = event.old, event.new, pod.spec.topology_spread_constraints
    constraints = _hard(own or plugin.defaults)
    honoured = any(each.node_taints_policy == "Honor" for each in constraints)
    if honoured and old.spec.tolerations != new.spec.tolerations:
        return True
    before, after = old.metadata.labels, new.metadata.labels
    keys = {key for each in constraints for key in _asked(each)} if own else {*before, *after}
    return any(before.get(key) != after.get(key) for key in keys)


def node_moved(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """A node is in a domain that it was not in before, or counts there otherwise."""
    constraints = _hard(pod.spec.topology_spread_constraints or plugin.defaults)
    return _role(constraints, pod, event.old) != _role(constraints, pod, event.new)


def _hard(constraints: Constraints) -> list[TopologySpreadConstraint]:
    return [each for each in constraints if each.when_unsatisfiable == DO_NOT_SCHEDULE]


def _asked(constraint: TopologySpreadConstraint) -> set[str]:
    return {*compile_selector(constraint.label_selector).keys, *constraint.match_label_keys}


def _shown(pod: Pod, other: Pod | None) -> dict[str, str] | None:
    """The labels by which another pod may count; None if it cannot."""
    if other is None or other.metadata.deletion_timestamp or other.metadata.namespace != pod.metadata.namespace:
        return None
    return other.metadata.labels


def _role(constraints: Constraints, pod: Pod, node: Node | None) -> list[tuple[str, bool]] | None:
    """A node's domain for each constraint and whether it counts there; None where it is in no domain at all."""
    if node is None or any(each.topology_key not in node.metadata.labels for each in constraints):
        return None
    counts, labels = _counts(constraints, pod, node), node.metadata.labels
    return [(labels[each.topology_key], counted) for each, counted in zip(constraints, counts, strict=True)]


def _counts(constraints: Constraints, pod: Pod, node: Node) -> list[bool]:
    """Whether the node counts, for each constraint. Tolerations and node affinity are asked once for all of them: there
    may be a hundred constraints, and as many terms."""
    kept_out = any(each.node_taints_policy == "Honor" for each in constraints) and not _tolerates(pod, node)
    unwanted = any(each.node_affinity_policy == "Honor" for each in constraints) and not _selects(pod, node)
    return [
        not ((kept_out and each.node_taints_policy == "Honor") or (unwanted and each.node_affinity_policy == "Honor"))
        for each in constraints
    ]


def _tolerates(pod: Pod, node: Node) -> bool:
    return not untolerated(pod.spec.tolerations, node.spec.taints)


def _selects(pod: Pod, node: Node) -> bool:
    name, labels, spec = node.metadata.name, node.metadata.labels, pod.spec
    wanted = spec.affinity and spec.affinity.node_affinity and spec.affinity.node_affinity.required
    return matches(node_selector_term(spec.node_selector), name, labels) and (
        not wanted or parse_required(wanted).matches(name, labels)
    )
