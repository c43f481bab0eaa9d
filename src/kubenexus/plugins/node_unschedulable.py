"""NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon's taint."""

from collections.abc import Mapping
from typing import Any

from kubenexus.api.core import Taint
from kubenexus.api.tolerations import tolerated
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Depends
from kubenexus.framework.verdict import Code, NodeVerdict, Reason
from kubenexus.state.view import Nodes

CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    name = "NodeUnschedulable"
    reads = ("spec.tolerations",)
    depends = Depends.NODE
    CORDONED = Reason("node(s) were unschedulable", Code.UNRESOLVABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        if nodes.cordons and not tolerated(pod.spec.tolerations, CORDON):
            verdict.reject(nodes.cordoned, self.CORDONED)
