"""TaintToleration: untolerated taints keep a pod out; untolerated preferences against it cost points."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.tolerations import HARD, SOFT, untolerated
from kubenexus.base.numbers import IntColumn
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
