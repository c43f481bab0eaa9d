"""The table of object kinds: how each is decoded and passed to the ledger. Used by the live watch, files and tests.

A kind of another API group that has the same name as one of Kubernetes' own is listed as `Kind.group`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from kubenexus.api import storage
from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device_taint_rule import DeviceTaintRule
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.api.devices.resource_claim import DeviceClass, ResourceClaim
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.api.gangs.declaration import COSCHEDULING, KUEUE_WORKLOAD, POD_GROUP, VOLCANO, WORKLOAD
from kubenexus.api.kueue import ClusterQueue, KueueWorkload, LocalQueue
from kubenexus.api.queues.queue import Queue
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.api.workloads import (
    Namespace,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    Workload,
)
from kubenexus.state.ledger import Ledger

QUEUE = "Queue.scheduling.kubenexus.io"  # Volcano has another kind of this name


class KindHandler(NamedTuple):
    """The type that a kind is decoded into, and the ledger's methods for an object that was added or changed and for
    one that is gone. The latter takes the object's key (`ObjectMeta.key`)."""

    type: type[Any]
    seen: Callable[[Ledger, Any], object]
    gone: Callable[[Ledger, str], object]


def _by_name(method: str) -> Callable[[Ledger, Any], object]:
    """Returns a call of the ledger's own method, which a subclass may override."""
    return lambda ledger, argument: getattr(ledger, method)(argument)


def _owner_gone(kind: type[Any], ledger: Ledger, key: str) -> None:
    namespace, _, name = key.partition("/")
    ledger.remove_owner(kind, namespace, name)


def _storage_gone(kind: type[Any], ledger: Ledger, key: str) -> None:
    ledger.remove_storage(kind, key)


def _owner(kind: type[Any]) -> KindHandler:
    return KindHandler(kind, _by_name("upsert_owner"), partial(_owner_gone, kind))


def _stored(kind: type[Any]) -> KindHandler:
    return KindHandler(kind, _by_name("upsert_storage"), partial(_storage_gone, kind))


def _group(name: str, kind: type[Any]) -> KindHandler:
    """A kind that pods name as their gang."""
    return KindHandler(
        kind,
        lambda ledger, thing: ledger.groups.seen(name, thing),
        lambda ledger, key: ledger.groups.gone(name, key),
    )


def _pod_group_seen(ledger: Ledger, group: PodGroup) -> None:
    ledger.groups.seen(POD_GROUP, group)
    ledger.nodes.claims.pod_groups.set(group)


def _pod_group_gone(ledger: Ledger, key: str) -> None:
    ledger.groups.gone(POD_GROUP, key)
    ledger.nodes.claims.pod_groups.remove(key)


def _unread(kind: type[Any]) -> KindHandler:
    """A kind that is watched but does not change the ledger."""
    return KindHandler(kind, lambda ledger, thing: None, lambda ledger, key: None)


KINDS: dict[str, KindHandler] = {
    "Namespace": KindHandler(Namespace, _by_name("upsert_namespace"), _by_name("remove_namespace")),
    "ClusterQueue": KindHandler(
        ClusterQueue,
        lambda ledger, thing: ledger.nodes.tenants.set_cluster_queue(thing),
        lambda ledger, key: ledger.nodes.tenants.remove_cluster_queue(key),
    ),
    "LocalQueue": KindHandler(
        LocalQueue,
        lambda ledger, thing: ledger.nodes.tenants.set_local_queue(thing),
        lambda ledger, key: ledger.nodes.tenants.remove_local_queue(key),
    ),
    QUEUE: KindHandler(
        Queue,
        lambda ledger, thing: ledger.queues.set_object(thing),
        lambda ledger, key: ledger.queues.remove_object(key),
    ),
    "DeviceClass": KindHandler(DeviceClass, _by_name("upsert_device_class"), _by_name("remove_device_class")),
    "DeviceTaintRule": KindHandler(
        DeviceTaintRule, _by_name("upsert_device_taint_rule"), _by_name("remove_device_taint_rule")
    ),
    "ResourceClaim": KindHandler(ResourceClaim, _by_name("upsert_resource_claim"), _by_name("remove_resource_claim")),
    "ResourceSlice": KindHandler(ResourceSlice, _by_name("upsert_resource_slice"), _by_name("remove_resource_slice")),
    "NodeResourceTopology": KindHandler(
        NodeResourceTopology, _by_name("upsert_node_topology"), _by_name("remove_node_topology")
    ),
    "Service": _owner(Service),
    "ReplicationController": _owner(ReplicationController),
    "ReplicaSet": _owner(ReplicaSet),
    "StatefulSet": _owner(StatefulSet),
    "StorageClass": _stored(storage.StorageClass),
    "CSIDriver": _stored(storage.CSIDriver),
    "CSINode": _stored(storage.CSINode),
    "CSIStorageCapacity": _stored(storage.CSIStorageCapacity),
    "PersistentVolume": _stored(storage.PersistentVolume),
    "PersistentVolumeClaim": _stored(storage.PersistentVolumeClaim),
    "VolumeAttachment": _stored(storage.VolumeAttachment),
    "PodDisruptionBudget": KindHandler(
        PodDisruptionBudget, _by_name("upsert_disruption_budget"), _by_name("remove_disruption_budget")
    ),
    "PriorityClass": _unread(PriorityClass),
    "ResourceReservation": KindHandler(
        ResourceReservation,
        lambda ledger, thing: ledger.reservation_objects.seen(thing),
        lambda ledger, key: ledger.reservation_objects.gone(key),
    ),
    POD_GROUP: KindHandler(PodGroup, _pod_group_seen, _pod_group_gone),
    COSCHEDULING: _group(COSCHEDULING, PodGroup),
    VOLCANO: _group(VOLCANO, PodGroup),
    WORKLOAD: _group(WORKLOAD, Workload),
    KUEUE_WORKLOAD: KindHandler(
        KueueWorkload,
        lambda ledger, thing: ledger.kueue_workloads.set(thing),
        lambda ledger, key: ledger.kueue_workloads.remove(key),
    ),
    "Node": KindHandler(Node, _by_name("upsert_node"), _by_name("remove_node")),
    "Pod": KindHandler(Pod, _by_name("upsert_pod"), _by_name("remove_pod")),
}


GROUP_KINDS = frozenset({POD_GROUP, COSCHEDULING, VOLCANO, WORKLOAD, KUEUE_WORKLOAD})
# Kinds that tell whose a pod is.
TENANT_KINDS = frozenset({"Namespace", "LocalQueue", "ClusterQueue"})


def kind_name(kind: str, group: str) -> str:
    """Returns the name in `KINDS` of a kind of an API group ("" for the core group)."""
    full = f"{kind}.{group}"
    return full if full in KINDS else kind


def apply_object(ledger: Ledger, kind: str, thing: Any) -> None:
    """Passes an object to the ledger. Raises Malformed if the object cannot be used."""
    KINDS[kind].seen(ledger, thing)
