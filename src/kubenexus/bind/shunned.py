"""Nodes whose kubelet refused a pod: its class stays away from there for a while, longer each time.

A kubelet that says OutOfcpu knows something that we do not. The pod has failed for good, its controller makes another,
and without a memory that one would go to the same node, and so on for ever.
"""

import math
from collections import OrderedDict

import msgspec

from kubenexus.api.core import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from kubenexus.base.clock import Clock

LEAST, MOST = 60.0, 600.0
REMEMBERED = 4096
NAME_FIELD = "metadata.name"

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


def refused_by_kubelet(reason: str) -> bool:
    """Whether a failed pod's reason says that it was never let in."""
    return reason.startswith("OutOf") or reason in _WORDS


class Shunned:
    """By class (its signature) and node. Bounded: the oldest are forgotten first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: OrderedDict[tuple[bytes, str], tuple[float, float]] = OrderedDict()  # until when, how long
        self._nodes: dict[bytes, set[str]] = {}
        self._due = math.inf  # nothing is over before then

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def add(self, signature: bytes, node: str) -> float:
        """It was refused there. Returns until when it stays away."""
        now, key = self._clock.now(), (signature, node)
        _, last = self._times.pop(key, (0.0, 0.0))
        pause = min(max(LEAST, 2 * last), MOST)
        self._times[key] = (now + pause, pause)
        self._due = min(self._due, now + pause)
        self._nodes.setdefault(signature, set()).add(node)
        if len(self._times) > REMEMBERED:
            oldest, _ = self._times.popitem(last=False)
            self._forget(oldest)
        return now + pause

    def nodes(self, signature: bytes) -> list[str]:
        return sorted(self._nodes.get(signature, ()))

    def expire(self) -> bool:
        """Forget what is over; whether anything was. Asked before every burst of decisions. How long it lasted is
        remembered for as long again, so that a node that still refuses is left alone for longer."""
        now, ended = self._clock.now(), False
        if now < self._due:
            return False
        for key, (until, pause) in list(self._times.items()):
            if until <= now and key[1] in self._nodes.get(key[0], ()):
                self._forget(key)
                ended = True
            if until + pause <= now:
                del self._times[key]
        self._due = min(
            (until if until > now else until + pause for until, pause in self._times.values()), default=math.inf
        )
        return ended

    def _forget(self, key: tuple[bytes, str]) -> None:
        signature, node = key
        held = self._nodes.get(signature)
        if held is not None:
            held.discard(node)
            if not held:
                del self._nodes[signature]


def kept_from(pod: Pod, nodes: list[str]) -> Pod:
    """The pod as it would be if it did not want these nodes: the rules need not know why."""
    names = [NodeSelectorRequirement(key=NAME_FIELD, operator="NotIn", values=[node]) for node in nodes]
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
