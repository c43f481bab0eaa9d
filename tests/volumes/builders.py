"""Storage objects and pods that mount them, in one line each; what is not said is as the API server would have it."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod
from kubenexus.api.storage import (
    BIND_COMPLETED,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubenexus.framework.profile import EnabledPlugin, Profile, ProfilePlugins
from kubenexus.plugins import BUILT_IN
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import ZONE, a_pod

GI = 1 << 30
DRIVER = "csi.example.com"
Data = Mapping[str, Any]


def a_claim(
    name: str,
    *,
    of: str | None = "wait",
    size: str | None = "1Gi",
    modes: Iterable[str] = ("ReadWriteOnce",),
    volume: str = "",
    bound: bool | None = None,
    selected: str | None = None,
    owner: str = "",
    lost: bool = False,
    deleting: bool = False,
    namespace: str = "default",
    **spec: Any,
) -> PersistentVolumeClaim:
    """`of` is its class. With a volume it is bound, unless told otherwise; `owner` is the UID of the pod it is for."""
    notes = {} if not (volume if bound is None else bound) else {BIND_COMPLETED: "yes"}
    notes |= {} if selected is None else {SELECTED_NODE: selected}
    data = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid of claim {name}",
            "annotations": notes,
            "deletionTimestamp": "2026-01-01T00:00:00Z" if deleting else "",
            "ownerReferences": [{"uid": owner, "controller": True}] if owner else [],
        },
        "spec": {
            "accessModes": list(modes),
            "volumeName": volume,
            "resources": {} if size is None else {"requests": {"storage": size}},
            **({} if of is None else {"storageClassName": of}),
            **spec,
        },
        "status": {"phase": "Lost" if lost else "Bound" if volume else "Pending"},
    }
    return from_data(data, PersistentVolumeClaim)


def a_volume(
    name: str,
    *,
    of: str = "wait",
    size: str = "1Gi",
    modes: Iterable[str] = ("ReadWriteOnce",),
    claim: str = "",
    claim_uid: str | None = None,
    on: Mapping[str, str | list[str]] | None = None,
    terms: list[Data] | None = None,
    source: Data | None = None,
    labels: Mapping[str, str] | None = None,
    phase: str | None = None,
    deleting: bool = False,
    namespace: str = "default",
    **spec: Any,
) -> PersistentVolume:
    """`on` are labels a node must have to use it (`terms` whole terms), `claim` the claim it is bound to."""
    if on is not None:
        wanted = [(k, v if isinstance(v, list) else [v]) for k, v in on.items()]
        terms = [{"matchExpressions": [{"key": k, "operator": "In", "values": v} for k, v in wanted]}]
    refers = {"namespace": namespace, "name": claim, "uid": f"uid of claim {claim}" if claim_uid is None else claim_uid}
    data = {
        "metadata": {
            "name": name,
            "labels": dict(labels or {}),
            "deletionTimestamp": "2026-01-01T00:00:00Z" if deleting else "",
        },
        "spec": {
            "capacity": {"storage": size},
            "accessModes": list(modes),
            "storageClassName": of,
            **({"claimRef": refers} if claim else {}),
            **({} if terms is None else {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}),
            **(source or {"csi": {"driver": DRIVER, "volumeHandle": f"handle of {name}"}}),
            **spec,
        },
        "status": {"phase": phase or ("Bound" if claim else "Available")},
    }
    return from_data(data, PersistentVolume)


def a_class(
    name: str = "wait", *, by: str = DRIVER, mode: str | None = WAIT_FOR_FIRST_CONSUMER, zones: Iterable[str] = ()
) -> StorageClass:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else []
    data = {"metadata": {"name": name}, "provisioner": by, "allowedTopologies": topologies}
    return from_data(data | ({} if mode is None else {"volumeBindingMode": mode}), StorageClass)


def a_csi_node(name: str, limits: Mapping[str, int | None] | None = None, migrated: str = "") -> CSINode:
    """`limits` are the drivers installed on the node, with how many volumes each attaches."""
    drivers = [{"name": d, "allocatable": {} if n is None else {"count": n}} for d, n in (limits or {}).items()]
    notes = {MIGRATED_PLUGINS: migrated} if migrated else {}
    return from_data({"metadata": {"name": name, "annotations": notes}, "spec": {"drivers": drivers}}, CSINode)


def a_driver(name: str = DRIVER, *, capacity: bool = False, needed: bool = False) -> CSIDriver:
    """`needed`: pods with its volumes stay away from nodes without it; `capacity`: it says how much room is left."""
    spec = {"storageCapacity": capacity, "preventPodSchedulingIfMissing": needed}
    return from_data({"metadata": {"name": name}, "spec": spec}, CSIDriver)


def a_capacity(
    name: str,
    room: str | None = "10Gi",
    *,
    of: str = "wait",
    on: Mapping[str, str] | None = None,
    largest: str | None = None,
    nowhere: bool = False,
) -> CSIStorageCapacity:
    data: dict[str, Any] = {"metadata": {"name": name, "namespace": "kube-system"}, "storageClassName": of}
    if not nowhere:
        data["nodeTopology"] = {"matchLabels": dict(on or {})}
    data |= {} if room is None else {"capacity": room}
    return from_data(data | ({} if largest is None else {"maximumVolumeSize": largest}), CSIStorageCapacity)


def an_attachment(name: str, volume: str | None, node: str, by: str = DRIVER) -> VolumeAttachment:
    source = {} if volume is None else {"persistentVolumeName": volume}
    spec = {"attacher": by, "nodeName": node, "source": source}
    return from_data({"metadata": {"name": name}, "spec": spec}, VolumeAttachment)


def mounting(pod: Pod, *volumes: str | Data) -> Pod:
    """The pod with these volumes: the name of a claim, or a source as it stands in a pod. A token comes first, as the
    API server adds one to most pods."""
    data: list[Data] = [{"name": "token"}]
    for i, each in enumerate(volumes):
        source = {"persistentVolumeClaim": {"claimName": each}} if isinstance(each, str) else each
        data.append({"name": f"v{i}", **source})
    spec = msgspec.structs.replace(pod.spec, volumes=from_data({"volumes": data}, type(pod.spec)).volumes)
    return msgspec.structs.replace(pod, spec=spec)


def a_mounting_pod(name: str, *volumes: str | Data, **options: Any) -> Pod:
    return mounting(a_pod(name, **options), *volumes)


def told(ledger: Ledger, *things: Any) -> Ledger:
    for thing in things:
        ledger.upsert_storage(thing)
    return ledger


def only(*names: str, **args: Any) -> ProfilePlugins:
    """A profile of just these plugins."""
    enabled = tuple(EnabledPlugin(name, args=args) for name in names)
    return ProfilePlugins(Profile("test", enabled), BUILT_IN)
