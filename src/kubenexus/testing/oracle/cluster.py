"""From the objects of a case to a ledger. What a new plugin needs to see of a cluster is fed here."""

from collections.abc import Callable
from typing import Any

import msgspec

from kubenexus.api import storage
from kubenexus.api.codec import Unreadable, read_object
from kubenexus.api.core import DeviceClass, Node, Pod
from kubenexus.api.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from kubenexus.state.ledger import Ledger

# For each list of objects: the type it is read as, and how the ledger is told. Lists that are not named here hold
# objects that no rule of ours reads yet.
FEEDS: dict[str, tuple[type[Any], Callable[[Ledger, Any], object]]] = {
    "deviceClasses": (DeviceClass, Ledger.device_class_seen),
    "namespaces": (Namespace, Ledger.namespace_seen),
    "services": (Service, Ledger.owner_seen),
    "replicationControllers": (ReplicationController, Ledger.owner_seen),
    "replicaSets": (ReplicaSet, Ledger.owner_seen),
    "statefulSets": (StatefulSet, Ledger.owner_seen),
    "nodes": (Node, Ledger.node_seen),
    "pods": (Pod, Ledger.pod_seen),
    "persistentVolumes": (storage.PersistentVolume, Ledger.storage_seen),
    "persistentVolumeClaims": (storage.PersistentVolumeClaim, Ledger.storage_seen),
    "storageClasses": (storage.StorageClass, Ledger.storage_seen),
    "csiNodes": (storage.CSINode, Ledger.storage_seen),
    "csiDrivers": (storage.CSIDriver, Ledger.storage_seen),
    "csiStorageCapacities": (storage.CSIStorageCapacity, Ledger.storage_seen),
    "volumeAttachments": (storage.VolumeAttachment, Ledger.storage_seen),
}


class Case(msgspec.Struct):
    """A cluster and the pods that come to it, each evaluated alone."""

    id: str
    kind: str
    incoming: list[msgspec.Raw]
    objects: dict[str, list[msgspec.Raw]] = {}


class Item(msgspec.Struct):
    """An element of a file of cases."""

    case: Case
    expected: msgspec.Raw


def ledger_of(case: Case) -> Ledger:
    """A fresh ledger that was told of every object, in the order of the lists."""
    ledger = Ledger()
    for name, (kind, tell) in FEEDS.items():
        for raw in case.objects.get(name, []):
            tell(ledger, _read(raw, kind))
    return ledger


def incoming(case: Case) -> list[Pod]:
    return [_read(raw, Pod) for raw in case.incoming]


def _read(raw: msgspec.Raw, kind: type[Any]) -> Any:
    """Through the decoder that reads the API server's bytes: it is on trial like everything else."""
    found = read_object(raw, kind)
    if isinstance(found, Unreadable):
        raise found.error
    return found
