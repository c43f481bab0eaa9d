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
from typing import Any, Final

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.numa.machine import BEST_EFFORT, NONE
from kubenexus.api.numa.many_nodes import FITS, NO_AFFINITY
from kubenexus.api.numa.pod_demand import ContainerDemand, PodDemand
from kubenexus.api.numa.quick_judgement import refusals
from kubenexus.api.numa.refusal import TOPOLOGY
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.job import NO_ASSIGNMENT, Assignment, JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, Verdict
from kubenexus.plugins.numa import request as asked
from kubenexus.plugins.numa.one_node import one_score
from kubenexus.plugins.numa.request import NAME, NumaRequest, demand_of, numa_request, request_of, wanted_by
from kubenexus.plugins.numa.zones import Zones
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.numa.columns import NumaColumns, RowNuma
from kubenexus.state.view import Nodes, OneNode

NO_ALIGNMENT: Final = Reason("node(s) didn't have NUMA nodes that the kubelet could align the pod on")
NO_ROOM: Final = Reason("node(s) didn't have the exclusive CPUs, memory or devices on their NUMA nodes")
NOT_KEPT: Final = Reason("node(s) couldn't keep the pod's NUMA policy")
UNKNOWN: Final = 50
_POLICIES: Final = frozenset({asked.SINGLE, asked.RESTRICTED, asked.ISOLATED})


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

    def sign_template(self, pod: Pod, nodes: NodeColumns) -> Any:
        return numa_request(pod)

    def sign_pod(self, pod: Pod, nodes: NodeColumns, template: Any) -> Any:
        return template if nodes.numa.any else None

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        return numa_request(pod) if nodes.numa.any else None

    # --- filter ---------------------------------------------------------------------------------------------------

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        view = nodes.as_column() if isinstance(nodes, OneNode) else nodes
        request, demand = request_of(pod), demand_of(pod)
        own = request.policy in _POLICIES
        if isinstance(nodes, OneNode) and not own:
            self._filter_one(demand, nodes, verdict)
            return
        unaligned = np.zeros(view.width, np.bool_)
        lacking, broken = unaligned.copy(), unaligned.copy()
        for layout, where, rows in _layouts(view):
            table = nodes.columns.numa.table(layout, rows)
            for container in _distinct(demand):
                found = refusals(container, table)
                unaligned[where] |= found == NO_AFFINITY
                lacking[where] |= (found != FITS) & (found != NO_AFFINITY)
            if own:
                broken[where] = _zones(request, pod, nodes, layout, rows).refused()
        for mask, reason in ((unaligned, NO_ALIGNMENT), (lacking & ~unaligned, NO_ROOM), (broken, NOT_KEPT)):
            verdict.reject(bool(mask[0]) if nodes.single else mask, reason)

    def _filter_one(self, demand: PodDemand | None, node: OneNode, verdict: NodeVerdict) -> None:
        """The same for one row: each container alone, as `many_nodes` judges it."""
        here = node.columns.numa.of_row(node.row)
        if here is None:
            return
        reasons = [node.columns.numa.refusal(here, each) for each in _alone(demand)]
        unaligned = TOPOLOGY in reasons
        verdict.reject(unaligned, NO_ALIGNMENT)
        verdict.reject(not unaligned and any(reasons), NO_ROOM)

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        found = self.assign_members(pod, row, nodes, 1)
        return found if isinstance(found, Verdict) else found[0]

    def assign_members(self, pod: PodClass, row: int, nodes: Nodes, members: int) -> list[Assignment] | Verdict:
        """Refuses the row if its kubelet would not admit so many of these pods, one after the other."""
        numa, demand = nodes.columns.numa, demand_of(pod)
        here = numa.of_row(row)
        if here is not None and demand is not None and _admitted(numa, here, demand, members) < members:
            return Verdict(Code.UNSCHEDULABLE, (NO_ALIGNMENT.text,))
        return [NO_ASSIGNMENT] * members

    # --- gangs ----------------------------------------------------------------------------------------------------

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Limits the number of members. Where all resources of a pod come from one NUMA node, the members of each NUMA
        node add up. In other cases a row takes one at a time."""
        demand = demand_of(pod)
        for layout, where, rows in _layouts(nodes):
            table = nodes.columns.numa.table(layout, rows)
            members = capacity[where]
            if demand is not None:
                aligned = table.kubelet.policy not in (NONE, BEST_EFFORT)
                members = np.minimum(members, _in_zones(demand, table) if aligned else 1)
            if request_of(pod).policy in _POLICIES:
                members = np.minimum(members, 1)
            capacity[where] = members

    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        """Returns nothing: NodeResourcesFit counts the numbers, and `assign_members` what each NUMA node has."""
        return {}

    # --- score ----------------------------------------------------------------------------------------------------

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        request = request_of(pod)
        if isinstance(nodes, OneNode):
            here = nodes.columns.numa.of_row(nodes.row)
            if here is None or not _is_scored(request):
                return UNKNOWN
            alone = one_score(request, wanted_by(pod), here)
            if alone is not None:
                return alone
        view = nodes.as_column() if isinstance(nodes, OneNode) else nodes
        scores = np.full(view.width, UNKNOWN, np.int64)
        for layout, where, rows in _layouts(view) if _is_scored(request) else ():
            scores[where] = _zones(request, pod, nodes, layout, rows).scores()
        return int(scores[0]) if nodes.single else scores

    events_to_register = (
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE),
        ClusterEventWithHint(EventResource.NODE_RESOURCE_TOPOLOGY, ActionType.ALL),
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE),
    )


def _is_scored(request: NumaRequest) -> bool:
    return request.pinned or request.policy != asked.NONE


def _layouts(nodes: Nodes) -> Any:
    """Yields each layout with the places of its rows in the view, and the rows."""
    layouts = nodes.columns.numa.layouts
    if not len(layouts):
        return
    if nodes.rows is None:
        common = nodes.columns.numa.covers(nodes.columns.size)
        if common is not None:
            yield common, slice(None), slice(0, nodes.columns.size)
            return
    rows = nodes.table_rows()
    if len(rows) == 1:
        if layouts[rows[0]] >= 0:
            yield int(layouts[rows[0]]), slice(None), rows
        return
    codes = layouts[rows]
    for layout in np.unique(codes[codes >= 0]):
        where = np.flatnonzero(codes == layout)
        yield int(layout), where, rows[where]


def _distinct(demand: PodDemand | None) -> list[ContainerDemand]:
    """Returns the different containers of a pod, in order, without names and kinds: each must be admitted by itself."""
    plain = [
        ContainerDemand(cpus=each.cpus, memory=each.memory, devices=each.devices)
        for each in (demand.containers if demand else ())
    ]
    return list(
        dict.fromkeys(each for each in plain if each.cpus or each.memory is None or each.memory or each.devices)
    )


def _alone(demand: PodDemand | None) -> list[PodDemand]:
    """Returns a pod for each different container; the pod itself, if it has only one."""
    asking = _distinct(demand)
    if demand is not None and len(asking) == len(demand.containers) == 1 and not demand.containers[0].init:
        return [demand]
    return [PodDemand((each,), each.cpus, each.memory, each.devices) for each in asking]


def _zones(request: NumaRequest, pod: PodClass, nodes: Nodes, layout: int, rows: Any) -> Zones:
    numa = nodes.columns.numa
    table, ids, apart = numa.table(layout, rows), numa.zone_ids(layout, rows), numa.distances(layout, rows)
    return Zones(request, wanted_by(pod), table, ids, apart)


def _admitted(numa: NumaColumns, here: RowNuma, demand: PodDemand, members: int) -> int:
    usage = here.usage
    for number in range(members):
        after = numa.after(here, usage, demand)
        if after is None:
            return number
        usage = after
    return members


def _in_zones(demand: PodDemand, table: Any) -> Any:
    """Returns how many members get all they want of one NUMA node each; 1 where a pod has several containers with
    demands, or wants more than one NUMA node has."""
    asking = [each for each in demand.containers if each.cpus or each.memory or each.devices]
    if len(asking) != 1:
        return 1
    room = np.full(table.free_cpus.shape, np.iinfo(np.int64).max)
    enough = np.ones(table.free_cpus.shape, np.bool_)
    for number, free, total in _limits(asking[0], table):
        room = np.minimum(room, free // number)
        enough &= total >= number
    shared = (table.blocks > 0) & (table.groups != 1 << np.arange(table.zones))
    members = np.where(shared | ~enough, 0, room).sum(axis=1)
    return np.where(enough.any(axis=1), np.maximum(members, 1), 1)


def _limits(wanted: ContainerDemand, table: Any) -> Any:
    """Yields for each resource what a member wants, and what is free and in all on the NUMA nodes of each row."""
    if wanted.cpus and table.kubelet.static_cpus:
        yield wanted.cpus, table.free_cpus, table.all_cpus
    for kind, size in wanted.memory or ():
        if size and table.kubelet.static_memory and kind in table.all_memory:
            yield size, table.free_memory[kind], table.all_memory[kind]
    for name, number in wanted.devices:
        if number and name in table.all_devices:
            yield number, table.free_devices[name], table.all_devices[name]
