"""NodePorts: two pods cannot have the same port of a host."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import Depends
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip
from kubenexus.state.footprint import host_ports
from kubenexus.state.view import Nodes


class NodePorts:
    name = "NodePorts"
    reads = ("spec.containers", "spec.initContainers")
    depends = Depends.USAGE
    supports_one_node = True
    TAKEN = Reason("node(s) didn't have free ports for the requested pod ports", Code.UNSCHEDULABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | None:
        return None if pod.ports else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        for port in pod.ports:
            clashing = nodes.port_conflicts(port)
            if clashing is not None:
                verdict.reject(clashing, self.TAKEN)

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Limits the class to one pod a node: a second one needs the same ports."""
        if pod.ports:
            np.minimum(capacity, 1, out=capacity)

    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        """Returns no amounts to the gang planner, which handles ports itself."""
        return {}

    def _frees(self, pod: Pod, event: ClusterEvent) -> bool:
        """Returns whether a pod that is gone held a port that this one needs."""
        gone = event.old
        if not gone.spec.node_name and not gone.status.nominated_node_name:
            return False
        return any(ours.clashes(theirs) for ours in host_ports(pod) for theirs in host_ports(gone))

    events_to_register = (
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _frees),
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
    )
