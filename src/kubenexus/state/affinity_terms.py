"""Questions about pods ("who in these namespaces has such labels?"), and the terms pods carry against each other."""

import enum
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

import msgspec

from kubenexus.api.core import Affinity, Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from kubenexus.api.selectors import EVERYTHING, Selector, compile_selector
from kubenexus.base.errors import Malformed

MOST_TERMS, MOST_ENTRIES = 500, 10_000  # that are read of a pod's affinity
_USUAL = 8 << 10  # bytes; no cluster has thousands of pods with longer ones, which would only fill memory
T = TypeVar("T", PodAffinityTerm, WeightedPodAffinityTerm)


class PodSelectorTerm(msgspec.Struct, frozen=True, gc=False):
    """Pods in one of `namespaces`, or in a namespace whose labels `namespace_selector` selects, that `selector`
    selects.

    `skip_terminating` leaves out pods that are being deleted; spreading asks so, affinity does not. `nominated_only`
    means only pods that are nominated to a node, while they are tried there.
    """

    namespaces: frozenset[str]
    selector: Selector
    namespace_selector: Selector
    skip_terminating: bool = False
    nominated_only: bool = False

    def covers(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether pods of this namespace are meant. `labels` are the namespace's, None if it is not known."""
        if namespace in self.namespaces or self.namespace_selector == EVERYTHING:
            return True
        return labels is not None and self.namespace_selector.matches(labels)


class AffinityKind(enum.Enum):
    """How a pod stands to the pods its term selects, and whether it insists."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"

    __hash__ = object.__hash__


class AffinityTerm(msgspec.Struct, frozen=True, gc=False):
    """A term of a pod's affinity with the topology it speaks of; weight 0 where it is required."""

    kind: AffinityKind
    topology: str
    term: PodSelectorTerm
    weight: int = 0


def affinity_terms(pod: Pod, namespace: str | None = None) -> tuple[AffinityTerm, ...]:
    """All terms of a pod, in its own namespace or another. Raises Malformed when a selector cannot be read."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return ()
    within = pod.metadata.namespace if namespace is None else namespace
    encoded = _encoder.encode((affinity.pod_affinity, affinity.pod_anti_affinity))
    if len(encoded) <= _USUAL:
        return _parsed(encoded, within)
    return _parsed.__wrapped__(_encoder.encode(_kept(affinity)), within)


def usual_terms(pod: Pod) -> tuple[AffinityTerm, ...] | None:
    """The same for each pod that is signed; None if they are so long that to read them takes milliseconds."""
    affinity = pod.spec.affinity
    if affinity is None:
        return ()
    encoded = _encoder.encode((affinity.pod_affinity, affinity.pod_anti_affinity))
    return _parsed(encoded, pod.metadata.namespace) if len(encoded) <= _USUAL else None


def _kept(affinity: Affinity) -> tuple[PodAffinity | None, PodAffinity | None]:
    """What is read of a pod's affinity: of one with thousands of terms the first, required ones before preferred ones.
    No pod that we place has so many (`framework.pod_limits`); one bound by another program must not stop the loop."""
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity)
    budget = _TermBudget()
    required = [budget.first(side.required) if side is not None else [] for side in sides]
    preferred = [budget.first(side.preferred) if side is not None else [] for side in sides]
    cut = [
        None if side is None else PodAffinity(required=must, preferred=may)
        for side, must, may in zip(sides, required, preferred, strict=True)
    ]
    return cut[0], cut[1]


class _TermBudget:
    """How many terms, and entries of terms, are left to be read."""

    def __init__(self) -> None:
        self._terms, self._entries = MOST_TERMS, MOST_ENTRIES

    def first(self, terms: list[T]) -> list[T]:
        kept: list[T] = []
        for term in terms:
            self._terms -= 1
            self._entries -= entries_of(term.pod_affinity_term if isinstance(term, WeightedPodAffinityTerm) else term)
            if self._terms < 0 or self._entries < 0:
                break
            kept.append(term)
        return kept


def entries_of(term: PodAffinityTerm) -> int:
    """Requirements, values and namespaces."""
    selectors = (term.label_selector, term.namespace_selector)
    return len(term.namespaces) + sum([selector.size for selector in selectors if selector is not None])


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(tuple[PodAffinity | None, PodAffinity | None])


@lru_cache(maxsize=1024)
def _parsed(encoded: bytes, namespace: str) -> tuple[AffinityTerm, ...]:
    """Pods of one template share the very same terms, and parse them once."""
    near, apart = _decoder.decode(encoded)
    terms = _of(near, "podAffinity", namespace, AffinityKind.REQUIRED_AFFINITY, AffinityKind.PREFERRED_AFFINITY)
    return terms + _of(
        apart, "podAntiAffinity", namespace, AffinityKind.REQUIRED_ANTI_AFFINITY, AffinityKind.PREFERRED_ANTI_AFFINITY
    )


def _of(
    affinity: PodAffinity | None, field: str, namespace: str, must: AffinityKind, may: AffinityKind
) -> tuple[AffinityTerm, ...]:
    if affinity is None:
        return ()
    path = f"spec.affinity.{field}"
    required = [
        AffinityTerm(
            must, t.topology_key, _term(t, namespace, f"{path}.requiredDuringSchedulingIgnoredDuringExecution[{i}]")
        )
        for i, t in enumerate(affinity.required)
    ]
    preferred = [
        AffinityTerm(
            may,
            w.pod_affinity_term.topology_key,
            _term(w.pod_affinity_term, namespace, f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{i}]"),
            w.weight,
        )
        for i, w in enumerate(affinity.preferred)
    ]
    return (*required, *preferred)


def _term(term: PodAffinityTerm, namespace: str, path: str) -> PodSelectorTerm:
    try:
        everywhere = compile_selector(term.namespace_selector)
        selector = compile_selector(term.label_selector)
    except Malformed as problem:
        raise problem.within(path) from None
    own = not term.namespaces and term.namespace_selector is None
    return PodSelectorTerm(frozenset({namespace} if own else term.namespaces), selector, everywhere)
