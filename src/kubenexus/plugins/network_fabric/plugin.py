"""NetworkFabricScore: GPU pods and gangs go to the better fabric, and members of a job close to each other.

It concerns pods that request GPUs, that are in a gang, or that have one of its annotations. All others score 50
everywhere, so that plain services are not drawn to nodes with an NVSwitch.

Filter: `scheduling.kubenexus.io/min-fabric-tier` refuses nodes on a lesser fabric (nvswitch, nvlink, infiniband, roce,
ethernet, unknown). A value that cannot be read refuses the pod: a requirement must not be lost to a typing error.

Score: half for the fabric, half for the closeness to the nearest member of the job that has a node:

    fabric      nvswitch 100, nvlink 90, infiniband 75, roce 60, ethernet 40, unknown 50
                training and batch: 15 more on nvswitch and infiniband, 20 less on roce and ethernet
                inference and service: 10 more on roce and ethernet, 5 less on nvswitch and infiniband
    closeness   same node or NVLink clique 100, same fabric or top-of-rack switch 75, same rack 50, same zone 25, else 0
                50 everywhere while no member has a node, and with `co-locate: none`

With `network-sensitive: true` closeness counts one and a half times as much. Nodes of 200 Gbps and more have one point
more, which is less than any other difference: it breaks ties. The planner chooses the domain of a gang; these points
decide between domains and nodes that hold it equally well.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import AS_IS, CodedScores, Depends
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict, shared_mask
from kubenexus.plugins.network_fabric.node_facts import (
    TIERS,
    UNKNOWN,
    closeness,
    fabric_tiers,
    has_fast_link,
    is_labelled,
    tier_of,
)
from kubenexus.plugins.network_fabric.request import FabricRequest, fabric_request, preference
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

NO_FABRIC: Final = Reason("node(s) didn't have the requested network fabric", Code.UNRESOLVABLE)
NEUTRAL: Final = 50
FABRIC_POINTS: Final = {"": 50, "ethernet": 40, "roce": 60, "infiniband": 75, "nvlink": 90, "nvswitch": 100}
ADJUSTMENTS: Final[Mapping[str, Mapping[str, int]]] = {
    "training": {"nvswitch": 15, "infiniband": 15, "roce": -20, "ethernet": -20},
    "serving": {"nvswitch": -5, "infiniband": -5, "roce": 10, "ethernet": 10},
    "": {},
}
# Of fabric and closeness, for pods that are not sensitive, and for those that are.
_WEIGHTS: Final = ((2, 2), (2, 3))


class NetworkFabricScore:
    name = "NetworkFabricScore"
    reads = ()
    depends = Depends.JOB
    filter_depends = Depends.NODE
    normalize = AS_IS
    signs_template = True
    default_score = NEUTRAL  # of pods that it does not concern

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        return fabric_request(pod)

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        request = self._request(pod)
        if request.problem:
            return Verdict(Code.UNRESOLVABLE, (request.problem,))
        return None if request.min_tier else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        least = self._request(pod).min_tier
        refused = nodes.cached_until_node_change(
            (self.name, "below", least), lambda nodes: shared_mask(fabric_tiers(nodes) < least)
        )
        if refused is not None:
            verdict.reject_shared(refused, NO_FABRIC)

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | CodedScores | int:
        request = self._request(pod)
        if job.placed and not request.alone:
            return _points(request, nodes, closeness(job.placed, nodes))
        if nodes.rows is not None:
            return _points(request, nodes, NEUTRAL)
        if not is_labelled(nodes):
            return _values(request)[0].item()  # type: ignore[no-any-return]
        asked = (self.name, "score", preference(request.workload), request.sensitive)
        # One object for all classes with equal requests, so that they share the weighted column, too.
        return nodes.cached_until_node_change(  # type: ignore[no-any-return]
            asked, lambda nodes: CodedScores(_codes(nodes), _values(request))
        )

    def _request(self, pod: PodClass) -> FabricRequest:
        signed: FabricRequest = pod.signed.get(self.name, FabricRequest())
        return signed

    def _admits(self, pod: Pod, event: ClusterEvent) -> bool:
        """Returns whether the pod may use the node now and, if the node is not new, could not before."""
        request = fabric_request(pod)
        least = 0 if request is None else request.min_tier
        old, new = event.old, event.new
        return tier_of(new.metadata.labels) >= least and (old is None or tier_of(old.metadata.labels) < least)

    events_to_register = (
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL, _admits),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE),
    )


def fabric_points(fabric: str, workload: str) -> int:
    """Returns the points of a fabric ("": unknown) for a kind of work."""
    return min(max(FABRIC_POINTS[fabric] + ADJUSTMENTS[preference(workload)].get(fabric, 0), 0), 100)


def total_points(fabric: Any, close: Any, *, sensitive: bool) -> Any:
    """Returns the score, from the points of the fabric and of the closeness."""
    of_fabric, of_closeness = _WEIGHTS[sensitive]
    return (of_fabric * fabric + of_closeness * close) // (of_fabric + of_closeness)


def _points(request: FabricRequest, nodes: Nodes, close: Any) -> IntColumn:
    fabric = _by_tier(request)[fabric_tiers(nodes)]
    points: IntColumn = total_points(fabric, close, sensitive=request.sensitive) + has_fast_link(nodes)
    return np.minimum(points, 100)


def _by_tier(request: FabricRequest) -> Any:
    """Returns the points of each tier's fabric."""
    points = {UNKNOWN: fabric_points("", request.workload)}
    points |= {tier: fabric_points(fabric, request.workload) for fabric, tier in TIERS.items()}
    return np.array([points[tier] for tier in sorted(points)], np.int64)


def _codes(nodes: Nodes) -> Any:
    return (2 * fabric_tiers(nodes) + has_fast_link(nodes)).astype(np.intp)


def _values(request: FabricRequest) -> Any:
    """Returns the score of each code while no member has a node."""
    scores = total_points(_by_tier(request), NEUTRAL, sensitive=request.sensitive)
    return np.stack([scores, scores + 1], axis=1).ravel()
