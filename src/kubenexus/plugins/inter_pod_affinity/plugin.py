"""InterPodAffinity: places a pod near some pods and away from others, by its own terms and by those of existing pods.

"Near" means on a node with the same value of a topology label as a node that runs such a pod. A `PodCounter` counts the
pods that a term selects by value of the label, and is updated with every pod. A term over all nodes is then one
comparison.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kubenexus.api.core import Affinity, Pod
from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.base.errors import Malformed
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import CodedScores, Depends, custom_normalize
from kubenexus.framework.job import JobView
from kubenexus.framework.member_constraints import MAX_PAIRS, MemberConstraint, MemberRelation
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plugins.inter_pod_affinity import hints
from kubenexus.plugins.inter_pod_affinity.scoring import AffinityScores, WeightedTerm, has_few_domains, scores_by_domain
from kubenexus.state.affinity_terms import AffinityKind, AffinityTerm, affinity_terms, usual_terms
from kubenexus.state.carried_terms import Effect, effect
from kubenexus.state.existing_terms import SelectorValues
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pod_columns import ExistingTerm
from kubenexus.state.pod_counter import PodCounter
from kubenexus.state.topology import domain_codes, domains_of_label
from kubenexus.state.view import Nodes, OneNode

_SIGNS = {AffinityKind.PREFERRED_AFFINITY: 1, AffinityKind.PREFERRED_ANTI_AFFINITY: -1}
_encoder = msgspec.msgpack.Encoder()
_MANY_ROWS = 64  # rows: to filter more than these costs as much as to filter all
_TIES = {
    AffinityKind.REQUIRED_AFFINITY: MemberRelation.AFFINITY,
    AffinityKind.REQUIRED_ANTI_AFFINITY: MemberRelation.ANTI_AFFINITY,
}


def _least_and_most(raw: IntColumn) -> tuple[int, ...]:
    return (raw.item(raw.argmin()), raw.item(raw.argmax())) if len(raw) else (0, 0)


def _stretched(raw: Any, extremes: tuple[int, ...]) -> Any:
    """Maps raw scores between `extremes` to 0..100, in upstream's order of operations."""
    least, most = extremes
    if most == least:
        return raw * 0
    return (100.0 * ((raw - least) / (most - least))).astype(np.int64) if not isinstance(raw, int) else 0


def _few_stretched(raw: list[int]) -> tuple[tuple[int, ...], list[int]]:
    least, most = (min(raw), max(raw)) if raw else (0, 0)
    if most == least:
        return (least, most), [0] * len(raw)
    return (least, most), [int(100.0 * ((points - least) / (most - least))) for points in raw]


