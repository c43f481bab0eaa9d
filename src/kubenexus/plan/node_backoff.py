"""Backoff from nodes whose kubelet rejected a pod: 60 s for its class in its namespace, doubled each time up to 600 s.

A kubelet that reports OutOfcpu knows something that the scheduler does not. The pod has failed for good and its
controller creates another. Without a backoff that pod would go to the same node, again and again.
"""

import math
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from kubenexus.api.core import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from kubenexus.api.node_selectors import REFUSING_FIELD
from kubenexus.base.clock import Clock
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.cluster_events import ClassBackoff
from kubenexus.framework.job import Job
from kubenexus.plan.gang.class_matcher import ClassMatcher
from kubenexus.state.nodes import NodeColumns

LEAST, MOST = 60.0, 600.0
REMEMBERED = 4096
PER_NAMESPACE = 512

# The reasons of a kubelet that rejects a pod: these, and `OutOf` followed by a resource.
_WORDS = frozenset(
    {
        "NodeAffinity",
        "NodePorts",
        "NodeName",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "SMTAlignmentError",
        "InvalidNodeInfo",
        "UnknownAdmissionError",
        "AppArmor",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "PodOSNotSupported",
        "Podfeaturesupport",
    }
)


_BY_MANAGERS = frozenset({"TopologyAffinityError", "UnexpectedAdmissionError", "SMTAlignmentError"})


def is_rejection_by_managers(reason: str) -> bool:
    """Whether the Topology Manager of a kubelet, or one of the managers that it asks, rejected a pod."""
    return reason in _BY_MANAGERS


def is_kubelet_rejection(reason: str) -> bool:
    """Whether the reason of a failed pod means that the kubelet never admitted it."""
    return reason.startswith("OutOf") or reason in _WORDS


class _AvoidedNode(NamedTuple):
    """The signature of a class, and the node whose kubelet rejected it."""

    signature: bytes
    node: str


class NodeBackoff:
    """The backoffs by namespace, class signature and node.

    By namespace, since pods of other tenants may have the same signature, and the kubelet may have rejected a field
    that is not in the signature. Bounded: a namespace that has PER_NAMESPACE entries drops its oldest one, and beyond
    REMEMBERED entries in all, the namespace with the most does.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[str, OrderedDict[_AvoidedNode, tuple[float, float]]] = {}  # end and length of each backoff
        self._nodes: dict[ClassBackoff, set[str]] = {}
        self._ended: set[ClassBackoff] = set()  # since the last call of `expire`; also those that were dropped
        self._count = 0
        self.namespaces: frozenset[str] = frozenset()  # namespaces with a backoff, or a recent one
        self._due = math.inf  # no backoff ends before then

    def __bool__(self) -> bool:
        return bool(self._nodes) or bool(self._ended)

    def add(self, namespace: str, signature: bytes, node: str) -> float:
        """Starts the backoff of a class from a node, and returns its end."""
        if namespace not in self._times:
            self._times[namespace] = OrderedDict()
            self.namespaces = frozenset(self._times)
        now, place, times = self._clock.now(), _AvoidedNode(signature, node), self._times[namespace]
        known = times.pop(place, None)
        pause = LEAST if known is None else min(max(LEAST, 2 * known[1]), MOST)
        times[place] = (now + pause, pause)
        self._count += known is None
        self._due = min(self._due, now + pause)
        self._nodes.setdefault((namespace, signature), set()).add(node)
        if len(times) > PER_NAMESPACE:
            self._drop_oldest(namespace)
        elif self._count > REMEMBERED:
            self._drop_oldest(max(self._times, key=lambda each: len(self._times[each])))
        return now + pause

    def nodes(self, namespace: str, signature: bytes) -> list[str]:
        return sorted(self._nodes.get((namespace, signature), ()))

    def expire(self) -> frozenset[ClassBackoff]:
        """Ends backoffs that are over, and returns the classes that have a node again since the last call. Called
        before every burst of decisions.

        The length of a backoff is kept for as long again, so that a node that still rejects pods gets a longer one.
        """
        now = self._clock.now()
        if now >= self._due:
            for namespace, times in list(self._times.items()):
                for place, (until, pause) in list(times.items()):
                    if until <= now:
                        self._forget(namespace, place)
                    if until + pause <= now:
                        self._drop(namespace, place)
            left = (each for times in self._times.values() for each in times.values())
            self._due = min((until if until > now else until + pause for until, pause in left), default=math.inf)
        ended, self._ended = frozenset(self._ended), set()
        return ended

    def _drop_oldest(self, namespace: str) -> None:
        place = next(iter(self._times[namespace]))
        self._forget(namespace, place)
        self._drop(namespace, place)

    def _drop(self, namespace: str, place: _AvoidedNode) -> None:
        times = self._times[namespace]
        del times[place]
        self._count -= 1
        if not times:
            del self._times[namespace]
            self.namespaces = frozenset(self._times)

    def _forget(self, namespace: str, place: _AvoidedNode) -> None:
        """Ends one backoff, if it is still in force."""
        held = self._nodes.get((namespace, place.signature), set())
        if place.node in held:
            self._ended.add((namespace, place.signature))
            held.discard(place.node)
            if not held:
                del self._nodes[namespace, place.signature]


def exclude_backed_off_nodes(
    job: Job, node_backoff: NodeBackoff, class_cache: ClassCache, columns: NodeColumns
) -> tuple[Job, frozenset[ClassBackoff]]:
    """Returns the job without the nodes whose kubelets rejected pods of its classes, and those classes."""
    pods, backoffs = list[Pod](), set[ClassBackoff]()
    class_matcher = ClassMatcher[list[str]](class_cache, columns)
    for pod in job.pods:
        nodes = class_matcher.find(pod)
        if nodes is None:
            backoff = pod.metadata.namespace, class_cache.signature(pod, columns)
            nodes = node_backoff.nodes(*backoff)
            class_matcher.add(pod, nodes)
            if nodes:
                backoffs.add(backoff)
        pods.append(exclude_nodes(pod, nodes) if nodes else pod)
    return msgspec.structs.replace(job, pods=tuple(pods)), frozenset(backoffs)


def exclude_nodes(pod: Pod, nodes: list[str]) -> Pod:
    """Returns the pod with a node affinity that excludes these nodes.

    NodeAffinity then rejects them, with a reason of its own for nodes that the pod itself would take.
    """
    names = [NodeSelectorRequirement(key=REFUSING_FIELD, operator="NotIn", values=[node]) for node in nodes]
    affinity = pod.spec.affinity or Affinity()
    of_nodes = affinity.node_affinity or NodeAffinity()
    terms = [NodeSelectorTerm()] if of_nodes.required is None else of_nodes.required.node_selector_terms
    wanted = [_without(term, names, keep_empty=of_nodes.required is None) for term in terms]
    of_nodes = msgspec.structs.replace(of_nodes, required=NodeSelector(node_selector_terms=wanted))
    affinity = msgspec.structs.replace(affinity, node_affinity=of_nodes)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity))


def _without(term: NodeSelectorTerm, names: list[NodeSelectorRequirement], *, keep_empty: bool) -> NodeSelectorTerm:
    """Returns the term without these nodes. An empty term matches no node, and must not match any afterwards."""
    if not keep_empty and not term.match_expressions and not term.match_fields:
        return term
    return msgspec.structs.replace(term, match_fields=[*term.match_fields, *names])
