"""What happens in the cluster, as data; and which of it may wake a job that a plugin refused.

A plugin that refuses pods says in its class attribute `events_to_register` what could change its mind: a
`ClusterEventWithHint` names a kind of event and, if not every such event can help, a hint that looks at it. Names and
rules are kube-scheduler's (`EventsToRegister` and the queueing hints), so are the labels, which users know from its
metrics.
"""

import enum
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from kubenexus.api.core import Pod


class EventResource(enum.Enum):
    """What changed. `POD` in a wake means all three of those below it."""

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
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    ANYTHING = "*"

    __hash__ = object.__hash__  # each is one object; the hash of an Enum takes a call of Python


_PODS = frozenset({EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD})


class ActionType(enum.Flag):
    """How it changed. `UPDATE` as an event is a change of none of the kinds that have a name of their own."""

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
        """`UpdateNodeLabel`, as kube-scheduler spells it."""
        return "".join(part.capitalize() for part in str(self.name).split("_"))


class ClusterEvent(msgspec.Struct, frozen=True, gc=False):
    """Something that happened. `old` is None when a thing is new, `new` when it is gone.

    `name` replaces the label. Jobs with more priority than `max_priority` are not concerned: they never minded a pod
    that was only nominated. `delegated` are the extended resources that device classes back, for events about nodes.
    """

    resource: EventResource
    action: ActionType
    old: Any = None
    new: Any = None
    name: str = ""
    max_priority: int | None = None
    delegated: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """As in kube-scheduler's metrics: `NodeAdd`, `AssignedPodDelete`, `NodeUpdateNodeLabel`."""
        return self.name or self.resource.value + self.action.label

    @property
    def is_wildcard(self) -> bool:
        """Whether it wakes everybody, whoever refused them."""
        return self.resource is EventResource.ANYTHING


# The pod in question, and what happened. True: try it again.
QueueingHint = Callable[[Pod, ClusterEvent], bool]


class ClusterEventWithHint(NamedTuple):
    """A kind of event that may help, and the hint that says whether this one does; without a hint each one does.

    In a plugin's `events_to_register` the hint is a function of the plugin, the pod and the event (a method, as it
    stands in the class body); `events_to_register` binds it to the plugin.
    """

    resource: EventResource
    action: ActionType
    hint: Callable[..., bool] | None = None

    def matches(self, event: ClusterEvent) -> bool:
        """An event of just this kind, or of a narrower one. A change of no named kind does not match a named kind."""
        ours, theirs = self.resource, event.resource
        same = ours in (theirs, EventResource.ANYTHING) or (ours is EventResource.POD and theirs in _PODS)
        return same and event.action in self.action


# A plugin that says nothing may be helped by anything.
WILDCARD = (ClusterEventWithHint(EventResource.ANYTHING, ActionType.ALL),)
# The points at which a plugin can refuse a pod.
_REFUSING = ("pre_enqueue", "node_names", "pre_filter", "filter", "assign")


def events_to_register(plugins: Iterable[Any]) -> dict[str, tuple[ClusterEventWithHint, ...]]:
    """The table the queue works by: for each plugin that can refuse, by name, what may wake the jobs it refused."""
    refusing = [each for each in plugins if any(hasattr(each, point) for point in _REFUSING)]
    return {
        each.name: tuple(_bound(wake, each) for wake in getattr(each, "events_to_register", WILDCARD))
        for each in refusing
    }


def _bound(wake: ClusterEventWithHint, plugin: Any) -> ClusterEventWithHint:
    return wake if wake.hint is None else wake._replace(hint=partial(wake.hint, plugin))
