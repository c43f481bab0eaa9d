"""The four rules about volumes once more, for one pod and one node, over plain API objects, as kube-scheduler 1.37
does it: nothing is counted, cached or indexed, everything is looked up anew.

`World` is what the API server would list, the pods on nodes, and what was promised.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kubenexus.api.core import Node, NodeSelectorTerm, Pod, Volume
from kubenexus.api.quantity import read_quantity
from kubenexus.api.storage import (
    BETA_STORAGE_CLASS,
    BIND_COMPLETED,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)
from kubenexus.framework.verdict import Code
from tests.plugins.reference import label_holds, parses

U, UR, ERROR = Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.ERROR
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
EBS, EBS_DRIVER, EBS_ZONE = "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
GCE_DRIVER = "pd.csi.storage.gke.io"

Answer = tuple[Code, frozenset[str]]
PASS: Answer = (Code.SUCCESS, frozenset())
SKIPPED = "skipped"


class Refused(Exception):
    """How upstream returns early, from wherever it is."""

    def __init__(self, code: Code, reason: str) -> None:
        self.answer: Answer = (code, frozenset({reason}))


class Promise(msgspec.Struct):
    volume: str
    node: str
    pods: list[str]


class World:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.placed: dict[str, tuple[Pod, str]] = {}  # pods that have a node, whether that exists or not
        self.picks: dict[str, dict[str, str]] = {}  # what was promised to a pod's claims
        self.objects: dict[type, dict[str, Any]] = {}
        self.promises: dict[str, Promise] = {}

    # --- events, as the ledger is told of them --------------------------------------------------------------------

    def upsert_storage(self, thing: StorageObject) -> None:
        self.objects.setdefault(type(thing), {})[thing.metadata.key] = thing
        if isinstance(thing, PersistentVolumeClaim) and thing.metadata.key in self.promises:
            promise, noted = self.promises[thing.metadata.key], SELECTED_NODE in thing.metadata.annotations
            if thing.spec.volume_name not in ("", promise.volume) or (noted and not promise.volume):
                del self.promises[thing.metadata.key]
        if isinstance(thing, PersistentVolume) and thing.spec.claim_ref is not None:
            self.promises = {k: p for k, p in self.promises.items() if p.volume != thing.metadata.name}

    def remove_storage(self, kind: type, key: str) -> None:
        self.objects.setdefault(kind, {}).pop(key, None)

    def upsert_node(self, node: Node) -> None:
        new = node.metadata.name not in self.nodes
        self.nodes[node.metadata.name] = node
        for key, (_, at) in list(self.placed.items()):
            if new and at == node.metadata.name:
                self._hold(key)

    def remove_node(self, name: str) -> None:
        for key, (_, at) in self.placed.items():
            if at == name and name in self.nodes:
                self._release(key)
        self.nodes.pop(name, None)

    def place(self, pod: Pod, node: str, picks: Mapping[str, str] | None = None) -> None:
        self.gone(pod.key)
        self.placed[pod.key], self.picks[pod.key] = (pod, node), dict(picks or {})
        if node in self.nodes:
            self._hold(pod.key)

    def gone(self, key: str) -> None:
        if key in self.placed and self.placed[key][1] in self.nodes:
            self._release(key)
        self.placed.pop(key, None)
        self.picks.pop(key, None)

    def _hold(self, key: str) -> None:
        node = self.placed[key][1]
        for claim, volume in self.picks[key].items():
            promise = self.promises.get(claim)
            elsewhere = volume and any(p.volume == volume for k, p in self.promises.items() if k != claim)
            if promise is None and not elsewhere:
                self.promises[claim] = Promise(volume, "" if volume else node, [key])
            elif promise is not None and (promise.volume, promise.node) == (volume, "" if volume else node):
                promise.pods.append(key)

    def _release(self, key: str) -> None:
        node = self.placed[key][1]
        for claim, volume in self.picks[key].items():
            promise = self.promises.get(claim)
            if promise is not None and (promise.volume, promise.node) == (volume, "" if volume else node):
                promise.pods.pop()
                if not promise.pods:
                    del self.promises[claim]

    # --- reading --------------------------------------------------------------------------------------------------

    def all(self, kind: type) -> list[Any]:
        return list(self.objects.get(kind, {}).values())

    def get(self, kind: type, key: str) -> Any:
        return self.objects.get(kind, {}).get(key)

    def pods_on(self, node: str) -> list[Pod]:
        return [pod for pod, at in self.placed.values() if at == node]

    def pods_on_nodes(self) -> list[Pod]:
        return [pod for pod, at in self.placed.values() if at in self.nodes]


def claims_of(pod: Pod) -> Iterator[tuple[int, Volume, str, bool]]:
    """The volumes that have claims: position, volume, the claim's name, whether it was made for the pod."""
    for position, volume in enumerate(pod.spec.volumes):
        if volume.persistent_volume_claim is not None:
            yield position, volume, volume.persistent_volume_claim.claim_name, False
        elif volume.ephemeral is not None:
            yield position, volume, f"{pod.metadata.name}-{volume.name}", True


