"""Nodes whose kubelet refused a pod: its class, in its namespace, stays away from there for a while, longer each time.

A kubelet that says OutOfcpu knows something that we do not. The pod has failed for good, its controller makes another,
and without a memory that one would go to the same node, and so on for ever.
"""

import math
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from kubenexus.api.core import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from kubenexus.api.node_selectors import REFUSING_FIELD
from kubenexus.base.clock import Clock

LEAST, MOST = 60.0, 600.0
REMEMBERED = 4096
PER_NAMESPACE = 512

# How a kubelet says that it does not take a pod: these words, and `OutOf` with a resource behind it.
_WORDS = frozenset(
    {
        "NodeAffinity",
        "NodePorts",
        "NodeName",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "InvalidNodeInfo",
        "UnknownAdmissionError",
        "AppArmor",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "PodOSNotSupported",
        "Podfeaturesupport",
    }
)


def is_kubelet_rejection(reason: str) -> bool:
    """Whether a failed pod's reason says that it was never let in."""
    return reason.startswith("OutOf") or reason in _WORDS


class _AvoidedNode(NamedTuple):
    """A class (its signature), and the node that refused it."""

    signature: bytes
    node: str


class NodeBackoff:
    """By namespace, class (its signature) and node: a signature may be that of pods of other tenants, too, and what a
    kubelet refuses may be a field that is not in it. Bounded: a namespace's oldest are forgotten first, and those of
    the namespace with the most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[str, OrderedDict[_AvoidedNode, tuple[float, float]]] = {}  # until when, how long
        self._nodes: dict[tuple[str, bytes], set[str]] = {}
        self._count = 0
        self.namespaces: frozenset[str] = frozenset()  # of these pods stay away from nodes, or did lately
        self._due = math.inf  # nothing is over before then

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def add(self, namespace: str, signature: bytes, node: str) -> float:
        """It was refused there. Returns until when it stays away."""
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

    def expire(self) -> bool:
        """Forget what is over; whether anything was. Asked before every burst of decisions. How long it lasted is
        remembered for as long again, so that a node that still refuses is left alone for longer."""
        now, ended = self._clock.now(), False
        if now < self._due:
            return False
        for namespace, times in list(self._times.items()):
            for place, (until, pause) in list(times.items()):
                ended = (until <= now and self._forget(namespace, place)) or ended
                if until + pause <= now:
                    self._drop(namespace, place)
        left = (each for times in self._times.values() for each in times.values())
        self._due = min((until if until > now else until + pause for until, pause in left), default=math.inf)
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

    def _forget(self, namespace: str, place: _AvoidedNode) -> bool:
        """Its class may go there again; whether it might not before."""
        held = self._nodes.get((namespace, place.signature), set())
        if place.node not in held:
            return False
        held.discard(place.node)
        if not held:
            del self._nodes[namespace, place.signature]
        return True


def exclude_nodes(pod: Pod, nodes: list[str]) -> Pod:
    """The pod as it would be if it did not want these nodes. NodeAffinity keeps it from them, with a reason of its own
    for nodes that the pod itself would take."""
    names = [NodeSelectorRequirement(key=REFUSING_FIELD, operator="NotIn", values=[node]) for node in nodes]
    affinity = pod.spec.affinity or Affinity()
    of_nodes = affinity.node_affinity or NodeAffinity()
    terms = [NodeSelectorTerm()] if of_nodes.required is None else of_nodes.required.node_selector_terms
    wanted = [_without(term, names, keep_empty=of_nodes.required is None) for term in terms]
    of_nodes = msgspec.structs.replace(of_nodes, required=NodeSelector(node_selector_terms=wanted))
    affinity = msgspec.structs.replace(affinity, node_affinity=of_nodes)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity))


def _without(term: NodeSelectorTerm, names: list[NodeSelectorRequirement], *, keep_empty: bool) -> NodeSelectorTerm:
    """An empty term matches nothing, and must not begin to match."""
    if not keep_empty and not term.match_expressions and not term.match_fields:
        return term
    return msgspec.structs.replace(term, match_fields=[*term.match_fields, *names])
