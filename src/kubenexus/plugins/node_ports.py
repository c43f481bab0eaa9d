"""NodePorts: two pods cannot have the same port of a host."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.numbers import IntColumn
from kubenexus.framework.events import Action, Event, Resource, Wake
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Depends
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip
from kubenexus.state.footprint import host_ports
from kubenexus.state.view import Nodes


class NodePorts:
    name = "NodePorts"
    reads = ("spec.containers", "spec.initContainers")
    depends = Depends.USAGE
    scalar = True
    TAKEN = Reason("node(s) didn't have free ports for the requested pod ports", Code.UNSCHEDULABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def prepare(self, pod: PodClass, nodes: Nodes) -> Skip | None:
        return None if pod.ports else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        for port in pod.ports:
            clashing = nodes.clashing(port)
            if clashing is not None:
                verdict.reject(clashing, self.TAKEN)

    def room(self, pod: PodClass, nodes: Nodes, room: IntColumn) -> None:
        """A second pod of the class would want the very same ports."""
        if pod.ports:
            np.minimum(room, 1, out=room)

    def amounts(self, pod: PodClass) -> Mapping[str, int]:
        """For the gang planner: nothing but ports, which it knows of."""
        return {}

    def _frees(self, pod: Pod, event: Event) -> bool:
        """A pod that is gone held a port that this one wants."""
        gone = event.old
        if not gone.spec.node_name and not gone.status.nominated_node_name:
            return False
        return any(ours.clashes(theirs) for ours in host_ports(pod) for theirs in host_ports(gone))

    wakes = (Wake(Resource.ASSIGNED_POD, Action.DELETE, _frees), Wake(Resource.NODE, Action.ADD))
