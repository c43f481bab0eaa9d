"""DynamicResources: replaces kube-scheduler's plugin of that name, and rejects pods that only that plugin could place.

Device claims are not allocated here yet. A pod with claims that is bound nevertheless stays in ContainerCreating, on a
node that it cannot leave. A pod that requests a resource which a DeviceClass backs would run without its device on a
node that offers none. Both stay pending with a reason. Where a device plugin offers the resource, it is a plain number,
and NodeResourcesFit counts it.

No configuration removes this plugin from a profile (`framework.profile.stands_in`).
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kubenexus.api.allocatable import allocatable
from kubenexus.api.core import Pod
from kubenexus.api.resource_names import is_basic
from kubenexus.api.resources import demand
from kubenexus.base.errors import truncated
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import Depends
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.pod_signature import MAX_CLAIMS
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.state.view import Nodes

NOT_YET: Final = "device claims are not supported yet"


class DynamicResources:
    name = "DynamicResources"
    reads = ("spec.resourceClaims", "spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")
    depends = Depends.NODE
    stands_in = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        if pod.spec.resource_claims:
            return Verdict(Code.UNRESOLVABLE, (_has_claims(pod),))
        return None if _asked(pod) else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        if pod.spec.resource_claims:
            verdict.reject(np.ones(nodes.width, np.bool_), Reason(_has_claims(pod), Code.UNRESOLVABLE))
            return
        for name in _asked(pod):
            if nodes.is_device_class_resource(name):
                reason = Reason(f"node(s) offer no {truncated(name)}, and {NOT_YET}", Code.UNRESOLVABLE)
                verdict.reject(nodes.alloc(name) <= 0, reason)

    def _offers(self, pod: Pod, event: ClusterEvent) -> bool:
        """Returns whether the node's device plugins offer all resources for which the pod would otherwise need
        claims."""
        offered = dict(allocatable(event.new))
        needed = [name for name, _ in demand(pod).amounts if name in event.delegated]
        return not pod.spec.resource_claims and all(offered.get(name) for name in needed)

    # Claims cannot be removed from a pod, and without its DeviceClass a resource is still missing.
    events_to_register = (
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE, _offers),
    )


def _has_claims(pod: PodClass) -> str:
    names = [truncated(claim.name) for claim in pod.spec.resource_claims[:MAX_CLAIMS]]
    more = ["..."] if len(pod.spec.resource_claims) > MAX_CLAIMS else []
    return f"{NOT_YET}: pod has resource claims [{' '.join([*names, *more])}]"


def _asked(pod: PodClass) -> tuple[str, ...]:
    """Returns the resources of the pod that a DeviceClass may back."""
    return pod.cached(
        "DynamicResources", lambda: tuple(name for name, amount in pod.demand.amounts if amount and not is_basic(name))
    )
