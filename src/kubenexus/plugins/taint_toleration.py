"""TaintToleration: untolerated taints keep a pod out; untolerated preferences against it cost points."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Node, Pod
from kubenexus.api.tolerations import HARD, SOFT, untolerated
from kubenexus.base.numbers import IntColumn, somewhere
from kubenexus.framework.events import Action, Event, Resource, Wake
from kubenexus.framework.job import JobView
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import DOWN, Coded, Depends
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, shareable
from kubenexus.state.view import Nodes


class TaintToleration:
    name = "TaintToleration"
    reads = ("spec.tolerations",)
    depends = Depends.NODE
    normalize = DOWN
    TAINTED = Reason("node(s) had untolerated taint(s)", Code.UNRESOLVABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        if nodes.tainted:
            refused = nodes.remembered(self._asked(pod, HARD), lambda nodes: _kept_off(pod, nodes))
            if refused is not None:
                verdict.reject_some(refused, self.TAINTED)

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | Coded | int:
        if not nodes.tainted:
            return 0
        found: IntColumn | Coded | int = nodes.remembered(self._asked(pod, SOFT), lambda nodes: _unwelcome(pod, nodes))
        return found

    def _asked(self, pod: PodClass, effects: frozenset[str]) -> Hashable:
        """Most pods tolerate the same: they are answered once."""
        return (self, effects, pod.once(self.name, lambda: tuple(pod.spec.tolerations)))

    def _lets_in(self, pod: Pod, event: Event) -> bool:
        """A node that the pod may enter now and, if it is not new, could not before."""
        return not _kept_out(pod, event.new) and (event.old is None or _kept_out(pod, event.old))

    wakes = (
        Wake(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _lets_in),
        Wake(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION),
    )


def _kept_off(pod: PodClass, nodes: Nodes) -> Any:
    return shareable((_count(pod, nodes, HARD) > 0)[nodes.taints])


def _unwelcome(pod: PodClass, nodes: Nodes) -> IntColumn | Coded | int:
    """Mostly nobody has any such taint; else many classes are given the same codes."""
    counts = _count(pod, nodes, SOFT)
    if not somewhere(counts):
        return 0
    return Coded(nodes.taints.astype(np.intp), counts) if nodes.rows is None else counts[nodes.taints]


def _count(pod: PodClass, nodes: Nodes, effects: frozenset[str]) -> IntColumn:
    """Untolerated taints with these effects, in each distinct set."""
    tolerations = pod.spec.tolerations
    counts = [len(untolerated(tolerations, taints, effects=effects)) for taints in nodes.taint_sets]
    return np.array(counts, np.int64)


def _kept_out(pod: Pod, node: Node) -> bool:
    return bool(untolerated(pod.spec.tolerations, node.spec.taints, effects=HARD))
