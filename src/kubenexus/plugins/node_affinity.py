"""NodeAffinity: where a pod must run (`nodeSelector`, required affinity) and where it would like to.

`addedAffinity` in the plugin's arguments is required of, and preferred for, every pod of the profile.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from kubenexus.api import core
from kubenexus.api.core import Node, Pod
from kubenexus.api.node_selectors import (
    Preference,
    RequiredTerms,
    Term,
    exactly,
    matches,
    named,
    preferred,
    required,
)
from kubenexus.base.errors import Malformed
from kubenexus.base.numbers import BoolColumn, IntColumn
from kubenexus.framework.events import Action, Event, Resource, Wake
from kubenexus.framework.job import JobView
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import UP, Coded, Depends
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict, shareable
from kubenexus.plugins.terms import where
from kubenexus.state.view import Nodes

_FEW = 8  # preferences whose combinations are counted out beforehand
_encode = msgspec.json.Encoder(order="deterministic").encode


class NodeAffinity:
    name = "NodeAffinity"
    reads = ("spec.nodeSelector", "spec.affinity.nodeAffinity")
    depends = Depends.NODE
    normalize = UP
    ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity", Code.UNRESOLVABLE)
    MISMATCH = Reason("node(s) didn't match Pod's node affinity/selector", Code.UNRESOLVABLE)
    REFUSING = Reason("node(s) recently refused pods like this one", Code.UNRESOLVABLE)
    CONFLICT = Verdict(Code.UNRESOLVABLE, ("pod affinity terms conflict",))

    def __init__(self, args: Mapping[str, Any]) -> None:
        added = msgspec.convert(args.get("addedAffinity") or {}, core.NodeAffinity)
        self._added = None if added.required is None else required(added.required)
        if self._added is not None and self._added.problem:
            raise Malformed(self._added.problem, field="addedAffinity.requiredDuringSchedulingIgnoredDuringExecution")
        self._added_preferences = preferred(added.preferred)

    def pins(self, pod: Pod) -> frozenset[str] | Verdict | None:
        wanted = _required(pod)
        names = None if wanted is None else named(wanted)
        return self.CONFLICT if names is not None and not names else names

    def prepare(self, pod: PodClass, nodes: Nodes) -> Skip | None:
        concerned = self._added is not None or pod.spec.node_selector or _required(pod.pod) is not None
        return None if concerned else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        asked = (self, "filter", pod.once(self.name, lambda: _words(pod)))
        enforced, unfit, refusing = nodes.remembered(asked, lambda nodes: self._refused(pod, nodes))
        if enforced is not None:
            verdict.reject_some(enforced, self.ENFORCED)
        if unfit is not None:
            verdict.reject_some(unfit, self.MISMATCH)
        if refusing is not None:
            verdict.reject_some(refusing, self.REFUSING)

    def _refused(self, pod: PodClass, nodes: Nodes) -> tuple[Any, Any, Any]:
        """By the configuration, by the pod, and by a kubelet: only the first of them is reported, as upstream stops
        there."""
        enforced = None if self._added is None else ~_any(self._added.terms, nodes)
        fits = where(exactly(pod.spec.node_selector), nodes)
        terms = pod.once(self.name + " terms", lambda: _terms(pod))
        refusing = None
        if terms is not None:
            admitted = _any(terms.terms, nodes)
            wanted = tuple(term.wanted for term in terms.terms)
            if wanted != terms.terms:
                fits &= _any(wanted, nodes)
                refusing = fits & ~admitted if enforced is None else fits & ~admitted & ~enforced
            else:
                fits &= admitted
        refused = None if refusing is None else shareable(refusing)
        if enforced is None:
            return None, shareable(~fits), refused
        return shareable(enforced), shareable(~(fits | enforced)), refused

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | Coded | int | Skip | Verdict:
        if not self._added_preferences and not _prefers(pod):
            return SKIP
        asked = (self, "score", pod.once(self.name, lambda: _words(pod)))
        points: IntColumn | Coded | Verdict = nodes.remembered(asked, lambda nodes: self._points(pod, nodes))
        if isinstance(points, Verdict):
            return points
        return points if isinstance(points, Coded) else points.copy()

    def _points(self, pod: PodClass, nodes: Nodes) -> IntColumn | Coded | Verdict:
        try:
            wishes = pod.once(self.name + " wishes", lambda: _wishes(pod))
        except Malformed as problem:
            return Verdict(Code.ERROR, (problem.problem,))
        preferences = (*self._added_preferences, *wishes)
        if nodes.rows is None and nodes.width and len(preferences) <= _FEW:
            return _by_wishes(preferences, nodes)
        total: IntColumn = np.zeros(nodes.width, np.int64)
        for preference in preferences:
            total += preference.weight * where(preference.term, nodes)
        return np.maximum(total, 0)  # the API server admits no negative weight; one that got in must not win

    def _admits(self, pod: Pod, event: Event) -> bool:
        """A node that the pod may use now and, if it is not new, could not before."""
        new, old = event.new, event.old
        if self._added is not None and not self._added.matches(new.metadata.name, new.metadata.labels):
            return False
        return _selects(pod, new) and (old is None or not _selects(pod, old))

    wakes = (Wake(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, _admits),)


def _selects(pod: Pod, node: Node) -> bool:
    """Whether this one node is what the pod must run on. Raises Malformed if only terms nobody can read could say."""
    name, labels = node.metadata.name, node.metadata.labels
    if not matches(exactly(pod.spec.node_selector), name, labels):
        return False
    wanted = _required(pod)
    if wanted is None:
        return True
    terms = required(wanted)
    if not terms.matches(name, labels) and terms.problem:
        raise Malformed(terms.problem)
    return terms.matches(name, labels)


def _required(pod: Pod) -> core.NodeSelector | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def _terms(pod: PodClass) -> RequiredTerms | None:
    """The pod's required terms. In a class whose pins were lifted out, a term that held nothing else holds always."""
    wanted = _required(pod.pod)
    if wanted is None:
        return None
    terms = required(wanted)
    if pod.pinned and any(not term.match_expressions for term in wanted.node_selector_terms):
        return RequiredTerms(terms=(Term(),))
    return terms


def _words(pod: PodClass) -> bytes:
    """All that the answers depend on, in a form that can be compared."""
    affinity = pod.spec.affinity
    return _encode((pod.spec.node_selector, affinity and affinity.node_affinity, pod.pinned))


def _prefers(pod: PodClass) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and affinity.node_affinity is not None and bool(affinity.node_affinity.preferred)


def _wishes(pod: PodClass) -> tuple[Preference, ...]:
    """Those of the pod's preferences that count."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return preferred(affinity.preferred) if affinity else ()


def _by_wishes(preferences: tuple[Preference, ...], nodes: Nodes) -> Coded:
    """A bit of the code for each preference that a node meets, and the points of every combination."""
    codes, values = np.zeros(nodes.width, np.intp), np.zeros(1, np.int64)
    for i, preference in enumerate(preferences):
        codes |= where(preference.term, nodes).astype(np.intp) << i
        values = np.concatenate([values, values + preference.weight])
    return Coded(codes, np.maximum(values, 0))


def _any(terms: Iterable[Term], nodes: Nodes) -> BoolColumn:
    found: BoolColumn = np.zeros(nodes.width, np.bool_)
    for term in terms:
        found |= where(term, nodes)
    return found
