"""TopologyScoring: spreads the pods of one workload over zones, regions and racks.

A workload's pods have the same controller. Pods without a controller have the same namespace, and the same
`app.kubernetes.io/name` and `/instance`, or the same `app`. Pods that are assumed count; those that ended or are being
deleted do not.

Services, inference and interactive pods are spread; batch and training pods, and all pods of a cluster with one zone,
region and rack, score 50 everywhere. A node costs 6 for each own pod in its zone, 3 for each in its region and 1 for
each in its rack. The cheapest feasible node scores 100 and the dearest 0, or more if they differ by less than 6; all
score 50 if they differ by less than a tenth. A level with one domain does not count, and the largest level that counts
costs 6. Nodes without a zone score 50.

    topology.kubenexus.io/spread-zones  true: also for batch and training, zones and regions alone; false: not at all
    topology.kubenexus.io/min-zones     zones without own pods are preferred to all others until so many are in use
    topology.kubenexus.io/affinity      spread-rack: a pod in the rack counts 6, too
                                        same-rack: the rack with most own pods scores 100, and zones do not count
                                        unless one of the other annotations asks for them
"""

from collections.abc import Hashable, Mapping
from typing import Any

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import CodedScores, Depends, custom_normalize
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.topology_scoring.own_pods import UNLABELLED, ZONE_WEIGHT, OwnPods, is_even, used_levels
from kubenexus.plugins.topology_scoring.request import SpreadRequest, of_workload, template_request
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

NEUTRAL = 50


def _least_and_most(raw: IntColumn) -> tuple[int, ...]:
    costs = raw[raw != UNLABELLED]
    return (int(costs.min()), int(costs.max())) if len(costs) else (0, 0)


def _points(raw: Any, extremes: tuple[int, ...]) -> Any:
    """Maps costs to 0..100: the least to 100, the most to 0, or to more if they differ by less than a pod in a zone."""
    least, most = extremes
    if is_even(least, most):
        return raw * 0 + NEUTRAL
    span = max(most - least, ZONE_WEIGHT)
    points = 100 * (least + span - raw) // span
    points[raw == UNLABELLED] = NEUTRAL
    return points


def _few_points(raw: list[int]) -> tuple[tuple[int, ...], list[int]]:
    costs = [each for each in raw if each != UNLABELLED]
    least, most = (min(costs), max(costs)) if costs else (0, 0)
    if is_even(least, most):
        return (least, most), [NEUTRAL] * len(raw)
    span = max(most - least, ZONE_WEIGHT)
    return (least, most), [NEUTRAL if each == UNLABELLED else 100 * (least + span - each) // span for each in raw]


class TopologyScoring:
    name = "TopologyScoring"
    reads = ()
    depends = Depends.NODE
    normalize = custom_normalize(_least_and_most, _points, shown=lambda raw: max(raw, 0), few=_few_points)
    signs_template = True
    default_score = NEUTRAL  # of pods that are not spread

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        template = template_request(pod)
        return None if template is None else self.sign_pod(pod, nodes, template)

    def sign_template(self, pod: Pod, nodes: NodeColumns) -> Any:
        return template_request(pod)

    def sign_pod(self, pod: Pod, nodes: NodeColumns, template: SpreadRequest) -> Any:
        return of_workload(template, pod) if used_levels(template, nodes) else None

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        """Moves with the counts of the workload, unless it is spread evenly: one pod more then changes nothing."""
        if point != "score":
            return nodes.node_changes.mark
        own = self._own_pods(pod, nodes)
        own.costs(nodes)
        return nodes.node_changes.mark, own.version

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> CodedScores | IntColumn | int:
        own = self._own_pods(pod, nodes.columns)
        costs, levels = own.costs(nodes.columns), own.levels
        if costs is None or levels is None:
            return 0
        if nodes.rows is not None:
            return costs[levels.codes[nodes.rows]]  # type: ignore[no-any-return]
        return CodedScores(codes=levels.codes, values=costs, key=levels.key, rows=levels.rows)

    def held_bytes(self, pod: PodClass, nodes: NodeColumns) -> int:
        """Returns the size of the counters that the class holds."""
        return int(self._own_pods(pod, nodes).counter.rows.nbytes) if self.name in pod.signed else 0

    def _own_pods(self, pod: PodClass, nodes: NodeColumns) -> OwnPods:
        return pod.cached(self.name, lambda: self._shared(pod.signed[self.name], nodes))

    def _shared(self, request: SpreadRequest, nodes: NodeColumns) -> OwnPods:
        return nodes.shared_while_used((self.name, request), lambda: OwnPods(request, nodes))