def claim_named(pod: Pod, name: str, world: World) -> PersistentVolumeClaim | None:
    return world.get(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}")


def class_of(thing: PersistentVolumeClaim | PersistentVolume) -> str:
    noted = thing.metadata.annotations.get(BETA_STORAGE_CLASS)
    return thing.spec.storage_class_name or "" if noted is None else noted


def is_for(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    return pod.metadata.uid in [o.uid for o in claim.metadata.owner_references if o.controller]


def not_for(pod: Pod, claim: PersistentVolumeClaim) -> str:
    return f"PVC {claim.metadata.key} was not created for pod {pod.key} (pod is not owner)"


def storage(amounts: Mapping[str, Any] | None) -> Any:
    return read_quantity((amounts or {}).get("storage", 0))


# --- VolumeRestrictions -----------------------------------------------------------------------------------------------


class VolumeRestrictions:
    TAKEN = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another "
        "pod"
    )

    def before(self, pod: Pod, world: World) -> Answer | str | None:
        for _, _, name, ephemeral in claims_of(pod):
            if not ephemeral and claim_named(pod, name, world) is None:
                return UR, frozenset({f'persistentvolumeclaim "{name}" not found'})
        return None if self._disks(pod) or self._taken(pod, world) else SKIPPED

    def node(self, pod: Pod, node: Node, world: World) -> Answer:
        for disk in self._disks(pod):
            for other in world.pods_on(node.metadata.name):
                if any(self._clash(disk, volume) for volume in other.spec.volumes):
                    return U, frozenset({"node(s) had no available disk"})
        return (U, frozenset({self.TAKEN})) if self._taken(pod, world) else PASS

    def _disks(self, pod: Pod) -> list[Volume]:
        return [
            v
            for v in pod.spec.volumes
            if (v.gce_persistent_disk or v.aws_elastic_block_store or v.rbd or v.iscsi) is not None
        ]

    def _taken(self, pod: Pod, world: World) -> bool:
        for _, _, name, ephemeral in claims_of(pod):
            claim = claim_named(pod, name, world)
            if ephemeral or claim is None or "ReadWriteOncePod" not in claim.spec.access_modes:
                continue
            for other in world.pods_on_nodes():
                used = [n for _, _, n, made in claims_of(other) if not made]
                if other.metadata.namespace == pod.metadata.namespace and name in used:
                    return True
        return False

    def _clash(self, one: Volume, other: Volume) -> bool:
        gce, gce2 = one.gce_persistent_disk, other.gce_persistent_disk
        if gce and gce2 and gce.pd_name == gce2.pd_name and not (gce.read_only and gce2.read_only):
            return True
        aws, aws2 = one.aws_elastic_block_store, other.aws_elastic_block_store
        if aws and aws2 and aws.volume_id == aws2.volume_id:
            return True
        scsi, scsi2 = one.iscsi, other.iscsi
        if scsi and scsi2 and scsi.iqn == scsi2.iqn and not (scsi.read_only and scsi2.read_only):
            return True
        rbd, rbd2 = one.rbd, other.rbd
        if not rbd or not rbd2 or (rbd.pool, rbd.image) != (rbd2.pool, rbd2.image):
            return False
        return bool(set(rbd.monitors) & set(rbd2.monitors)) and not (rbd.read_only and rbd2.read_only)


# --- VolumeZone -------------------------------------------------------------------------------------------------------


