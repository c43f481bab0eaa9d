"""What may help a pod that InterPodAffinity refused: the pods and nodes that its terms, or others' terms, speak of.

Each function answers for one event and one waiting pod, and says no only when the event cannot have made a difference.
Upstream's hints, and more where these lose a pod until the flush. They forget that namespaces can be selected by their
labels; that the last pod to join may leave, and the pod may then be the first itself; that one of several terms may no
longer be broken; and what pods elsewhere have against this one, when it is a node that comes, goes or moves.
"""

from typing import Any

from kubenexus.api.core import Pod
from kubenexus.api.selectors import EVERYTHING
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.state.affinity_terms import AffinityKind, AffinityTerm, PodSelectorTerm, affinity_terms


def neighbour_changed(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """A pod came, left or has other labels: one to join, one to avoid, or one that would not have this pod near."""
    old, new = event.old, event.new
    wanted = _of(pod, AffinityKind.REQUIRED_AFFINITY)
    if wanted and _all(wanted, old) != _all(wanted, new) and (_all(wanted, new) or _all(wanted, pod)):
        return True
    if old is None:
        return False
    if any(
        _selects(each.term, old) and not _selects(each.term, new)
        for each in _of(pod, AffinityKind.REQUIRED_ANTI_AFFINITY)
    ):
        return True
    kept = _of(new, AffinityKind.REQUIRED_ANTI_AFFINITY)
    return any(_selects(each.term, pod) and each not in kept for each in _of(old, AffinityKind.REQUIRED_ANTI_AFFINITY))


def node_came(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """A new node, unless the pod joins others by labels of which this node has none."""
    wanted = _of(pod, AffinityKind.REQUIRED_AFFINITY)
    return not wanted or any(each.topology in event.new.metadata.labels for each in wanted)


def _of(pod: Pod | None, kind: AffinityKind) -> list[AffinityTerm]:
    return [] if pod is None else [each for each in affinity_terms(pod) if each.kind is kind]


def _all(wanted: list[AffinityTerm], pod: Pod | None) -> bool:
    return all(_selects(each.term, pod) for each in wanted)


def _selects(term: PodSelectorTerm, pod: Pod | None) -> bool:
    """Whether the term means this pod. What labels a namespace has is not known here: they may be the right ones."""
    if pod is None or not term.selector.matches(pod.metadata.labels):
        return False
    perhaps = bool(term.namespace_selector.requirements) or term.namespace_selector == EVERYTHING
    return perhaps or pod.metadata.namespace in term.namespaces