class InterPodAffinity:
    name = "InterPodAffinity"
    reads = ("spec.affinity.podAffinity", "spec.affinity.podAntiAffinity")
    depends = Depends.NODE
    supports_one_node = True
    normalize = custom_normalize(_least_and_most, _stretched, few=_few_stretched)
    AFFINITY_NOT_MET = Reason("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE)
    ANTI_AFFINITY_NOT_MET = Reason("node(s) didn't match pod anti-affinity rules", Code.UNSCHEDULABLE)
    EXISTING_ANTI_AFFINITY_NOT_MET = Reason(
        "node(s) didn't satisfy existing pods anti-affinity rules", Code.UNSCHEDULABLE
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        weight = args.get("hardPodAffinityWeight")
        self._hard_weight = 1 if weight is None else int(weight)
        self._own_wishes_only = bool(args.get("ignorePreferredTermsOfExistingPods"))

    # --- pod classes -----------------------------------------------------------------------------------------------

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        """Returns the namespace, the pod's own terms that select the pod itself, by index, and the terms of existing
        pods that select it.

        None for a pod without terms that no existing term selects: no result depends on its labels. If the pod's terms
        are malformed or long (`usual_terms`), the second item is the labels that they name.
        """
        affinity, meta, terms = pod.spec.affinity, pod.metadata, nodes.pods.terms
        said = terms.about(meta.namespace, meta.labels) if terms else ()
        if affinity is None or (affinity.pod_affinity or affinity.pod_anti_affinity) is None:
            return None if said == () else [meta.namespace if isinstance(said, dict) else "", (), said]
        try:
            own = usual_terms(pod)
        except Malformed:  # `pre_filter` reports it
            own = None
        if own is None:
            return [meta.namespace, [_seen_by(affinity, meta.labels), terms.scope(meta.namespace)], said]
        itself = [i for i, each in enumerate(own) if _means(each, pod, nodes)]
        if said and itself and not isinstance(said, dict):
            # Without this the first placed pod of a workload would change the class of its siblings.
            known = {terms.token(own[i]) for i in itself}
            said = tuple([token for token in said if token not in known])
        return [meta.namespace, itself, said]

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        affinity, mark = self._affinity(pod, nodes), nodes.node_changes.mark
        others = affinity.others(nodes)
        if point == "filter":
            flips = tuple([c.presence_version for c in affinity.required]) if affinity.required else ()
            strict = tuple([(id(c), c.presence_version) for _, c in others.strict]) if others.strict else ()
            return mark, flips, strict
        versions = tuple([c.version for c in affinity.preferred]) if affinity.preferred else ()
        return mark, versions, tuple([(id(c), c.version) for c in others.lenient])

    def touched_rows(self, pod: PodClass, nodes: NodeColumns, before: Any, after: Any) -> Any:
        """Returns the rows of the domains that got their first pod or lost their last, or None if they are unknown or
        many. None with required affinity, too: the first selected pod changes the results of all rows."""
        affinity = self._affinity(pod, nodes)
        strict = affinity.others(nodes).strict
        if affinity.joins or before[0] != after[0] or [i for i, _ in before[2]] != [i for i, _ in after[2]]:
            return None
        terms = [*affinity.avoids, *strict]
        flips = [*before[1], *[f for _, f in before[2]]]
        places: set[tuple[str, int]] = set()  # mostly one: pods that avoid each other flip the same domain
        for (topology, counter), seen in zip(terms, flips, strict=True):
            flipped = counter.presence_changes_since(seen)
            if flipped is None:
                return None
            places.update([(topology, row) for row in flipped])
        rows: set[int] = set()
        for topology, row in places:
            neighbours = _neighbours(topology, row, nodes)
            if neighbours is None:
                return None
            rows.update(neighbours)
        return rows

    # --- filter ----------------------------------------------------------------------------------------------------

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        try:
            affinity = self._affinity(pod, nodes.columns)
        except Malformed as problem:
            return Verdict(Code.UNRESOLVABLE, (f"parsing pod: {problem}",))
        if affinity.joins or affinity.avoids:
            return None
        unwelcome = affinity.others(nodes.columns).strict
        return None if any(counter.any_in_domain(topology) for topology, counter in unwelcome) else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        affinity = self._affinity(pod, nodes.columns)
        if isinstance(nodes, OneNode) and not affinity.joins:
            self._filter_one(affinity, nodes, verdict)
            return
        if isinstance(nodes, OneNode):
            nodes = nodes.as_column()
        refused = None
        reasons = (self.AFFINITY_NOT_MET, self.ANTI_AFFINITY_NOT_MET, self.EXISTING_ANTI_AFFINITY_NOT_MET)
        for where, reason in zip(self._refusals(pod, affinity, nodes), reasons, strict=True):
            if where is not None:  # each row is rejected with its first reason only
                verdict.reject(where if refused is None else where & ~refused, reason)
                refused = where if refused is None else refused | where

    def _refusals(self, pod: PodClass, affinity: "_Affinity", nodes: Nodes) -> "_Refusals":
        """Returns the refused rows. Those of all rows are computed once for all classes with the same terms."""
        if nodes.rows is not None:
            return _refusals(affinity, nodes)
        stamp = self.stamp(pod, nodes.columns, "filter")
        if affinity.refusals[0] != stamp:
            affinity.refusals = (stamp, _refusals(affinity, nodes))
        return affinity.refusals[1]

    def _filter_one(self, affinity: "_Affinity", node: OneNode, verdict: NodeVerdict) -> None:
        if any([_there(topology, counter, node) for topology, counter in affinity.avoids]):  # noqa: C419
            verdict.reject(True, self.ANTI_AFFINITY_NOT_MET)
        elif any([_there(topology, counter, node) for topology, counter in affinity.others(node.columns).strict]):  # noqa: C419
            verdict.reject(True, self.EXISTING_ANTI_AFFINITY_NOT_MET)

    # --- score -------------------------------------------------------------------------------------------------------

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | CodedScores | Skip:
        if self.name not in pod.signed:
            return SKIP
        affinity = self._affinity(pod, nodes.columns)
        if self._own_wishes_only and not affinity.own_wishes:
            return SKIP
        wishes, tally = affinity.wishes(nodes.columns)
        if not wishes:
            return SKIP
        return scores_by_domain(wishes, nodes) if tally is None else tally.score(nodes, pod)

    def member_constraints(self, pod: PodClass, peers: Sequence[Pod], nodes: NodeColumns) -> Sequence[MemberConstraint]:
        """Returns a constraint for each required term that selects peers: in different domains, or all in one.

        All in one domain applies only while no selected pod exists: later members then follow the first.
        """
        terms = [c for c in self._affinity(pod, nodes).terms if c.kind in _TIES]
        if len(peers) > 1:
            many = len(terms) * len(peers) > MAX_PAIRS
            tied = many or any(_means(c, peer, nodes) for c in terms for peer in peers)
            return [MemberConstraint(MemberRelation.OTHER, self.name)] if tied else []
        meant = {c: any(_means(c, peer, nodes) for peer in peers) for c in terms}
        joins = [c for c in terms if c.kind is AffinityKind.REQUIRED_AFFINITY]
        first = joins and all(meant[c] for c in joins) and not self._affinity(pod, nodes).anybody
        ties = [c for c in terms if (first if c.kind is AffinityKind.REQUIRED_AFFINITY else meant[c])]
        return [MemberConstraint(_TIES[c.kind], self.name, c.topology) for c in ties]

    def held_bytes(self, pod: PodClass, nodes: NodeColumns) -> int:
        """Returns the size of what is held for the class beyond its signature and its columns."""
        try:
            selected = self._affinity(pod, nodes).selected
        except Malformed:
            return 0
        return 0 if selected is None else selected.nbytes

    def _affinity(self, pod: PodClass, nodes: NodeColumns) -> "_Affinity":
        return pod.cached("InterPodAffinity", lambda: self._shared_affinity(pod, nodes))

    def _shared_affinity(self, pod: PodClass, nodes: NodeColumns) -> "_Affinity":
        affinity, signed = pod.spec.affinity, pod.signed.get(self.name)
        terms = None if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity)
        words = (self.name, self._hard_weight, _encoder.encode((signed, terms)))
        return nodes.shared_while_used(words, lambda: _Affinity(pod, nodes, self._hard_weight))

    events_to_register = (
        ClusterEventWithHint(
            EventResource.ASSIGNED_POD,
            ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE,
            hints.neighbour_changed,
        ),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL),
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD, hints.node_came),
        # No hint: the topology labels of existing anti-affinity terms are unknown here, so any label may matter.
        ClusterEventWithHint(EventResource.NODE, ActionType.DELETE | ActionType.UPDATE_NODE_LABEL),
    )


