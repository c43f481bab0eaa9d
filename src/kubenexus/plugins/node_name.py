"""NodeName: a pod that names its node runs only there."""

from collections.abc import Mapping
from typing import Any

from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import Depends, PreFilterResult
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason
from kubenexus.state.view import Nodes


class NodeName:
    name = "NodeName"
    reads = ("spec.nodeName",)
    depends = Depends.NODE
    events_to_register = (ClusterEventWithHint(EventResource.NODE, ActionType.ADD),)
    ELSEWHERE = Reason("node(s) didn't match the requested node name", Code.UNRESOLVABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> PreFilterResult | None:
        return PreFilterResult(frozenset({pod.spec.node_name})) if pod.spec.node_name else None

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        if pod.spec.node_name:
            verdict.reject(~nodes.named([pod.spec.node_name]), self.ELSEWHERE)
