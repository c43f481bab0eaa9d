"""NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon's taint."""

from collections.abc import Mapping
from typing import Any

from kubenexus.api.core import Pod, Taint
from kubenexus.api.tolerations import tolerated
from kubenexus.framework.events import Action, Event, Resource, Wake
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Depends
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, shareable
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
            refused = nodes.remembered(self, lambda nodes: shareable(nodes.cordoned.copy()))
            if refused is not None:
                verdict.reject_some(refused, self.CORDONED)

    def _opens(self, pod: Pod, event: Event) -> bool:
        """A node that is new and open, or was cordoned and is no longer."""
        return not event.new.spec.unschedulable and (event.old is None or event.old.spec.unschedulable)

    def _tolerates_now(self, pod: Pod, event: Event) -> bool:
        return tolerated(event.new.spec.tolerations, CORDON)

    wakes = (
        Wake(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _opens),
        Wake(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION, _tolerates_now),
    )