class VolumeZone:
    KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)

    def before(self, pod: Pod, world: World) -> Answer | str | None:
        try:
            return None if self._topologies(pod, world) else SKIPPED
        except Refused as refused:
            return refused.answer

    def node(self, pod: Pod, node: Node, world: World) -> Answer:
        labels = node.metadata.labels
        if not any(key in labels for key in self.KEYS):
            return PASS
        for key, values in self._topologies(pod, world):
            value = labels.get(key)
            if value is None:
                value = labels.get({BETA_ZONE: ZONE, BETA_REGION: REGION}.get(key, key))
            if value not in values:
                return UR, frozenset({"node(s) had no available volume zone"})
        return PASS

    def _topologies(self, pod: Pod, world: World) -> list[tuple[str, set[str]]]:
        found = []
        for _, _, name, ephemeral in claims_of(pod):
            if ephemeral:
                continue
            volume = self._volume(pod, name, world)
            for key in self.KEYS if volume is not None else ():
                zones = [zone.strip() for zone in volume.metadata.labels.get(key, "").split("__")]
                if key in volume.metadata.labels and "" not in zones:
                    found.append((key, set(zones)))
        return found

    def _volume(self, pod: Pod, name: str, world: World) -> Any:
        if not name:
            raise Refused(UR, "PersistentVolumeClaim had no name")
        claim = claim_named(pod, name, world)
        if claim is None:
            raise Refused(UR, f'persistentvolumeclaim "{name}" not found')
        if claim.spec.volume_name:
            volume = world.get(PersistentVolume, claim.spec.volume_name)
            if volume is None:
                raise Refused(UR, f'persistentvolume "{claim.spec.volume_name}" not found')
            return volume
        known = world.get(StorageClass, class_of(claim))
        if not class_of(claim):
            raise Refused(UR, "PersistentVolumeClaim had no pv name and storageClass name")
        if known is None:
            raise Refused(UR, f'storageclass.storage.k8s.io "{class_of(claim)}" not found')
        if known.volume_binding_mode is None:
            raise Refused(UR, f'VolumeBindingMode not set for StorageClass "{class_of(claim)}"')
        if known.volume_binding_mode != "WaitForFirstConsumer":
            raise Refused(UR, "PersistentVolume had no name")
        return None


# --- NodeVolumeLimits -------------------------------------------------------------------------------------------------


