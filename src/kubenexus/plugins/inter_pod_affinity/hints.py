"""What may help a pod that InterPodAffinity refused: the pods and nodes that its terms, or others' terms, speak of.

Each function answers for one event and one waiting pod, and says no only when the event cannot have made a difference.
Upstream's hints, and more where these lose a pod until the flush. They forget that namespaces can be selected by their
labels; that the last pod to join may leave, and the pod may then be the first itself; that one of several terms may no
longer be broken; and what pods elsewhere have against this one, when it is a node that comes, goes or moves.
"""

from typing import Any, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.selectors import EVERYTHING
from kubenexus.base.identity_memo import IdentityMemo
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.state.affinity_terms import AffinityKind, AffinityTerm, PodSelectorTerm, affinity_terms

_MAX_TERMS_KEPT = 1 << 15  # parsed terms that are kept for the next question: about 30 MB


class _RequiredTerms(NamedTuple):
    """The required terms of a pod."""

    affinity: list[AffinityTerm]
    anti_affinity: list[AffinityTerm]


_NO_TERMS = _RequiredTerms([], [])
_parsed = IdentityMemo[_RequiredTerms](_MAX_TERMS_KEPT)


def neighbour_changed(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Whether a pod that came, left or has other labels is one to join, one to avoid, or one that avoids this pod."""
    old, new = event.old, event.new
    wanted, avoided = _required(pod)
    if wanted:
        before, after = _all(wanted, old), _all(wanted, new)
        if before != after and (after or _all(wanted, pod)):
            return True
    if old is None:
        return False
    if any(_selects(each.term, old) and not _selects(each.term, new) for each in avoided):
        return True
    against = [each for each in _required(old).anti_affinity if _selects(each.term, pod)]
    return bool(against) and not set(against).issubset(_required(new).anti_affinity)


def node_came(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Whether a new node may help: not if the pod joins others by labels of which this node has none."""
    wanted = _required(pod).affinity
    return not wanted or any(each.topology in event.new.metadata.labels for each in wanted)


def _required(pod: Pod | None) -> _RequiredTerms:
    """Parsed once for each affinity object: 400 terms take 4.5 ms to parse, and thousands of events are asked about."""
    affinity = None if pod is None else pod.spec.affinity
    if pod is None or affinity is None:
        return _NO_TERMS
    known = _parsed.get(affinity, pod.metadata.namespace)
    if known is not None:
        return known
    terms = affinity_terms(pod)
    required = _RequiredTerms(
        [each for each in terms if each.kind is AffinityKind.REQUIRED_AFFINITY],
        [each for each in terms if each.kind is AffinityKind.REQUIRED_ANTI_AFFINITY],
    )
    return _parsed.put(
        affinity, required, 1 + len(required.affinity) + len(required.anti_affinity), pod.metadata.namespace
    )


def _all(wanted: list[AffinityTerm], pod: Pod | None) -> bool:
    """Whether all terms select the pod. A term that does not becomes the first: it most likely decides about the next
    pod, too, and 400 terms take 0.26 ms."""
    if pod is None:
        return False
    for index, each in enumerate(wanted):
        if not _selects(each.term, pod):
            if index:
                wanted.insert(0, wanted.pop(index))
            return False
    return True


def _selects(term: PodSelectorTerm, pod: Pod | None) -> bool:
    """Whether the term selects this pod. The labels of namespaces are not known here: they may be the right ones."""
    if pod is None or not term.selector.matches(pod.metadata.labels):
        return False
    perhaps = bool(term.namespace_selector.requirements) or term.namespace_selector == EVERYTHING
    return perhaps or pod.metadata.namespace in term.namespaces
