"""NUMATopology: pods go where their kubelet will admit them, and where their NUMA policy can be kept.

Filter: a node that reports its NUMA nodes (NodeResourceTopology) is refused if its kubelet would refuse the pod, under
any policy of its Topology Manager: by the free CPUs, memory and devices of each NUMA node, pods counted that the report
has not seen. Each container is judged by itself for all rows at once; `assign` judges the whole pod, container
after container, on the row that was chosen. On top of that comes the pod's own policy:

    single-numa-node  cpu, memory and devices (or the `resources` that it names) are free on one NUMA node
    restricted        they are free on as few NUMA nodes as would do if nothing ran there
    isolated          the same as single-numa-node, on a NUMA node where nothing is in use
    best-effort, none any node

Batch and training without a policy have single-numa-node, except on machines whose NUMA nodes are all too small. What a
node does not report is unknown and refuses nothing.

Score: the points of the best NUMA node (`points.py`); 50 on nodes without a report, and for pods without a policy.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.numa.pod_demand import PodDemand
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import AS_IS, Depends, Plugin
from kubenexus.framework.job import NO_ASSIGNMENT, Assignment, JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Verdict
from kubenexus.plugins.numa.class_rules import rules_of
from kubenexus.plugins.numa.combined import UNKNOWN, CombinedNumaRule, reasons_against
from kubenexus.plugins.numa.gang_capacity import members_by_row, surely_admitted
from kubenexus.plugins.numa.judging import judge_rows, score_one, score_rows
from kubenexus.plugins.numa.keeping_off import all_keep_off, kept_off_rows
from kubenexus.plugins.numa.reasons import KEPT, NO_ALIGNMENT, REASONS
from kubenexus.plugins.numa.request import NAME, numa_request
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.numa.columns import NumaColumns, RowNuma
from kubenexus.state.view import Nodes, OneNode


class NUMATopology:
    name = NAME
    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")
    depends = Depends.USAGE
    normalize = AS_IS
    supports_one_node = True
    signs_template = True
    default_score = UNKNOWN  # of pods that ask nothing of NUMA nodes, and while no node reports any

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def combine(self, others: Mapping[str, Plugin]) -> CombinedNumaRule:
        return CombinedNumaRule()

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        return numa_request(pod) if nodes.numa.any else None

    # --- filter ---------------------------------------------------------------------------------------------------

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        rules, numa = rules_of(pod), nodes.columns.numa
        if isinstance(nodes, OneNode):
            here = numa.of_row(nodes.row)
            for reason in () if here is None else reasons_against(rules, numa, nodes.row, here):
                verdict.reject(True, reason)
            return
        if not numa.any:
            return
        for refused, reason in zip(judge_rows(rules, nodes), REASONS, strict=True):
            verdict.reject(refused, reason)
        kept_off = kept_off_rows(rules, nodes)
        if kept_off is not None:
            verdict.reject(kept_off & (numa.layouts[nodes.where] >= 0), KEPT)

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        if rules_of(pod).simple:
            return NO_ASSIGNMENT  # the filter has judged all of the pod
        found = self.assign_members(pod, row, nodes, 1)
        return found if isinstance(found, Verdict) else found[0]

    def assign_members(self, pod: PodClass, row: int, nodes: Nodes, members: int) -> list[Assignment] | Verdict:
        """Refuses the row if its kubelet would not admit so many of these pods, one after the other."""
        numa, rules = nodes.columns.numa, rules_of(pod)
        here = numa.of_row(row)
        if here is None or rules.demand is None or not here.reported.judged:
            return [NO_ASSIGNMENT] * members
        if not all_keep_off(rules, numa, row, here, members):
            return Verdict(Code.UNSCHEDULABLE, (KEPT.text,))
        if surely_admitted(rules, numa, row, here, members):
            return [NO_ASSIGNMENT] * members
        if _admitted(numa, here, rules.demand, members) < members:
            return Verdict(Code.UNSCHEDULABLE, (NO_ALIGNMENT.text,))
        return [NO_ASSIGNMENT] * members

    # --- gangs ----------------------------------------------------------------------------------------------------

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Limits the number of members (`gang_capacity`)."""
        if nodes.columns.numa.any:
            np.minimum(capacity, members_by_row(rules_of(pod), nodes), out=capacity)

    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        """Returns nothing: NodeResourcesFit counts the numbers, and `assign_members` what each NUMA node has."""
        return {}

    # --- score ----------------------------------------------------------------------------------------------------

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        rules, numa = rules_of(pod), nodes.columns.numa
        if isinstance(nodes, OneNode):
            reports = rules.scored and numa.of_row(nodes.row) is not None
            return score_one(rules, numa, nodes.row) if reports else UNKNOWN
        if not rules.scored or not numa.any:
            return np.full(nodes.width, UNKNOWN, np.int64)
        scores: IntColumn = score_rows(rules, nodes, UNKNOWN)
        return scores

    events_to_register = (
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE),
        ClusterEventWithHint(EventResource.NODE_RESOURCE_TOPOLOGY, ActionType.ALL),
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE),
    )


def _admitted(numa: NumaColumns, here: RowNuma, demand: PodDemand, members: int) -> int:
    """Returns how many of so many members the kubelet of a row would admit."""
    usage = here.usage
    for number in range(members):
        after = numa.after(here, usage, demand)
        if after is None:
            return number
        usage = after
    return members
