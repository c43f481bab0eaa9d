"""InterPodAffinity: places a pod near some pods and away from others, by its own terms and by those of existing pods.

"Near" means on a node with the same value of a topology label as a node that runs such a pod. A `PodCounter` counts the
pods that a term selects by value of the label, and is updated with every pod. A term over all nodes is then one
comparison.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.base.errors import Malformed
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import CodedScores, Depends, custom_normalize
from kubenexus.framework.job import JobView
from kubenexus.framework.member_constraints import MAX_PAIRS, MemberConstraint, MemberRelation
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plugins.inter_pod_affinity import hints
from kubenexus.plugins.inter_pod_affinity.class_affinity import ClassAffinity, Refusals, labels_named_by_terms, selects
from kubenexus.plugins.inter_pod_affinity.filtering import find_refusals, has_pod_in_domain, rows_of_domain
from kubenexus.plugins.inter_pod_affinity.scoring import scores_by_domain
from kubenexus.state.affinity_terms import AffinityKind, usual_terms
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

_encoder = msgspec.msgpack.Encoder()
_RELATIONS = {
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
        self._own_terms_only = bool(args.get("ignorePreferredTermsOfExistingPods"))

    # --- pod classes -----------------------------------------------------------------------------------------------

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        """Returns the namespace, the pod's own terms that select the pod itself, by index, and the terms of existing
        pods that select it.

        None for a pod without terms that no existing term selects: no result depends on its labels. If the pod's terms
        are malformed or long (`usual_terms`), the second item is the labels that they name.
        """
        affinity, meta, terms = pod.spec.affinity, pod.metadata, nodes.pods.terms
        existing = terms.about(meta.namespace, meta.labels) if terms else ()
        if affinity is None or (affinity.pod_affinity or affinity.pod_anti_affinity) is None:
            return None if existing == () else [meta.namespace if isinstance(existing, dict) else "", (), existing]
        try:
            own = usual_terms(pod)
        except Malformed:  # `pre_filter` reports it
            own = None
        if own is None:
            return [
                meta.namespace,
                [labels_named_by_terms(affinity, meta.labels), terms.scope(meta.namespace)],
                existing,
            ]
        selecting_itself = [i for i, each in enumerate(own) if selects(each, pod, nodes)]
        if existing and selecting_itself and not isinstance(existing, dict):
            # Without this the first placed pod of a workload would change the class of its siblings.
            known = {terms.token(own[i]) for i in selecting_itself}
            existing = tuple([token for token in existing if token not in known])
        return [meta.namespace, selecting_itself, existing]

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        affinity, mark = self._affinity(pod, nodes), nodes.node_changes.mark
        existing = affinity.existing_terms(nodes)
        if point == "filter":
            required = affinity.required_counters
            flips = tuple([c.presence_version for c in required]) if required else ()
            refusing = tuple([(id(c), c.presence_version) for _, c in existing.refusing]) if existing.refusing else ()
            return mark, flips, refusing
        versions = tuple([c.version for c in affinity.preferred_counters]) if affinity.preferred_counters else ()
        return mark, versions, tuple([(id(c), c.version) for c in existing.scoring])

    def touched_rows(self, pod: PodClass, nodes: NodeColumns, before: Any, after: Any) -> Any:
        """Returns the rows of the domains that got their first pod or lost their last, or None if they are unknown or
        many. None with required affinity, too: the first selected pod changes the results of all rows."""
        affinity = self._affinity(pod, nodes)
        refusing = affinity.existing_terms(nodes).refusing
        if affinity.required_affinity or before[0] != after[0] or [i for i, _ in before[2]] != [i for i, _ in after[2]]:
            return None
        terms = [*affinity.required_anti_affinity, *refusing]
        flips = [*before[1], *[f for _, f in before[2]]]
        places: set[tuple[str, int]] = set()  # mostly one: pods that avoid each other flip the same domain
        for (topology, counter), seen in zip(terms, flips, strict=True):
            flipped = counter.presence_changes_since(seen)
            if flipped is None:
                return None
            places.update([(topology, row) for row in flipped])
        rows: set[int] = set()
        for topology, row in places:
            of_domain = rows_of_domain(topology, row, nodes)
            if of_domain is None:
                return None
            rows.update(of_domain)
        return rows

    # --- filter ----------------------------------------------------------------------------------------------------

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        try:
            affinity = self._affinity(pod, nodes.columns)
        except Malformed as problem:
            return Verdict(Code.UNRESOLVABLE, (f"parsing pod: {problem}",))
        if affinity.required_affinity or affinity.required_anti_affinity:
            return None
        refusing = affinity.existing_terms(nodes.columns).refusing
        return None if any(counter.any_in_domain(topology) for topology, counter in refusing) else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        affinity = self._affinity(pod, nodes.columns)
        if isinstance(nodes, OneNode) and not affinity.required_affinity:
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

    def _refusals(self, pod: PodClass, affinity: ClassAffinity, nodes: Nodes) -> Refusals:
        """Returns the refused rows. Those of all rows are computed once for all classes with the same terms."""
        if nodes.rows is not None:
            return find_refusals(affinity, nodes)
        stamp = self.stamp(pod, nodes.columns, "filter")
        if affinity.refusals[0] != stamp:
            affinity.refusals = (stamp, find_refusals(affinity, nodes))
        return affinity.refusals[1]

    def _filter_one(self, affinity: ClassAffinity, node: OneNode, verdict: NodeVerdict) -> None:
        own = affinity.required_anti_affinity
        if any([has_pod_in_domain(topology, counter, node) for topology, counter in own]):  # noqa: C419
            verdict.reject(True, self.ANTI_AFFINITY_NOT_MET)
            return
        refusing = affinity.existing_terms(node.columns).refusing
        if any([has_pod_in_domain(topology, counter, node) for topology, counter in refusing]):  # noqa: C419
            verdict.reject(True, self.EXISTING_ANTI_AFFINITY_NOT_MET)

    # --- score -------------------------------------------------------------------------------------------------------

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | CodedScores | Skip:
        if self.name not in pod.signed:
            return SKIP
        affinity = self._affinity(pod, nodes.columns)
        if self._own_terms_only and not affinity.preferred_terms:
            return SKIP
        terms, scores = affinity.scoring_terms(nodes.columns)
        if not terms:
            return SKIP
        return scores_by_domain(terms, nodes) if scores is None else scores.score(nodes, pod)

    def member_constraints(self, pod: PodClass, peers: Sequence[Pod], nodes: NodeColumns) -> Sequence[MemberConstraint]:
        """Returns a constraint for each required term that selects peers: in different domains, or all in one.

        All in one domain applies only while no selected pod exists: later members then follow the first.
        """
        terms = [c for c in self._affinity(pod, nodes).terms if c.kind in _RELATIONS]
        if len(peers) > 1:
            many = len(terms) * len(peers) > MAX_PAIRS
            constrained = many or any(selects(c, peer, nodes) for c in terms for peer in peers)
            return [MemberConstraint(MemberRelation.OTHER, self.name)] if constrained else []
        selected = {c: any(selects(c, peer, nodes) for peer in peers) for c in terms}
        affinity = [c for c in terms if c.kind is AffinityKind.REQUIRED_AFFINITY]
        first = affinity and all(selected[c] for c in affinity) and not self._affinity(pod, nodes).any_pod_selected
        constraining = [c for c in terms if (first if c.kind is AffinityKind.REQUIRED_AFFINITY else selected[c])]
        return [MemberConstraint(_RELATIONS[c.kind], self.name, c.topology) for c in constraining]

    def held_bytes(self, pod: PodClass, nodes: NodeColumns) -> int:
        """Returns the size of what is held for the class beyond its signature and its columns."""
        try:
            selected = self._affinity(pod, nodes).selected
        except Malformed:
            return 0
        return 0 if selected is None else selected.nbytes

    def _affinity(self, pod: PodClass, nodes: NodeColumns) -> ClassAffinity:
        return pod.cached("InterPodAffinity", lambda: self._shared_affinity(pod, nodes))

    def _shared_affinity(self, pod: PodClass, nodes: NodeColumns) -> ClassAffinity:
        affinity, signed = pod.spec.affinity, pod.signed.get(self.name)
        terms = None if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity)
        words = (self.name, self._hard_weight, _encoder.encode((signed, terms)))
        return nodes.shared_while_used(words, lambda: ClassAffinity(pod, nodes, self._hard_weight))

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
