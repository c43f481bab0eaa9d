"""TaintToleration: untolerated taints keep a pod out; untolerated preferences against it cost points."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Node, Pod
from kubenexus.api.tolerations import HARD, SOFT, untolerated
from kubenexus.base.numbers import BoolColumn, IntColumn
from kubenexus.framework.events import Action, Event, Resource, Wake
from kubenexus.framework.job import JobView
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import DOWN, Depends
from kubenexus.framework.verdict import Code, NodeVerdict, Reason
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
            verdict.reject(nodes.remembered(self._asked(pod, HARD), lambda nodes: _kept_off(pod, nodes)), self.TAINTED)

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        if not nodes.tainted:
            return 0
        found: IntColumn = nodes.remembered(self._asked(pod, SOFT), lambda nodes: _count(pod, nodes, SOFT))
        return found.copy()

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


def _kept_off(pod: PodClass, nodes: Nodes) -> BoolColumn:
    mask: BoolColumn = _count(pod, nodes, HARD) > 0
    mask.flags.writeable = False  # many classes are given the same
    return mask


def _count(pod: PodClass, nodes: Nodes, effects: frozenset[str]) -> IntColumn:
    """Untolerated taints with these effects, counted once for each distinct set and looked up for each node."""
    tolerations = pod.spec.tolerations
    counts = [len(untolerated(tolerations, taints, effects=effects)) for taints in nodes.taint_sets]
    untolerated_on: IntColumn = np.array(counts, np.int64)[nodes.taints]
    return untolerated_on


def _kept_out(pod: Pod, node: Node) -> bool:
    return bool(untolerated(pod.spec.tolerations, node.spec.taints, effects=HARD))
