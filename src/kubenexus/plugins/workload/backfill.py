"""BackfillScoring: pods that agree to be preempted keep off nodes that are reserved for better tenants.

Ordinary pods score 50 everywhere. A pod that is marked (`workload.kubenexus.io/preemptible`, or the label
`scheduling.kubenexus.io/backfill`), or whose priority is negative, is placed by the strategy of its workload, as
WorkloadAwareScoring has it: full nodes first for batch and training, empty ones for others. From this 15 points are
taken for each tier by which `tenant.kubenexus.io/reserved-tier` of the node is above the pod's. So the plugin never
opposes the strategy; it moves gap fillers out of the way of those for whom a node is kept.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.keys import tenant
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.devices.reserved_tier import reserved_rank, reserved_ranks
from kubenexus.plugins.devices.tenant_tier import RANKS, tier_of
from kubenexus.plugins.workload.signed import workload_of
from kubenexus.plugins.workload.utilization import Weights, utilization_points
from kubenexus.plugins.workload.workload_aware import PACK, placement_of
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

NEUTRAL: Final = 50
PER_RANK: Final = 15  # points for each tier between the pod's and that of the reservation


class BackfillScoring:
    name = "BackfillScoring"
    reads = ()
    depends = Depends.USAGE
    normalize = AS_IS
    supports_one_node = True
    signs_template = True
    default_score = NEUTRAL

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._weights = Weights()

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        if not workload_of(pod).preemptible:
            return None
        return placement_of(pod), RANKS[tier_of(pod, nodes)]

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        placement, rank = pod.signed[self.name]
        points = utilization_points(nodes, self._weights, packs=placement == PACK)
        reserved = nodes.columns.labels.rows_with(tenant.RESERVED_TIER.key)
        if isinstance(nodes, OneNode):
            above = reserved_rank(nodes.labels.get(tenant.RESERVED_TIER.key, "")) - rank if reserved else 0
            return int(max(points - PER_RANK * max(above, 0), 0))
        column = points.astype(np.int64)
        if reserved:
            column -= PER_RANK * np.maximum(reserved_ranks(nodes) - rank, 0)
        kept: IntColumn = np.maximum(column, 0)
        return kept
