"""TaintToleration: rejects nodes with untolerated taints; untolerated PreferNoSchedule taints lower the score."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Node, Pod
from kubenexus.api.tolerations import HARD_EFFECTS, SOFT_EFFECTS, untolerated
from kubenexus.base.arrays import IntColumn, any_true
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import LOWER_IS_BETTER, CodedScores, Depends
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, shared_mask
from kubenexus.state.view import Nodes


class TaintToleration:
    name = "TaintToleration"
    reads = ("spec.tolerations",)
    depends = Depends.NODE
    normalize = LOWER_IS_BETTER
    TAINTED = Reason("node(s) had untolerated taint(s)", Code.UNRESOLVABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        if nodes.has_taints:
            refused = nodes.cached_until_node_change(
                self._asked(pod, HARD_EFFECTS), lambda nodes: _kept_off(pod, nodes)
            )
            if refused is not None:
                verdict.reject_shared(refused, self.TAINTED)

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | CodedScores | int:
        if not nodes.has_taints:
            return 0
        found: IntColumn | CodedScores | int = nodes.cached_until_node_change(
            self._asked(pod, SOFT_EFFECTS), lambda nodes: _unwelcome(pod, nodes)
        )
        return found

    def _asked(self, pod: PodClass, effects: frozenset[str]) -> Hashable:
        """Returns the cache key: most pods have the same tolerations and share a result."""
        return (self, effects, pod.cached(self.name, lambda: tuple(pod.spec.tolerations)))

    def _lets_in(self, pod: Pod, event: ClusterEvent) -> bool:
        """Returns whether the pod tolerates the node's taints now and, if the node is not new, did not before."""
        return not _kept_out(pod, event.new) and (event.old is None or _kept_out(pod, event.old))

    events_to_register = (
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _lets_in),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE_POD_TOLERATION),
    )


def _kept_off(pod: PodClass, nodes: Nodes) -> Any:
    return shared_mask((_count(pod, nodes, HARD_EFFECTS) > 0)[nodes.taints])


def _unwelcome(pod: PodClass, nodes: Nodes) -> IntColumn | CodedScores | int:
    """Returns the number of untolerated preferences; mostly 0 for all nodes. Else many classes share the same codes."""
    counts = _count(pod, nodes, SOFT_EFFECTS)
    if not any_true(counts):
        return 0
    return CodedScores(nodes.taints.astype(np.intp), counts) if nodes.rows is None else counts[nodes.taints]


def _count(pod: PodClass, nodes: Nodes, effects: frozenset[str]) -> IntColumn:
    """Returns the number of untolerated taints with these effects, for each distinct taint set."""
    tolerations = pod.spec.tolerations
    counts = [len(untolerated(tolerations, taints, effects=effects)) for taints in nodes.taint_sets]
    return np.array(counts, np.int64)


def _kept_out(pod: Pod, node: Node) -> bool:
    return bool(untolerated(pod.spec.tolerations, node.spec.taints, effects=HARD_EFFECTS))
