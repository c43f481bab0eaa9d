"""Clustering: pods that ask for the same number of GPUs share nodes, as in Gandiva (Xiao et al., OSDI 2018)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.selectors import EVERYTHING, Operator, Requirement, Selector
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import AS_IS
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.sim.replay.objects import PART, SIZE_LABEL
from kubenexus.sim.replay.policies.node_state import MAX_GPU, ReadsResources, gpus_left, request_of
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pod_counter import PodCounter
from kubenexus.state.view import Nodes


class Clustering(ReadsResources):
    """Nodes by the sizes of the GPU pods that they run, each with up to 25 points for GPUs in use.

        75 and more   only the pod's own size
        50 and more   the pod's own size and others
        25 and more   no GPU pods
        0 and more    other sizes only

    Pods without GPUs score 0 on all nodes. The arguments' `sizes` are all sizes of the trace.
    """

    name = "Clustering"
    normalize = AS_IS

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._sizes: tuple[str, ...] = tuple(args["sizes"])
        self._counters: tuple[NodeColumns | None, list[PodCounter]] = (None, [])

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        request = request_of(pod)
        if not request.gpus:
            return 0
        there = np.stack([_rows(counter, nodes) for counter in self._of(nodes.columns)])
        own = there[self._sizes.index(PART if request.is_part else str(request.gpus))]
        kinds = there.sum(axis=0)
        points = np.where(own, np.where(kinds == 1, 75, 50), np.where(kinds == 0, 25, 0))
        scores: IntColumn = points + 25 * (MAX_GPU - gpus_left(nodes).sum(axis=1)) // MAX_GPU
        return scores

    def _of(self, columns: NodeColumns) -> list[PodCounter]:
        """Returns the counters of pods of each size. The columns keep them up to date while they are held here."""
        if self._counters[0] is not columns:
            self._counters = (columns, [columns.pods.counter((_pods_of(size),)) for size in self._sizes])
        return self._counters[1]


def _pods_of(size: str) -> PodSelectorTerm:
    wanted = Requirement(SIZE_LABEL, Operator.IN, (size,))
    return PodSelectorTerm(frozenset(), Selector((wanted,)), EVERYTHING)


def _rows(counter: PodCounter, nodes: Nodes) -> Any:
    """Returns the rows of a view that have such a pod. A counter may have fewer rows than there are nodes."""
    found = np.zeros(nodes.columns.size, np.bool_)
    known = counter.rows[: nodes.columns.size]
    found[: len(known)] = known > 0
    return found[nodes.where]
