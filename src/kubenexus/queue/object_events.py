"""Makes cluster events from changes of nodes and pods.

An update from a watch has only the new object. Most updates change nothing that scheduling depends on (a heartbeat of
the kubelet, a timestamp of a condition): for a node they make no event, for a pod one of no named kind. The watches
call these functions and `queue.scheduling_queue`.
"""

import msgspec

from kubenexus.api.allocatable import allocatable
from kubenexus.api.core import Node, Pod
from kubenexus.api.resize import is_infeasible
from kubenexus.api.resources import milli_requests
from kubenexus.base.errors import Malformed
from kubenexus.framework.cluster_events import ActionType, ClassBackoff, ClusterEvent, EventResource

# Wakes all jobs, after a change that no plugin registers for, such as another configuration.
WILDCARD_EVENT = ClusterEvent(EventResource.ANYTHING, ActionType.ALL, name="ForceActivate")

_NO_RESOURCES: frozenset[str] = frozenset()


def backoffs_ended(backoffs: frozenset[ClassBackoff]) -> ClusterEvent:
    """Node backoffs ended: jobs that were refused without those nodes may use them again. All others are not concerned,
    since any tenant can cause such events."""
    return ClusterEvent(EventResource.ANYTHING, ActionType.ALL, name="NodeBackoffEnd", backoffs=backoffs)


def node_added(node: Node, delegated: frozenset[str] = _NO_RESOURCES) -> ClusterEvent:
    return ClusterEvent(EventResource.NODE, ActionType.ADD, new=node, delegated=delegated)


def node_gone(node: Node) -> ClusterEvent:
    return ClusterEvent(EventResource.NODE, ActionType.DELETE, old=node)


def node_changed(old: Node, new: Node, delegated: frozenset[str] = _NO_RESOURCES) -> list[ClusterEvent]:
    """Returns one event for each kind of change. A cordon helps no job and makes no event."""
    actions = []
    if old.status.allocatable != new.status.allocatable and _offers(old) != _offers(new):
        actions.append(ActionType.UPDATE_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        actions.append(ActionType.UPDATE_NODE_LABEL)
    uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    if uncordoned or old.spec.taints != new.spec.taints:
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if old.metadata.annotations != new.metadata.annotations:
        actions.append(ActionType.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        actions.append(ActionType.UPDATE_NODE_DECLARED_FEATURE)
    return [ClusterEvent(EventResource.NODE, action, old, new, delegated=delegated) for action in actions]


def pod_bound(pod: Pod) -> ClusterEvent:
    """A pod was bound to a node, by this or another scheduler."""
    return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, new=pod)


def pod_gone(pod: Pod, *, held_devices: bool = False) -> ClusterEvent:
    """A pod that had a node was deleted, or has finished."""
    return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=pod, held_devices=held_devices)


def pod_forgotten(pod: Pod, node: str, *, held_devices: bool = False) -> ClusterEvent:
    """An assumed pod was not bound: its requests on the node are free again, and the devices that it was given."""
    held = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
    return pod_gone(held, held_devices=held_devices)


def nomination_ended(pod: Pod, node: str = "") -> ClusterEvent:
    """A waiting pod is no longer nominated to its node (it is gone, or nominated to another). That frees capacity for
    jobs of its priority and below. `node` is the node by the ledger: the pod's status may not have it yet."""
    if node and node != pod.status.nominated_node_name:
        pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=node))
    return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=pod, max_priority=pod.spec.priority)


def pod_changed(old: Pod, new: Pod, *, target: bool = False) -> list[ClusterEvent]:
    """Returns one event for each kind of change; `target`: the pod itself is the waiting one."""
    resource = EventResource.TARGET_POD if target else EventResource.UNSCHEDULED_POD
    if new.spec.node_name:
        resource = EventResource.ASSIGNED_POD
    actions = [action for action, happened in _pod_actions(old, new) if happened]
    return [ClusterEvent(resource, action, old, new) for action in actions or (ActionType.UPDATE,)]


def _pod_actions(old: Pod, new: Pod) -> list[tuple[ActionType, bool]]:
    before, after = ({}, {}) if _asks_alike(old, new) else (_asks(old), _asks(new))
    return [
        (ActionType.UPDATE_POD_LABEL, old.metadata.labels != new.metadata.labels),
        (ActionType.UPDATE_POD_SCALE_DOWN, _more(before, after)),
        (ActionType.UPDATE_POD_SCALE_UP, _more(after, before)),
        (
            ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates,
        ),
        # Tolerations can only be added: the API server refuses anything else.
        (ActionType.UPDATE_POD_TOLERATION, len(old.spec.tolerations) != len(new.spec.tolerations)),
        (
            ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
            old.status.resource_claim_statuses != new.status.resource_claim_statuses,
        ),
    ]


def _more(this: dict[str, int], that: dict[str, int]) -> bool:
    """Whether any amount is larger in `this` than in `that`, or missing there."""
    return any(name not in that or amount > that[name] for name, amount in this.items())


def _asks_alike(old: Pod, new: Pod) -> bool:
    """Whether all fields that requests are computed from are equal, as after most updates."""
    return _counted_from(old) == _counted_from(new)


def _counted_from(pod: Pod) -> tuple[object, ...]:
    spec, status = pod.spec, pod.status
    reported = (status.container_statuses, status.init_container_statuses, status.allocated_resources)
    asked = (spec.containers, spec.init_containers, spec.overhead, spec.resources)
    return (*asked, *reported, status.resources, is_infeasible(pod))


def _asks(pod: Pod) -> dict[str, int]:
    """Returns the requests in thousandths, as kube-scheduler compares them; {} if they cannot be parsed."""
    try:
        return milli_requests(pod)
    except Malformed:
        return {}


def _offers(node: Node) -> object:
    """Returns amounts, so that 1000m and 1 are equal; the text itself if it cannot be parsed."""
    try:
        return allocatable(node)
    except Malformed:
        return node.status.allocatable
