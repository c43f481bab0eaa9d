"""Cluster events, and which of them may make a job schedulable again that a plugin refused.

A plugin that refuses pods lists in its class attribute `events_to_register` the events that could change its result. A
`ClusterEventWithHint` names a kind of event and, if not every such event helps, a queueing hint that checks one. Names
and rules are kube-scheduler's (`EventsToRegister`, queueing hints), and so are the labels in metrics.
"""

import enum
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from kubenexus.api.core import Pod


class EventResource(enum.Enum):
    """The kind of object that changed. `POD` in a registration means the three kinds of pods below it."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"  # one that has a node
    UNSCHEDULED_POD = "UnscheduledPod"  # one that waits, other than the pod in question
    TARGET_POD = "TargetPod"  # the waiting pod itself
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    DEVICE_TAINT_RULE = "resource.k8s.io/DeviceTaintRule"
    NODE_RESOURCE_TOPOLOGY = "topology.node.k8s.io/NodeResourceTopology"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    NAMESPACE = "Namespace"  # or a Kueue queue: the waiting pod's tenant has another tier
    ANYTHING = "*"

    __hash__ = object.__hash__  # members are singletons, and the hash of Enum is a Python call


_PODS = frozenset({EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD})


class ActionType(enum.Flag):
    """How the object changed. An event `UPDATE` is a change of none of the kinds that have a name of their own."""

    ADD = enum.auto()
    DELETE = enum.auto()
    UPDATE_NODE_ALLOCATABLE = enum.auto()
    UPDATE_NODE_LABEL = enum.auto()
    UPDATE_NODE_TAINT = enum.auto()  # the cordon counts as one
    UPDATE_NODE_CONDITION = enum.auto()
    UPDATE_NODE_ANNOTATION = enum.auto()
    UPDATE_NODE_DECLARED_FEATURE = enum.auto()
    UPDATE_POD_LABEL = enum.auto()
    UPDATE_POD_SCALE_DOWN = enum.auto()
    UPDATE_POD_SCALE_UP = enum.auto()
    UPDATE_POD_TOLERATION = enum.auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = enum.auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = enum.auto()
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_SCALE_UP
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
    )
    ALL = ADD | DELETE | UPDATE

    __hash__ = object.__hash__

    @property
    def label(self) -> str:
        """The name in kube-scheduler's metrics: `UpdateNodeLabel`."""
        return "".join(part.capitalize() for part in str(self.name).split("_"))


# A class that avoids nodes (`plan.node_backoff`): its namespace and the signature of its pods.
ClassBackoff = tuple[str, bytes]


class ClusterEvent(msgspec.Struct, frozen=True, gc=False):
    """A change of one object. `old` is None when the object is new, `new` when it is deleted.

    `name` replaces the label. The event does not concern jobs with more priority than `max_priority`: a nominated pod
    of less priority never kept them from a node. `delegated`, for events about nodes, are the extended resources that
    device classes back. An event with `backoffs` concerns only jobs whose refusal names one of them
    (`framework.decision.Decision.backoffs`). `held_devices`: the pod that is gone held devices by name, by the ledger's
    record of it; its own annotations may say anything.
    """

    resource: EventResource
    action: ActionType
    old: Any = None
    new: Any = None
    name: str = ""
    max_priority: int | None = None
    delegated: frozenset[str] = frozenset()
    backoffs: frozenset[ClassBackoff] = frozenset()
    held_devices: bool = False

    @property
    def label(self) -> str:
        """The name in kube-scheduler's metrics: `NodeAdd`, `AssignedPodDelete`, `NodeUpdateNodeLabel`."""
        return self.name or self.resource.value + self.action.label

    @property
    def is_wildcard(self) -> bool:
        """Whether the event concerns all jobs, no matter which plugin refused them."""
        return self.resource is EventResource.ANYTHING


# Called with the waiting pod and the event. True: try the pod again.
QueueingHint = Callable[[Pod, ClusterEvent], bool]


class ClusterEventWithHint(NamedTuple):
    """A kind of event that may help, and the hint that checks a single event. Without a hint every such event helps.

    In a plugin's `events_to_register` the hint is a function of the plugin, the pod and the event (a method, as named
    in the class body). The function `events_to_register` binds it to the plugin.
    """

    resource: EventResource
    action: ActionType
    hint: Callable[..., bool] | None = None

    def matches(self, event: ClusterEvent) -> bool:
        """Whether the event is of this kind or a narrower one. A plain `UPDATE` matches no named kind of update."""
        ours, theirs = self.resource, event.resource
        same = ours in (theirs, EventResource.ANYTHING) or (ours is EventResource.POD and theirs in _PODS)
        return same and event.action in self.action


# For plugins without `events_to_register`: every event may help.
WILDCARD = (ClusterEventWithHint(EventResource.ANYTHING, ActionType.ALL),)
# The points at which a plugin can refuse a pod.
_REFUSING = ("pre_enqueue", "node_names", "pre_filter", "filter", "assign")


def events_to_register(plugins: Iterable[Any]) -> dict[str, tuple[ClusterEventWithHint, ...]]:
    """Returns, for each plugin that can refuse a pod, the events that may help the jobs it refused, by plugin name."""
    refusing = [each for each in plugins if any(hasattr(each, point) for point in _REFUSING)]
    return {
        each.name: tuple(_bound(wake, each) for wake in getattr(each, "events_to_register", WILDCARD))
        for each in refusing
    }


def _bound(wake: ClusterEventWithHint, plugin: Any) -> ClusterEventWithHint:
    return wake if wake.hint is None else wake._replace(hint=partial(wake.hint, plugin))