class _OtherTerms(NamedTuple):
    """Terms of existing pods that select a class: `strict` ones refuse the nodes of a topology's domains, and `lenient`
    ones give points. Each counter is that of one term, or of several together. `wishes` are all terms that give points,
    the class's own included."""

    strict: list[tuple[str, PodCounter]]
    lenient: list[PodCounter]
    wishes: list[WeightedTerm]


_NO_TERMS = _OtherTerms([], [], [])


# Rows refused by the pod's required affinity, by its required anti-affinity, and by that of existing pods. None where
# there is no such term.
_Refusals = tuple[BoolColumn | None, BoolColumn | None, BoolColumn | None]


class _Affinity:
    """The affinity terms of a class with their counters, and the terms of existing pods that select the class.

    Classes share one object if they have the same terms and the same existing terms select them.
    """

    def __init__(self, pod: PodClass, nodes: NodeColumns, hard_weight: int) -> None:
        signed: tuple[str, Sequence[Any], SelectorValues] = pod.signed.get("InterPodAffinity") or ("", (), ())
        self._namespace, itself, said = signed
        self._tokens: Sequence[str] = () if isinstance(said, dict) else said
        self.selected = nodes.pods.selected_terms(self._namespace, said) if isinstance(said, dict) else None
        self._hard_weight = hard_weight
        self._others: tuple[Hashable, _OtherTerms] = (None, _NO_TERMS)
        self.refusals: tuple[Hashable, _Refusals] = (None, (None, None, None))  # with the stamp for which they hold
        self._wishes: tuple[Any, tuple[tuple[WeightedTerm, ...], AffinityScores | None]] = (None, ((), None))
        terms = affinity_terms(pod.pod, self._namespace)  # `pod.pod` has no namespace
        self.terms = terms
        if itself and isinstance(itself[0], dict):
            labels: dict[str, str] = itself[0]
            within, pods = self._namespace, nodes.pods
            self._itself = [c for c in terms if pods.covers(c.term, within) and c.term.selector.matches(labels)]
        else:
            self._itself = [terms[i] for i in itself]
        must = [c for c in terms if c.kind is AffinityKind.REQUIRED_AFFINITY]
        together = nodes.pods.counter(tuple(c.term for c in must)) if must else None
        self.joins = [(c.topology, together) for c in must if together is not None]
        self.avoids = [
            (c.topology, nodes.pods.counter((c.term,))) for c in terms if c.kind is AffinityKind.REQUIRED_ANTI_AFFINITY
        ]
        self.own_wishes: list[WeightedTerm] = [
            (c.topology, c.weight * _SIGNS[c.kind], nodes.pods.counter((c.term,))) for c in terms if c.kind in _SIGNS
        ]
        self.required = [counter for _, counter in (*self.joins, *self.avoids)]
        self.preferred = [counter for _, _, counter in self.own_wishes]
        self.joins_itself = self._is_among(must)

    def _is_among(self, must: Sequence[AffinityTerm]) -> bool:
        """Returns whether all required affinity terms select the pod itself."""
        return bool(must) and all(c in self._itself for c in must)

    def others(self, nodes: NodeColumns) -> _OtherTerms:
        """Returns the existing terms that select the class, looked up again when a term is added or removed."""
        pods, selected = nodes.pods, self.selected
        stamp: Hashable = pods.existing_terms_version
        if selected is not None:
            selected.catch_up()
            stamp = (stamp, selected.layout)
        if self._others[0] != stamp:
            its_own = [pods.existing_terms[c] for c in dict.fromkeys(self._itself) if c in pods.existing_terms]
            if selected is None:
                existing_terms = list(dict.fromkeys([*its_own, *pods.carriers_of(self._tokens)]))
            else:
                existing_terms = [c for c in its_own if not selected.includes(c.carried)]
            self._others = stamp, self._by_effect(existing_terms)
        return self._others[1]

    def _by_effect(self, existing_terms: list[ExistingTerm]) -> _OtherTerms:
        found = [(c.carried.topology, *effect(c.carried), c.counter) for c in existing_terms]
        if self.selected is not None:  # its counters have the weights in their counts
            found += [(topology, what, 1, c) for (topology, what), c in self.selected.counters.items()]
        strict: list[tuple[str, PodCounter]] = [(t, c) for t, what, _, c in found if what is Effect.FORBIDS]
        lenient = [each for each in found if each[1] is not Effect.FORBIDS]
        heard = [each for each in lenient if each[1] is not Effect.JOINS or self._hard_weight > 0]
        theirs = [(topology, weight * self._points(what), c) for topology, what, weight, c in heard]
        return _OtherTerms(strict, [counter for *_, counter in lenient], [*self.own_wishes, *theirs])

    def _points(self, what: Effect) -> int:
        """Returns the points that each count of a term gives to the nodes of its domain."""
        return self._hard_weight if what is Effect.JOINS else 1 if what is Effect.ADDS else -1

    def wishes(self, nodes: NodeColumns) -> tuple[tuple[WeightedTerm, ...], AffinityScores | None]:
        """Returns the terms that give points and count at least one pod, and their scores if domains are many.

        The result is computed again when a term is added or removed, a node changes, or a domain gets its first pod or
        loses its last.
        """
        several = self.others(nodes).wishes
        stamp = (self._others[0], nodes.node_changes.mark, [counter.presence_version for _, _, counter in several])
        if self._wishes[0] != stamp:
            wishes = tuple([wish for wish in several if wish[2].any_in_domain(wish[0])])
            tally = None
            if wishes and not has_few_domains(wishes, nodes):
                tally = nodes.shared_while_used(("InterPodAffinity", wishes), lambda: AffinityScores(wishes))
            self._wishes = (stamp, (wishes, tally))
        return self._wishes[1]

    @property
    def anybody(self) -> bool:
        """Whether any pod that all required affinity terms select is in a domain of one of them."""
        return any(counter.any_in_domain(topology) for topology, counter in self.joins)