class NodeVolumeLimits:
    def before(self, pod: Pod, world: World) -> Answer | str | None:
        concerned = any(True for _ in claims_of(pod)) or any(map(self._inline, pod.spec.volumes))
        return None if concerned else SKIPPED

    def node(self, pod: Pod, node: Node, world: World) -> Answer:
        try:
            return self._node(pod, node, world)
        except Refused as refused:
            return refused.answer

    def _node(self, pod: Pod, node: Node, world: World) -> Answer:
        csi_node = world.get(CSINode, node.metadata.name)
        new = self.volumes(pod, csi_node, world, new=True)
        installed = {driver.name for driver in csi_node.spec.drivers} if csi_node else set()
        for driver in new.values():
            known = world.get(CSIDriver, driver)
            if known and known.spec.prevent_pod_scheduling_if_missing and driver not in installed:
                return U, frozenset({f"{driver} CSI driver is not installed on the node"})
        limits = self._limits(csi_node)
        if not new or not limits:
            return PASS
        used: dict[tuple[str, str], str] = {}
        for other in world.pods_on(node.metadata.name):
            used |= self.volumes(other, csi_node, world, new=False)
        counted = used | self.attached(node.metadata.name, world)
        for driver in set(new.values()):
            adds = sum(1 for volume, d in new.items() if d == driver and volume not in used)
            has = sum(1 for d in counted.values() if d == driver)
            if adds and driver in limits and has + adds > limits[driver]:
                return U, frozenset({"node(s) exceed max volume count"})
        return PASS

    def volumes(self, pod: Pod, csi_node: CSINode | None, world: World, *, new: bool) -> dict[tuple[str, str], str]:
        """By driver and handle, the volumes that drivers attach for a pod. What is wrong with a pod that runs is no
        error of another pod (upstream: it is)."""
        found: dict[tuple[str, str], str] = {}
        for _, _, name, ephemeral in claims_of(pod):
            claim = claim_named(pod, name, world)
            if not name and new:
                raise Refused(ERROR, "PersistentVolumeClaim had no name")
            if claim is None and new:
                raise Refused(
                    UR, f'looking up PVC {pod.metadata.namespace}/{name}: persistentvolumeclaim "{name}" not found'
                )
            if claim is None:
                continue
            if ephemeral and not is_for(pod, claim):
                if new:
                    raise Refused(ERROR, not_for(pod, claim))
                continue
            driver, handle = self._of_claim(claim, csi_node, world)
            if driver and handle:
                found[driver, handle] = driver
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None and volume.ephemeral is None and csi_node is not None:
                try:
                    found |= self._of_inline(volume)
                except Refused:
                    if new:
                        raise
        return found

    def attached(self, node: str, world: World) -> dict[tuple[str, str], str]:
        found = {}
        for attachment in world.all(VolumeAttachment):
            spec = attachment.spec
            volume = world.get(PersistentVolume, spec.source.persistent_volume_name or "")
            if spec.node_name == node and spec.attacher and volume is not None and volume.spec.csi is not None:
                found[spec.attacher, volume.spec.csi.volume_handle] = spec.attacher
        return found

    def _of_claim(self, claim: PersistentVolumeClaim, csi_node: CSINode | None, world: World) -> tuple[str, str]:
        volume = world.get(PersistentVolume, claim.spec.volume_name)
        if claim.spec.volume_name and volume is not None:
            if volume.spec.csi is not None:
                return volume.spec.csi.driver, volume.spec.csi.volume_handle
            disk = volume.spec.aws_elastic_block_store
            return (EBS_DRIVER, disk.volume_id) if disk is not None and csi_node is not None else ("", "")
        known = world.get(StorageClass, class_of(claim))
        if not class_of(claim) or known is None:
            return "", ""
        if known.provisioner == EBS:
            return (EBS_DRIVER, f"for {claim.metadata.key}") if csi_node is not None else ("", "")
        return known.provisioner, f"for {claim.metadata.key}"

    def _inline(self, volume: Volume) -> bool:
        return volume.aws_elastic_block_store is not None or volume.gce_persistent_disk is not None

    def _of_inline(self, volume: Volume) -> dict[tuple[str, str], str]:
        if volume.aws_elastic_block_store is not None:
            handle = volume.aws_elastic_block_store.volume_id
            if handle.startswith("aws://") and "vol-" not in handle:
                problem = f"Invalid format for AWS volume ({handle})"
                raise Refused(
                    ERROR,
                    f"converting volume({volume.name}) from inline to csi: failed to translate Kubernetes ID to EBS "
                    f"Volume ID {problem}",
                )
            return {(EBS_DRIVER, handle): EBS_DRIVER}
        if volume.gce_persistent_disk is not None:
            name = volume.gce_persistent_disk.pd_name
            return {(GCE_DRIVER, f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{name}"): GCE_DRIVER}
        return {}

    def _limits(self, csi_node: CSINode | None) -> dict[str, int]:
        drivers = csi_node.spec.drivers if csi_node is not None else []
        counts = [(d.name, d.allocatable.count if d.allocatable else None) for d in drivers]
        return {name: count for name, count in counts if count is not None}


# --- VolumeBinding ----------------------------------------------------------------------------------------------------


class Found(msgspec.Struct):
    """What a node gives a pod: volumes for claims, and claims for which new ones would be made."""

    static: list[tuple[int, PersistentVolumeClaim, PersistentVolume]]
    dynamic: list[tuple[int, PersistentVolumeClaim, CSIStorageCapacity | None]]


class VolumeBinding:
    AWAY = "node(s) didn't match PersistentVolume's node affinity"
    NONE = "node(s) didn't find available persistent volumes to bind"
    SPACE = "node(s) did not have enough free storage"
    GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

    def before(self, pod: Pod, world: World) -> Answer | str | None:
        try:
            self._split(pod, world)
        except Refused as refused:
            return refused.answer
        return None if [*claims_of(pod)] else SKIPPED

    def node(self, pod: Pod, node: Node, world: World) -> Answer:
        found = self.find(pod, node, world)
        return PASS if isinstance(found, Found) else (UR, frozenset(found))

    def score(self, pod: Pod, node: Node, world: World) -> int:
        found = self.find(pod, node, world) if self.before(pod, world) is None else set()
        if not isinstance(found, Found):
            return 0
        asked: dict[str, int] = {}
        has: dict[str, int] = {}
        for _, claim, volume in found.static:
            name = volume.spec.storage_class_name
            asked[name] = asked.get(name, 0) + storage(claim.spec.resources.requests).units()
            has[name] = has.get(name, 0) + storage(volume.spec.capacity).units()
        for _, claim, capacity in found.dynamic if not found.static else ():
            if capacity is not None and capacity.capacity is not None:  # upstream panics if only the largest is known
                name = claim.spec.storage_class_name or ""
                asked[name] = asked.get(name, 0) + storage(claim.spec.resources.requests).units()
                has[name] = read_quantity(capacity.capacity).units()
        points = []
        for name, amount in asked.items():
            used = 100 if has[name] == 0 or amount > has[name] else amount * 100 // has[name]
            points.append(100 - used)
        return math.floor(sum(points) / len(points) + 0.5) if points else 0

    def find(self, pod: Pod, node: Node, world: World) -> Found | set[str]:
        """What the node gives, or the reasons why it cannot."""
        bound, waiting = self._split(pod, world)
        reasons = self._check_bound(bound, node, world)
        for _, claim in waiting:
            if self._selected(claim, world) not in (None, node.metadata.name):
                return reasons | {self.NONE}
        to_make = [each for each in waiting if self._selected(each[1], world) is not None]
        to_match = [each for each in waiting if self._selected(each[1], world) is None]
        found = Found([], [])
        for position, claim in sorted(to_match, key=lambda each: storage(each[1].spec.resources.requests)):
            volume = self._match(claim, node, world, {v.metadata.name for _, _, v in found.static})
            if volume is None:
                to_make.append((position, claim))
            else:
                found.static.append((position, claim, volume))
        for position, claim in to_make:
            capacity = self._provision(claim, node, world)
            if isinstance(capacity, str):
                return reasons | {capacity}
            found.dynamic.append((position, claim, capacity))
        return reasons or found

    def _split(self, pod: Pod, world: World) -> tuple[list[Any], list[tuple[int, Any]]]:
        for _, _, name, ephemeral in claims_of(pod):
            claim, named = claim_named(pod, name, world), f'persistentvolumeclaim "{name}"'
            if claim is None and ephemeral:
                raise Refused(UR, f"waiting for ephemeral volume controller to create the {named}")
            if claim is None:
                raise Refused(UR, f"{named} not found")
            if claim.status.phase == "Lost":
                raise Refused(UR, f'{named} bound to non-existent persistentvolume "{claim.spec.volume_name}"')
            if claim.metadata.deletion_timestamp:
                raise Refused(UR, f"{named} is being deleted")
            if ephemeral and not is_for(pod, claim):
                raise Refused(UR, not_for(pod, claim))
        bound, waiting, immediate = [], [], False
        for position, _, name, _ in claims_of(pod):
            claim = claim_named(pod, name, world)
            assert claim is not None
            known = world.get(StorageClass, class_of(claim)) if class_of(claim) else None
            if claim.spec.volume_name and BIND_COMPLETED in claim.metadata.annotations:
                bound.append(claim)
            elif known is not None and known.volume_binding_mode is None:
                raise Refused(ERROR, f'VolumeBindingMode not set for StorageClass "{class_of(claim)}"')
            elif known is None or known.volume_binding_mode != "WaitForFirstConsumer" or claim.spec.volume_name:
                immediate = True
            else:
                waiting.append((position, claim))
        if immediate:
            raise Refused(UR, "pod has unbound immediate PersistentVolumeClaims")
        return bound, waiting

    def _selected(self, claim: PersistentVolumeClaim, world: World) -> str | None:
        promise = world.promises.get(claim.metadata.key)
        noted = claim.metadata.annotations.get(SELECTED_NODE)
        return promise.node if noted is None and promise is not None and not promise.volume else noted

    def _check_bound(self, claims: list[PersistentVolumeClaim], node: Node, world: World) -> set[str]:
        for claim in claims:
            volume = world.get(PersistentVolume, claim.spec.volume_name)
            if volume is None:
                return {self.GONE}
            if not self._reaches(self._translated(volume, node, world), node):
                return {self.AWAY}
        return set()

    def _translated(self, volume: PersistentVolume, node: Node, world: World) -> list[NodeSelectorTerm] | None:
        """The terms of its affinity; of a disk that a driver took over on this node, in the driver's words."""
        affinity = volume.spec.node_affinity
        terms = None if affinity is None or affinity.required is None else affinity.required.node_selector_terms
        csi_node = world.get(CSINode, node.metadata.name)
        migrated = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "") if csi_node is not None else ""
        if volume.spec.aws_elastic_block_store is None or EBS not in migrated.split(","):
            return terms
        labels, keys = volume.metadata.labels, [e.key for term in terms or () for e in term.match_expressions]
        known = [key for names in (keys, labels) for key in (ZONE, BETA_ZONE) if key in names] or [ZONE]
        named = [e for term in terms or () for e in term.match_expressions if e.key == known[0] and e.values]
        zones = sorted({zone.strip() for zone in labels.get(known[0], "").split("__")} - {""})
        moved = []
        for term in terms or [NodeSelectorTerm()]:
            inside: list[Any] = (
                [
                    {"key": EBS_ZONE if e.key == known[0] else e.key, "operator": e.operator, "values": e.values}
                    for e in term.match_expressions
                ]
                if named
                else [*term.match_expressions]
            )
            if not named and zones:
                inside.append({"key": EBS_ZONE, "operator": "In", "values": zones})
            moved.append(_term(inside, term.match_fields))
        return moved if named or zones else terms

    def _reaches(self, terms: list[NodeSelectorTerm] | None, node: Node) -> bool:
        if terms is None:
            return True
        labels = node.metadata.labels
        return any(
            (term.match_expressions or term.match_fields)
            and all(parses(e) and label_holds(e, labels) for e in term.match_expressions)
            and all(f.operator == "NotIn" or f.values == [""] for f in term.match_fields)
            for term in terms
        )

    def _match(
        self, claim: PersistentVolumeClaim, node: Node, world: World, taken: set[str]
    ) -> PersistentVolume | None:
        asked = storage(claim.spec.resources.requests)
        fitting = []
        promise = world.promises.get(claim.metadata.key)
        kept = "" if promise is None else promise.volume  # of several that are meant for the claim, the promised one
        for volume in sorted(world.all(PersistentVolume), key=lambda v: (v.metadata.name != kept, v.metadata.name)):
            meant = self._meant(volume, claim) or (promise is not None and promise.volume == volume.metadata.name)
            if volume.metadata.name in taken or class_of(volume) != class_of(claim):
                continue
            if not meant and (volume.spec.claim_ref is not None or self._promised(volume, world)):
                continue
            if storage(volume.spec.capacity) < asked or volume.spec.volume_mode != claim.spec.volume_mode:
                continue
            if volume.spec.volume_attributes_class_name != claim.spec.volume_attributes_class_name:
                continue
            if volume.metadata.deletion_timestamp:
                continue
            affinity = volume.spec.node_affinity
            terms = None if affinity is None or affinity.required is None else affinity.required.node_selector_terms
            if meant:
                return volume if self._reaches(terms, node) else None
            selected = _selects(claim, volume.metadata.labels)
            modes = set(claim.spec.access_modes) <= set(volume.spec.access_modes)
            if volume.status.phase == "Available" and selected and modes and self._reaches(terms, node):
                fitting.append(volume)
        return min(fitting, key=lambda v: (storage(v.spec.capacity), v.metadata.name), default=None)

    def _meant(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        refers = volume.spec.claim_ref
        if refers is None or f"{refers.namespace}/{refers.name}" != claim.metadata.key:
            return False
        return refers.uid in ("", claim.metadata.uid)

    def _promised(self, volume: PersistentVolume, world: World) -> bool:
        return any(promise.volume == volume.metadata.name for promise in world.promises.values())

    def _provision(self, claim: PersistentVolumeClaim, node: Node, world: World) -> CSIStorageCapacity | str | None:
        known, labels = world.get(StorageClass, class_of(claim)), node.metadata.labels
        if known.provisioner in ("", "kubernetes.io/no-provisioner"):
            return self.NONE
        allowed = [term.match_label_expressions for term in known.allowed_topologies]
        if allowed and not any(each and all(labels.get(e.key) in e.values for e in each) for each in allowed):
            return self.NONE
        driver = world.get(CSIDriver, known.provisioner)
        asked = (claim.spec.resources.requests or {}).get("storage")
        if asked is None or driver is None or not driver.spec.storage_capacity:
            return None
        for capacity in sorted(world.all(CSIStorageCapacity), key=lambda each: each.metadata.key):
            largest = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
            where = capacity.node_topology
            if capacity.storage_class_name != known.metadata.name or largest is None or where is None:
                continue
            if (
                read_quantity(largest).units() >= read_quantity(asked).units()
                and where.match_labels.items() <= labels.items()
            ):
                return capacity
        return self.SPACE


def _term(expressions: list[Any], fields: list[Any]) -> NodeSelectorTerm:
    term = {"matchExpressions": expressions, "matchFields": fields}
    return msgspec.convert(term, NodeSelectorTerm, from_attributes=True)


def _selects(claim: PersistentVolumeClaim, labels: Mapping[str, str]) -> bool:
    selector = claim.spec.selector
    return selector is None or selector.match_labels.items() <= labels.items()


TWINS: dict[str, Any] = {
    "VolumeRestrictions": VolumeRestrictions(),
    "NodeVolumeLimits": NodeVolumeLimits(),
    "VolumeBinding": VolumeBinding(),
    "VolumeZone": VolumeZone(),
}
