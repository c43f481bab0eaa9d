"""The node of a case as a scheduler sees it: its NodeResourceTopology, the Node and the pods on it."""

from collections.abc import Mapping

from kubenexus.api.core import Node
from kubenexus.api.numa.machine import NumaNode
from kubenexus.api.numa.pod_demand import pod_demand
from kubenexus.api.numa.reported_node import KubeletOptions, Totals, reported_node
from kubenexus.api.quantity import to_units
from kubenexus.testing.numa_oracle.cases import Case
from kubenexus.testing.numa_oracle.from_state import kubelet_of, used_by_pods


def node_from_nrt(case: Case) -> NumaNode | None:
    """Returns the node, or None if it tells nothing. Options of the kubelet are known, as from labels of a node."""
    told = kubelet_of(case.kubelet)
    options = KubeletOptions(told.prefer_closest, told.full_cores_only, told.spread_cpus)
    used, pods = used_by_pods(case), case.pods or []
    seen = reported_node(case.nrt, totals_of(case.node, used), [pod_demand(pod) for pod in pods], options)
    return NumaNode(seen.kubelet, seen.machine, seen.usage, case.node, used, len(pods)) if seen else None


def totals_of(node: Node, used: Mapping[str, int]) -> Totals:
    """Returns the amounts of a Node in whole units."""
    capacity, allocatable = (
        {name: to_units(text) for name, text in amounts.items()}
        for amounts in (node.status.capacity, node.status.allocatable)
    )
    return Totals(capacity, allocatable, used)
