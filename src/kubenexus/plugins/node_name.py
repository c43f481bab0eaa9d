"""NodeName: a pod that names its node runs there or nowhere."""

from collections.abc import Mapping
from typing import Any

from kubenexus.framework.events import Action, Resource, Wake
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Depends, Only
from kubenexus.framework.verdict import Code, NodeVerdict, Reason
from kubenexus.state.view import Nodes


class NodeName:
    name = "NodeName"
    reads = ("spec.nodeName",)
    depends = Depends.NODE
    wakes = (Wake(Resource.NODE, Action.ADD),)
    ELSEWHERE = Reason("node(s) didn't match the requested node name", Code.UNRESOLVABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def prepare(self, pod: PodClass, nodes: Nodes) -> Only | None:
        return Only(frozenset({pod.spec.node_name})) if pod.spec.node_name else None

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        if pod.spec.node_name:
            verdict.reject(~nodes.named([pod.spec.node_name]), self.ELSEWHERE)
