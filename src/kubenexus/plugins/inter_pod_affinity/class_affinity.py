"""`ClassAffinity`: what InterPodAffinity knows of one pod class, its own terms and those of existing pods."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from kubenexus.api.core import Affinity, Pod
from kubenexus.base.arrays import BoolColumn
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.inter_pod_affinity.scoring import AffinityScores, WeightedTerm, has_few_domains
from kubenexus.state.affinity_terms import AffinityKind, AffinityTerm, affinity_terms
from kubenexus.state.carried_terms import Effect, effect
from kubenexus.state.existing_terms import SelectorValues
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pod_columns import ExistingTerm
from kubenexus.state.pod_counter import PodCounter

_SIGNS = {AffinityKind.PREFERRED_AFFINITY: 1, AffinityKind.PREFERRED_ANTI_AFFINITY: -1}

# Rows refused by the pod's required affinity, by its required anti-affinity, and by that of existing pods. None where
# there is no such term.
Refusals = tuple[BoolColumn | None, BoolColumn | None, BoolColumn | None]


class ExistingPodTerms(NamedTuple):
    """Terms of existing pods that select a class: `refusing` ones refuse the nodes of a topology's domains, and
    `scoring` ones give points. Each counter is that of one term, or of several together. `weighted` are all terms that
    give points, the class's own included."""

    refusing: list[tuple[str, PodCounter]]
    scoring: list[PodCounter]
    weighted: list[WeightedTerm]


_NO_TERMS = ExistingPodTerms([], [], [])


