"""NodeAffinity: the nodes that a pod requires (`nodeSelector`, required affinity) and those that it prefers.

`addedAffinity` in the plugin's arguments is required of, and preferred for, every pod of the profile.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from kubenexus.api import core
from kubenexus.api.core import Node, Pod
from kubenexus.api.node_selectors import (
    NodeTerm,
    Preference,
    RequiredTerms,
    matches,
    node_selector_term,
    parse_preferred,
    parse_required,
    required_node_names,
)
from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.base.errors import Malformed
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import HIGHER_IS_BETTER, CodedScores, Depends
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict, shared_mask
from kubenexus.plugins.label_rows import rows_matching
from kubenexus.state.view import Nodes

_FEW_PREFERENCES = 8  # preferences whose combinations are computed beforehand
_encode = msgspec.json.Encoder(order="deterministic").encode


class NodeAffinity:
    name = "NodeAffinity"
    reads = ("spec.nodeSelector", "spec.affinity.nodeAffinity")
    depends = Depends.NODE
    normalize = HIGHER_IS_BETTER
    ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity", Code.UNRESOLVABLE)
    MISMATCH = Reason("node(s) didn't match Pod's node affinity/selector", Code.UNRESOLVABLE)
    REFUSING = Reason("node(s) recently refused pods like this one", Code.UNRESOLVABLE)
    CONFLICT = Verdict(Code.UNRESOLVABLE, ("pod affinity terms conflict",))

    def __init__(self, args: Mapping[str, Any]) -> None:
        added = msgspec.convert(args.get("addedAffinity") or {}, core.NodeAffinity)
        self._added = None if added.required is None else parse_required(added.required)
        if self._added is not None and self._added.problem:
            raise Malformed(self._added.problem, field="addedAffinity.requiredDuringSchedulingIgnoredDuringExecution")
        self._added_preferences = parse_preferred(added.preferred)

    def node_names(self, pod: Pod) -> frozenset[str] | Verdict | None:
        wanted = _required(pod)
        names = None if wanted is None else required_node_names(wanted)
        return self.CONFLICT if names is not None and not names else names

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | None:
        concerned = self._added is not None or pod.spec.node_selector or _required(pod.pod) is not None
        return None if concerned else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        asked = (self, "filter", pod.cached(self.name, lambda: _words(pod)))
        enforced, unfit, refusing = nodes.cached_until_node_change(asked, lambda nodes: self._refused(pod, nodes))
        if enforced is not None:
            verdict.reject_shared(enforced, self.ENFORCED)
        if unfit is not None:
            verdict.reject_shared(unfit, self.MISMATCH)
        if refusing is not None:
            verdict.reject_shared(refusing, self.REFUSING)

    def _refused(self, pod: PodClass, nodes: Nodes) -> tuple[Any, Any, Any]:
        """Returns the rows rejected by the configuration, by the pod, and because a kubelet refused its like. Each row
        is in the first of these only, as upstream stops there."""
        enforced = None if self._added is None else ~_any(self._added.terms, nodes)
        fits = rows_matching(node_selector_term(pod.spec.node_selector), nodes)
        terms = pod.cached(self.name + " terms", lambda: _terms(pod))
        refusing = None
        if terms is not None:
            admitted = _any(terms.terms, nodes)
            wanted = tuple(term.wanted for term in terms.terms)
            if wanted != terms.terms:
                fits &= _any(wanted, nodes)
                refusing = fits & ~admitted if enforced is None else fits & ~admitted & ~enforced
            else:
                fits &= admitted
        refused = None if refusing is None else shared_mask(refusing)
        if enforced is None:
            return None, shared_mask(~fits), refused
        return shared_mask(enforced), shared_mask(~(fits | enforced)), refused

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | CodedScores | int | Skip | Verdict:
        if not self._added_preferences and not _prefers(pod):
            return SKIP
        asked = (self, "score", pod.cached(self.name, lambda: _words(pod)))
        points: IntColumn | CodedScores | Verdict = nodes.cached_until_node_change(
            asked, lambda nodes: self._points(pod, nodes)
        )
        if isinstance(points, Verdict):
            return points
        return points if isinstance(points, CodedScores) else points.copy()

    def _points(self, pod: PodClass, nodes: Nodes) -> IntColumn | CodedScores | Verdict:
        try:
            wishes = pod.cached(self.name + " wishes", lambda: _wishes(pod))
        except Malformed as problem:
            return Verdict(Code.ERROR, (problem.problem,))
        preferences = (*self._added_preferences, *wishes)
        if nodes.rows is None and nodes.width and len(preferences) <= _FEW_PREFERENCES:
            return _by_wishes(preferences, nodes)
        total: IntColumn = np.zeros(nodes.width, np.int64)
        for preference in preferences:
            total += preference.weight * rows_matching(preference.term, nodes)
        return np.maximum(total, 0)  # the API server admits no negative weight; one that got in must not win

    def _admits(self, pod: Pod, event: ClusterEvent) -> bool:
        """Returns whether the pod may use the node now and, if the node is not new, could not before."""
        new, old = event.new, event.old
        if self._added is not None and not self._added.matches(new.metadata.name, new.metadata.labels):
            return False
        return _selects(pod, new) and (old is None or not _selects(pod, old))

    events_to_register = (
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL, _admits),
    )


def _selects(pod: Pod, node: Node) -> bool:
    """Returns whether the pod's required terms match this node. Raises Malformed if none matches and some are
    invalid."""
    name, labels = node.metadata.name, node.metadata.labels
    if not matches(node_selector_term(pod.spec.node_selector), name, labels):
        return False
    wanted = _required(pod)
    if wanted is None:
        return True
    terms = parse_required(wanted)
    if not terms.matches(name, labels) and terms.problem:
        raise Malformed(terms.problem)
    return terms.matches(name, labels)


def _required(pod: Pod) -> core.NodeSelector | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def _terms(pod: PodClass) -> RequiredTerms | None:
    """Returns the pod's required terms. In a class without its pins, a term that had only pins always holds."""
    wanted = _required(pod.pod)
    if wanted is None:
        return None
    terms = parse_required(wanted)
    if pod.pinned and any(not term.match_expressions for term in wanted.node_selector_terms):
        return RequiredTerms(terms=(NodeTerm(),))
    return terms


def _words(pod: PodClass) -> bytes:
    """Returns all that the results depend on, in a form that can be compared."""
    affinity = pod.spec.affinity
    return _encode((pod.spec.node_selector, affinity and affinity.node_affinity, pod.pinned))


def _prefers(pod: PodClass) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and affinity.node_affinity is not None and bool(affinity.node_affinity.preferred)


def _wishes(pod: PodClass) -> tuple[Preference, ...]:
    """Returns the pod's preferences that count."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return parse_preferred(affinity.preferred) if affinity else ()


def _by_wishes(preferences: tuple[Preference, ...], nodes: Nodes) -> CodedScores:
    """Returns scores by code: a bit for each preference that a node meets, and the points of every combination."""
    codes, values = np.zeros(nodes.width, np.intp), np.zeros(1, np.int64)
    for i, preference in enumerate(preferences):
        codes |= rows_matching(preference.term, nodes).astype(np.intp) << i
        values = np.concatenate([values, values + preference.weight])
    return CodedScores(codes, np.maximum(values, 0))


def _any(terms: Iterable[NodeTerm], nodes: Nodes) -> BoolColumn:
    found: BoolColumn = np.zeros(nodes.width, np.bool_)
    for term in terms:
        found |= rows_matching(term, nodes)
    return found
