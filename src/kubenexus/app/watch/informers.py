"""Watched kinds, and the handler between a reflector and the event handlers. After a list, cached objects that were not
in it are removed."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kubenexus.api.codec import Unreadable, as_unreadable
from kubenexus.api.core import Pod
from kubenexus.api.devices.resource_slice import BasicDevice, ResourceSlice
from kubenexus.api.keys import KEYS
from kubenexus.app.wakeup import Wakeup
from kubenexus.app.watch.event_handlers import EventHandlers
from kubenexus.app.watch.object_handlers import NODE_REPORT
from kubenexus.base.errors import Malformed
from kubenexus.client import kinds
from kubenexus.client.kinds import LIVE_PODS_FIELD_SELECTOR, ApiResource
from kubenexus.client.watch_events import DELETED, WatchEvent
from kubenexus.client.watch_protocols import WatchProblem, WatchTarget
from kubenexus.framework.pod_limits import count_entries
from kubenexus.observe import logs
from kubenexus.state.object_kinds import KINDS, kind_name

# The kinds that define gangs.
GROUP_KINDS = (
    kinds.POD_GROUPS,
    kinds.WORKLOADS,
    kinds.COSCHEDULING_POD_GROUPS,
    kinds.VOLCANO_POD_GROUPS,
    kinds.KUEUE_WORKLOADS,
)

# Pods last, so that the objects a pod refers to are mostly known before it.
WATCHED_KINDS = (
    kinds.NODES,
    kinds.NAMESPACES,
    kinds.QUEUES,
    kinds.CLUSTER_QUEUES,
    kinds.LOCAL_QUEUES,
    kinds.STORAGE_CLASSES,
    kinds.CSI_DRIVERS,
    kinds.CSI_NODES,
    kinds.CSI_STORAGE_CAPACITIES,
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.VOLUME_ATTACHMENTS,
    kinds.DEVICE_CLASSES,
    kinds.DEVICE_TAINT_RULES,
    kinds.RESOURCE_SLICES,
    kinds.RESOURCE_CLAIMS,
    kinds.NODE_RESOURCE_TOPOLOGIES,
    kinds.SERVICES,
    kinds.REPLICATION_CONTROLLERS,
    kinds.REPLICA_SETS,
    kinds.STATEFUL_SETS,
    kinds.POD_DISRUPTION_BUDGETS,
    kinds.PRIORITY_CLASSES,
    kinds.RESOURCE_RESERVATIONS,
    *GROUP_KINDS,
    kinds.PODS,
)

# Pods are placed without these kinds: an older cluster does not serve them, or its roles do not name them. Where one
# cannot be listed, only pods that name such an object wait for it. No decision depends on budgets and priority classes.
# Devices are known from the labels of their nodes, too, and tenants from those of their namespaces.
OPTIONAL = frozenset(
    {
        kinds.QUEUES,
        kinds.CLUSTER_QUEUES,
        kinds.LOCAL_QUEUES,
        kinds.DEVICE_CLASSES,
        kinds.DEVICE_TAINT_RULES,
        kinds.RESOURCE_SLICES,
        kinds.RESOURCE_CLAIMS,
        kinds.NODE_RESOURCE_TOPOLOGIES,
        kinds.POD_DISRUPTION_BUDGETS,
        kinds.PRIORITY_CLASSES,
        kinds.RESOURCE_RESERVATIONS,
        *GROUP_KINDS,
    }
)

# Other forms of a kind, for servers that do not know the newest.
FALLBACK_VERSIONS: dict[ApiResource, tuple[ApiResource, ...]] = {
    kinds.CLUSTER_QUEUES: (kinds.CLUSTER_QUEUES_OLD,),
    kinds.LOCAL_QUEUES: (kinds.LOCAL_QUEUES_OLD,),
    kinds.KUEUE_WORKLOADS: (kinds.KUEUE_WORKLOADS_OLD,),
    kinds.DEVICE_CLASSES: (kinds.DEVICE_CLASSES_BETA,),
    kinds.DEVICE_TAINT_RULES: (kinds.DEVICE_TAINT_RULES_BETA,),
    kinds.RESOURCE_CLAIMS: (kinds.RESOURCE_CLAIMS_BETA,),
    kinds.RESOURCE_SLICES: (kinds.RESOURCE_SLICES_BETA, kinds.RESOURCE_SLICES_OLD),
    kinds.POD_GROUPS: (kinds.POD_GROUPS_ALPHA, kinds.POD_GROUPS_OLD),
    kinds.WORKLOADS: (kinds.WORKLOADS_ALPHA, kinds.WORKLOADS_OLD, kinds.WORKLOADS_OLDEST),
}

PLAIN_POD = 12  # entries that take as long as a pod without any
PER_KEY = 4  # entries that take as long as a label or annotation that the scheduler reads
PLAIN_SLICE = 40  # entries that take as long as a ResourceSlice without devices: all nodes may see it

log = logs.get("watch")


def watch_target(resource: ApiResource) -> WatchTarget:
    """Returns how a kind is watched: only pods that have not ended, and the served version of pod groups."""
    kind = KINDS[kind_name(resource.kind, resource.group)].type
    if resource is kinds.PODS:
        return WatchTarget(resource, kind, LIVE_PODS_FIELD_SELECTOR, work=pod_entries)
    fallbacks = FALLBACK_VERSIONS.get(resource, ())
    if resource is kinds.RESOURCE_SLICES:
        return WatchTarget(resource, kind, fallback_resources=fallbacks, work=slice_entries)
    return WatchTarget(resource, kind, fallback_resources=fallbacks)


def pod_entries(thing: Pod | Unreadable) -> int:
    """Returns the work of a pod for the handler: `PLAIN_POD`, one for each entry that is work (terms, requirements,
    containers and so on), and `PER_KEY` for each key of the registry. A bound pod with 500 short affinity terms takes
    20 ms and has 48 KB: its length shows nothing. An ordinary one takes 0.14 ms, and a megabyte of a watch may have
    1,400."""
    if not isinstance(thing, Pod):
        return 1
    meta = thing.metadata
    stated = len(KEYS.intersection(meta.labels)) + len(KEYS.intersection(meta.annotations))
    return PLAIN_POD + PER_KEY * stated + sum(count_entries(thing).values())


def slice_entries(thing: ResourceSlice | Unreadable) -> int:
    """Returns the work of a slice for the handler: `PLAIN_SLICE`, and what its devices state. One of 128 devices with
    two attributes and a capacity takes 3 ms, and a megabyte of a watch may have 30 of them."""
    if not isinstance(thing, ResourceSlice):
        return 1
    return PLAIN_SLICE + sum([_device_entries(device.content) for device in thing.spec.devices])


def _device_entries(device: BasicDevice) -> int:
    counters = sum([1 + len(each.counters) for each in device.consumes_counters])
    return 1 + len(device.attributes) + len(device.capacity) + len(device.taints) + counters


class InformerHandler:
    """A `WatchHandler` for one kind. After each batch it builds changed gangs and wakes the loop."""

    def __init__(self, handlers: EventHandlers, resource: ApiResource, wakeup: Wakeup) -> None:
        self._handlers, self._objects, self._wakeup = handlers, handlers.objects, wakeup
        self._kind = kind_name(resource.kind, resource.group)
        self._seen, self._gone, self._keys = _handlers(handlers, self._kind)
        self._in_list = handlers.pod_listed if self._kind == "Pod" else self._seen
        self._listed: set[str] = set()

    def list_started(self) -> None:
        self._listed = set()

    def list_page(self, items: list[Any], unreadable: tuple[Unreadable, ...]) -> None:
        for item in items:
            self._listed.add(item.metadata.key)
            self._take(item, self._in_list)
        for bad in unreadable:
            self._bad(bad)
        self._handlers.ledger.select_budgets()

    def list_finished(self) -> None:
        for key in set(self._keys()) - self._listed:
            self._drop(key)
        self._listed = set()
        self._list_complete()
        self._flush()

    def unlisted(self) -> None:
        """Records that the kind has yet to be listed, or cannot be listed now."""
        self._objects.unlisted(self._kind)
        self._flush()

    def events(self, changes: list[WatchEvent]) -> None:
        for event in changes:
            thing = event.object
            if isinstance(thing, Unreadable):
                if event.type == DELETED:
                    self._drop(_key(thing))
                else:
                    self._bad(thing)
            elif event.type != DELETED:
                self._take(thing, self._seen)
            else:
                self._drop(thing.metadata.key, thing)
        self._flush()

    def problem_changed(self, trouble: WatchProblem) -> None:
        if not trouble.text:
            log.info("Watch is well again", resource=str(trouble.resource))
            self._list_complete()
            self._flush()
        elif trouble.code == 404:
            log.info("Kind is not served here; looking for it again later", resource=str(trouble.resource))
        else:
            log.error("Watch failed; trying again", err=trouble.text, resource=str(trouble.resource))
        if trouble.serious and trouble.code != 404:
            self.unlisted()

    # No handler below may raise: the task that runs a watch ends with it, and the process with the task.

    def _take(self, thing: Any, seen: Callable[[Any], None]) -> None:
        """Calls the handler for an object. An object whose handler raises is treated as one that cannot be decoded,
        unless it is a pod that counts on its node already: the watch goes on."""
        try:
            seen(thing)
        except Exception as error:
            if isinstance(thing, Pod):
                self._set_aside(f"Pod {thing.key}", partial(self._handlers.on_failed_pod, thing, error))
            else:
                self._bad(as_unreadable(thing, Malformed(f"{type(error).__name__}: {error}")))

    def _bad(self, bad: Unreadable) -> None:
        """Handles an object that cannot be decoded. Its cached state stays, except for a pod: that may use an unknown
        amount, so its node is blocked."""
        self._listed.add(_key(bad))
        if self._kind == "Pod":
            self._set_aside(bad.subject, partial(self._handlers.on_unreadable_pod, bad))
        else:
            self._set_aside(bad.subject, partial(self._objects.unreadable, self._kind, bad))

    @staticmethod
    def _set_aside(subject: str, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            log.error("Failed to set an object aside; going on", error, object=subject)  # noqa: PLE1205 - our own log

    def _drop(self, key: str, last: Any = None) -> None:
        """Removes an object that is gone; `last` is its last state, if the watch sent it."""
        try:
            if isinstance(last, Pod):
                self._handlers.on_pod_delete(key, last)
            else:
                self._gone(key)
        except Exception as error:
            log.error("Failed to remove an object; going on", error, object=f"{self._kind} {key}")  # noqa: PLE1205 - our own log

    def _list_complete(self) -> None:
        if self._kind == "Pod":
            self._handlers.pods_listed()
        self._objects.listed(self._kind)

    def _flush(self) -> None:
        """Builds changed gangs into the queue and wakes the loop."""
        self._handlers.ledger.select_budgets()
        self._handlers.assembler.build_changed()
        self._wakeup.set()


def _handlers(
    handlers: EventHandlers, kind: str
) -> tuple[Callable[[Any], None], Callable[[str], None], Callable[[], Iterable[str]]]:
    if kind == "Pod":
        return handlers.on_pod_update, handlers.on_pod_delete, handlers.pod_keys
    if kind == "Node":
        return handlers.on_node_update, handlers.on_node_delete, handlers.node_keys
    if kind == NODE_REPORT:
        return handlers.node_reports.on_update, handlers.node_reports.on_delete, partial(handlers.objects.keys, kind)
    objects = handlers.objects
    return partial(objects.on_update, kind), partial(objects.on_delete, kind), partial(objects.keys, kind)


def _key(bad: Unreadable) -> str:
    return f"{bad.namespace}/{bad.name}" if bad.namespace else bad.name