class ClassAffinity:
    """The affinity terms of a class with their counters, and the terms of existing pods that select the class.

    Classes share one object if they have the same terms and the same existing terms select them.
    """

    def __init__(self, pod: PodClass, nodes: NodeColumns, hard_weight: int) -> None:
        signed: tuple[str, Sequence[Any], SelectorValues] = pod.signed.get("InterPodAffinity") or ("", (), ())
        self._namespace, own, existing = signed
        self._tokens: Sequence[str] = () if isinstance(existing, dict) else existing
        self.selected = nodes.pods.selected_terms(self._namespace, existing) if isinstance(existing, dict) else None
        self._hard_weight = hard_weight
        self._existing: tuple[Hashable, ExistingPodTerms] = (None, _NO_TERMS)
        self.refusals: tuple[Hashable, Refusals] = (None, (None, None, None))  # with the stamp for which they hold
        self._scoring: tuple[Any, tuple[tuple[WeightedTerm, ...], AffinityScores | None]] = (None, ((), None))
        terms = affinity_terms(pod.pod, self._namespace)  # `pod.pod` has no namespace
        self.terms = terms
        if own and isinstance(own[0], dict):
            labels: dict[str, str] = own[0]
            covered = [c for c in terms if nodes.pods.covers(c.term, self._namespace)]
            self._selecting_itself = [c for c in covered if c.term.selector.matches(labels)]
        else:
            self._selecting_itself = [terms[i] for i in own]
        required = [c for c in terms if c.kind is AffinityKind.REQUIRED_AFFINITY]
        together = nodes.pods.counter(tuple(c.term for c in required)) if required else None
        self.required_affinity = [(c.topology, together) for c in required if together is not None]
        self.required_anti_affinity = [
            (c.topology, nodes.pods.counter((c.term,))) for c in terms if c.kind is AffinityKind.REQUIRED_ANTI_AFFINITY
        ]
        self.preferred_terms: list[WeightedTerm] = [
            (c.topology, c.weight * _SIGNS[c.kind], nodes.pods.counter((c.term,))) for c in terms if c.kind in _SIGNS
        ]
        self.required_counters = [counter for _, counter in (*self.required_affinity, *self.required_anti_affinity)]
        self.preferred_counters = [counter for _, _, counter in self.preferred_terms]
        self.affinity_selects_itself = self._all_select_itself(required)

    def _all_select_itself(self, required: Sequence[AffinityTerm]) -> bool:
        """Returns whether all required affinity terms select the pod itself."""
        return bool(required) and all(c in self._selecting_itself for c in required)

    def existing_terms(self, nodes: NodeColumns) -> ExistingPodTerms:
        """Returns the existing terms that select the class, looked up again when a term is added or removed."""
        pods, selected = nodes.pods, self.selected
        stamp: Hashable = pods.existing_terms_version
        if selected is not None:
            selected.catch_up()
            stamp = (stamp, selected.layout)
        if self._existing[0] != stamp:
            selecting_itself = [
                pods.existing_terms[c] for c in dict.fromkeys(self._selecting_itself) if c in pods.existing_terms
            ]
            if selected is None:
                existing_terms = list(dict.fromkeys([*selecting_itself, *pods.carriers_of(self._tokens)]))
            else:
                existing_terms = [c for c in selecting_itself if not selected.includes(c.carried)]
            self._existing = stamp, self._by_effect(existing_terms)
        return self._existing[1]

    def _by_effect(self, existing_terms: list[ExistingTerm]) -> ExistingPodTerms:
        found = [(c.carried.topology, *effect(c.carried), c.counter) for c in existing_terms]
        if self.selected is not None:  # its counters have the weights in their counts
            found += [(topology, what, 1, c) for (topology, what), c in self.selected.counters.items()]
        refusing: list[tuple[str, PodCounter]] = [(t, c) for t, what, _, c in found if what is Effect.FORBIDS]
        scoring = [each for each in found if each[1] is not Effect.FORBIDS]
        with_points = [each for each in scoring if each[1] is not Effect.JOINS or self._hard_weight > 0]
        weighted = [(topology, weight * self._points(what), c) for topology, what, weight, c in with_points]
        return ExistingPodTerms(refusing, [counter for *_, counter in scoring], [*self.preferred_terms, *weighted])

    def _points(self, what: Effect) -> int:
        """Returns the points that each count of a term gives to the nodes of its domain."""
        return self._hard_weight if what is Effect.JOINS else 1 if what is Effect.ADDS else -1

    def scoring_terms(self, nodes: NodeColumns) -> tuple[tuple[WeightedTerm, ...], AffinityScores | None]:
        """Returns the terms that give points and count at least one pod, and their scores if domains are many.

        The result is computed again when a term is added or removed, a node changes, or a domain gets its first pod or
        loses its last.
        """
        weighted = self.existing_terms(nodes).weighted
        stamp = (self._existing[0], nodes.node_changes.mark, [counter.presence_version for _, _, counter in weighted])
        if self._scoring[0] != stamp:
            terms = tuple([term for term in weighted if term[2].any_in_domain(term[0])])
            scores = None
            if terms and not has_few_domains(terms, nodes):
                scores = nodes.shared_while_used(("InterPodAffinity", terms), lambda: AffinityScores(terms))
            self._scoring = (stamp, (terms, scores))
        return self._scoring[1]

    @property
    def any_pod_selected(self) -> bool:
        """Whether any pod that all required affinity terms select is in a domain of one of them."""
        return any(counter.any_in_domain(topology) for topology, counter in self.required_affinity)


def selects(term: AffinityTerm, pod: Pod, nodes: NodeColumns) -> bool:
    """Returns whether the term selects the pod, by its namespace and its labels."""
    covered = nodes.pods.covers(term.term, pod.metadata.namespace)
    return covered and term.term.selector.matches(pod.metadata.labels)


def labels_named_by_terms(affinity: Affinity, labels: Mapping[str, str]) -> dict[str, str]:
    """Returns the labels whose keys the pod's own terms name. The terms may be malformed."""
    keys: set[str] = set()
    for towards in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if towards is not None:
            terms = [*towards.required, *[weighted.pod_affinity_term for weighted in towards.preferred]]
            keys.update(*[term.label_selector.keys() for term in terms if term.label_selector is not None])
    return {key: value for key, value in labels.items() if key in keys}
