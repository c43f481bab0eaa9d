"""NodeUnschedulable: a cordoned node accepts only pods that tolerate the cordon's taint."""

from collections.abc import Mapping
from typing import Any

from kubenexus.api.core import Pod, Taint
from kubenexus.api.tolerations import tolerated
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import Depends
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, shared_mask
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
            refused = nodes.cached_until_node_change(self, lambda nodes: shared_mask(nodes.cordoned.copy()))
            if refused is not None:
                verdict.reject_shared(refused, self.CORDONED)

    def _opens(self, pod: Pod, event: ClusterEvent) -> bool:
        """Returns whether the node is not cordoned and is new or was cordoned before."""
        return not event.new.spec.unschedulable and (event.old is None or event.old.spec.unschedulable)

    def _tolerates_now(self, pod: Pod, event: ClusterEvent) -> bool:
        return tolerated(event.new.spec.tolerations, CORDON)

    events_to_register = (
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _opens),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE_POD_TOLERATION, _tolerates_now),
    )
