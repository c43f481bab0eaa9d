"""TaintToleration: untolerated taints keep a pod out; untolerated preferences against it cost points."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Node, Pod
from kubenexus.api.tolerations import HARD, SOFT, untolerated
from kubenexus.base.numbers import IntColumn
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
            verdict.reject(self._count(pod, nodes, HARD) > 0, self.TAINTED)

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        return self._count(pod, nodes, SOFT) if nodes.tainted else 0

    def _count(self, pod: PodClass, nodes: Nodes, effects: frozenset[str]) -> IntColumn:
        """Untolerated taints with these effects, counted once for each distinct set and looked up for each node."""
        tolerations = pod.spec.tolerations
        counts = [len(untolerated(tolerations, taints, effects=effects)) for taints in nodes.taint_sets]
        untolerated_on: IntColumn = np.array(counts, np.int64)[nodes.taints]
        return untolerated_on

    def _lets_in(self, pod: Pod, event: Event) -> bool:
        """A node that the pod may enter now and, if it is not new, could not before."""
        return not _kept_out(pod, event.new) and (event.old is None or _kept_out(pod, event.old))

    wakes = (
        Wake(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _lets_in),
        Wake(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION),
    )


def _kept_out(pod: Pod, node: Node) -> bool:
    return bool(untolerated(pod.spec.tolerations, node.spec.taints, effects=HARD))
