"""Builds a ledger from the objects of a case. Objects that a new plugin reads are added here."""

from collections.abc import Callable
from typing import Any

import msgspec

from kubenexus.api import storage
from kubenexus.api.codec import Unreadable, read_object
from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.resource_claim import DeviceClass, ResourceClaim
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.api.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from kubenexus.state.ledger import Ledger

# For each list of objects: the type to decode, and the ledger's method. Lists that are not named here hold objects that
# no plugin of ours reads yet.
FEEDS: dict[str, tuple[type[Any], Callable[[Ledger, Any], object]]] = {
    "deviceClasses": (DeviceClass, Ledger.upsert_device_class),
    "resourceClaims": (ResourceClaim, Ledger.upsert_resource_claim),
    "resourceSlices": (ResourceSlice, Ledger.upsert_resource_slice),
    "namespaces": (Namespace, Ledger.upsert_namespace),
    "services": (Service, Ledger.upsert_owner),
    "replicationControllers": (ReplicationController, Ledger.upsert_owner),
    "replicaSets": (ReplicaSet, Ledger.upsert_owner),
    "statefulSets": (StatefulSet, Ledger.upsert_owner),
    "nodes": (Node, Ledger.upsert_node),
    "pods": (Pod, Ledger.upsert_pod),
    "podDisruptionBudgets": (PodDisruptionBudget, Ledger.upsert_disruption_budget),
    "persistentVolumes": (storage.PersistentVolume, Ledger.upsert_storage),
    "persistentVolumeClaims": (storage.PersistentVolumeClaim, Ledger.upsert_storage),
    "storageClasses": (storage.StorageClass, Ledger.upsert_storage),
    "csiNodes": (storage.CSINode, Ledger.upsert_storage),
    "csiDrivers": (storage.CSIDriver, Ledger.upsert_storage),
    "csiStorageCapacities": (storage.CSIStorageCapacity, Ledger.upsert_storage),
    "volumeAttachments": (storage.VolumeAttachment, Ledger.upsert_storage),
}


class OracleCase(msgspec.Struct):
    """A cluster and the incoming pods, each evaluated alone."""

    id: str
    kind: str
    incoming: list[msgspec.Raw]
    objects: dict[str, list[msgspec.Raw]] = {}


class Item(msgspec.Struct):
    """An element of a file of cases."""

    case: OracleCase
    expected: msgspec.Raw


def ledger_of(case: OracleCase) -> Ledger:
    """Returns a fresh ledger with all objects, in the order of `FEEDS`."""
    ledger = Ledger()
    for name, (kind, tell) in FEEDS.items():
        for raw in case.objects.get(name, []):
            tell(ledger, _read(raw, kind))
    return ledger


def incoming(case: OracleCase) -> list[Pod]:
    return [_read(raw, Pod) for raw in case.incoming]


def _read(raw: msgspec.Raw, kind: type[Any]) -> Any:
    """Decodes through the decoder for the API server's bytes, so that it is compared, too."""
    found = read_object(raw, kind)
    if isinstance(found, Unreadable):
        raise found.error
    return found