def _means(carried: AffinityTerm, pod: Pod, nodes: NodeColumns) -> bool:
    covered = nodes.pods.covers(carried.term, pod.metadata.namespace)
    return covered and carried.term.selector.matches(pod.metadata.labels)


def _seen_by(affinity: Affinity, labels: Mapping[str, str]) -> dict[str, str]:
    """Returns the labels whose keys the pod's own terms name. The terms may be malformed."""
    keys: set[str] = set()
    for towards in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if towards is not None:
            terms = [*towards.required, *[weighted.pod_affinity_term for weighted in towards.preferred]]
            keys.update(*[term.label_selector.keys() for term in terms if term.label_selector is not None])
    return {key: value for key, value in labels.items() if key in keys}


def _refusals(affinity: _Affinity, nodes: Nodes) -> _Refusals:
    strict = affinity.others(nodes.columns).strict
    far = ~_together(affinity, nodes) if affinity.joins else None
    return far, _any(affinity.avoids, nodes), _any(strict, nodes)


def _neighbours(topology: str, row: int, nodes: NodeColumns) -> list[int] | None:
    """Returns all rows of this row's domain, or None if there are more than `_MANY_ROWS`."""
    domains = domains_of_label(topology, Nodes(nodes))
    codes = domains.codes
    code = codes.item(row)
    if not code:
        return []
    size = domains.row_counts.item(code)
    if size == 1:  # as with hostnames
        return [row]
    rows: list[int] | None = None if size > _MANY_ROWS else (codes == code).nonzero()[0].tolist()
    return rows


def _together(affinity: _Affinity, nodes: Nodes) -> BoolColumn:
    """Returns the rows that meet all required affinity terms. If no pod is selected yet and the terms select the pod
    itself, these are all rows with the topology labels."""
    labels = [(domain_codes(topology, nodes), counter.by_domain(topology) > 0) for topology, counter in affinity.joins]
    for _, some in labels:
        some[0] = False  # nodes without the label are in no domain
    nobody = not any([np.count_nonzero(some) for _, some in labels])  # noqa: C419
    if nobody and affinity.joins_itself:
        return _all([codes != 0 for codes, _ in labels])
    return _all([some.take(codes) for codes, some in labels])


def _all(masks: list[BoolColumn]) -> BoolColumn:
    return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)


def _there(topology: str, counter: PodCounter, node: OneNode) -> bool:
    """Returns whether the counter has a pod in the node's domain."""
    code = node.columns.labels.column(topology).codes.item(node.row)
    return bool(code) and counter.by_domain(topology).item(code) > 0


def _any(terms: list[tuple[str, PodCounter]], nodes: Nodes) -> BoolColumn | None:
    """Returns the rows in whose domain any of the terms counts a pod, or None if there are no terms."""
    found, by_topology = None, dict[str, list[PodCounter]]()
    for topology, counter in terms:
        by_topology.setdefault(topology, []).append(counter)
    for topology, counters in by_topology.items():  # by topology: a thousand terms may have a handful of them
        codes = domain_codes(topology, nodes)
        some = np.zeros(len(nodes.columns.labels.column(topology).values), np.bool_)
        for counter in counters:
            counter.mark(topology, some)
        some[0] = False
        here = some.take(codes)
        found = here if found is None else found | here
    return found
