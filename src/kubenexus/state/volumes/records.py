"""Records of claims, volumes and classes: parsed once, much smaller than the objects. Two records are equal if no field
that a plugin reads has changed."""

import msgspec

from kubenexus.api.core import QuantityText
from kubenexus.api.quantity import NANO, to_nano, to_units
from kubenexus.api.selectors import Selector, compile_selector
from kubenexus.api.storage import (
    BIND_COMPLETED,
    MIGRATED_PLUGINS,
    READ_WRITE_ONCE_POD,
    SELECTED_NODE,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    requested_storage,
    storage_class_of,
)
from kubenexus.base.errors import Malformed
from kubenexus.state.volumes import csi_translation
from kubenexus.state.volumes.csi_translation import AttachedVolume
from kubenexus.state.volumes.volume_topology import (
    VolumeTopology,
    topology_of_affinity,
    topology_of_capacity,
    topology_of_class,
)

# Whole units and billionths of one: an exact size that can be compared and written into a signature.
Size = tuple[int, int]
Zones = tuple[str, tuple[str, ...]]  # a topology label, and the values it may have

MAX_DRIVERS = 128  # of one node
MAX_SELECTED = 100  # requirements and values by which a claim selects volumes

_ZONE_LABELS = (csi_translation.BETA_ZONE, csi_translation.BETA_REGION, csi_translation.ZONE, csi_translation.REGION)


class ClaimRecord(msgspec.Struct, frozen=True, gc=False):
    """A claim. `class_name` is what volumes are matched by; `spec_class` is the field alone, which upstream's scoring
    reads."""

    namespace: str
    name: str
    uid: str
    class_name: str
    spec_class: str
    volume: str
    bound: bool
    selected: str | None
    size: Size | None
    units: int
    modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str
    selector: Selector | None
    problem: str  # why the selector cannot be compiled
    lost: bool
    deleting: bool
    owner: str  # the UID of its controller

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def exclusive(self) -> bool:
        """Whether only one pod at a time may use it."""
        return READ_WRITE_ONCE_POD in self.modes


class VolumeRecord(msgspec.Struct, frozen=True, gc=False):
    """A persistent volume. `attachment` is None if no driver counts it. `plugin` is its in-tree plugin. Where that is
    migrated to a driver, the volume is reachable by `moved`, or unusable because of `problem`."""

    name: str
    class_name: str
    spec_class: str
    size: Size
    units: int
    modes: frozenset[str]
    volume_mode: str
    attributes_class: str
    labels: dict[str, str]
    available: bool
    deleting: bool
    claim: str  # the key of the claim in its claimRef, or ""
    claim_uid: str
    reach: VolumeTopology | None
    zones: tuple[Zones, ...]
    attachment: AttachedVolume | None
    csi: bool
    plugin: str = ""
    moved: VolumeTopology | None = None
    problem: str = ""

    @property
    def free(self) -> bool:
        """Whether any claim may take it."""
        return self.available and not self.deleting and not self.claim

    @property
    def shape(self) -> tuple[object, ...]:
        """The fields that do not change while a volume is bound and released."""
        return (self.class_name, self.spec_class, self.units, self.size, self.deleting, self.reach)

    def is_for(self, claim: ClaimRecord) -> bool:
        """Returns whether it refers to this claim, not to an earlier claim of the same name."""
        return self.claim == claim.key and self.claim_uid in ("", claim.uid)


class ClassRecord(msgspec.Struct, frozen=True, gc=False):
    """A storage class. `mode` is its volume binding mode, None if not set."""

    name: str
    provisioner: str
    mode: str | None
    reach: VolumeTopology | None


class CapacityRecord(msgspec.Struct, frozen=True, gc=False):
    """`largest` is the largest volume that can be created; `capacity` is all that is left, if known."""

    key: str
    class_name: str
    largest: int
    capacity: int | None
    reach: VolumeTopology | None


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """The drivers of a node with their limits (None: no limit), and the in-tree plugins that are migrated there."""

    limits: tuple[tuple[str, int | None], ...]
    migrated: frozenset[str]


def size_of(text: QuantityText) -> Size:
    return divmod(to_nano(text), NANO)


def claim_of(claim: PersistentVolumeClaim) -> ClaimRecord:
    """Returns the record of a claim. Raises Malformed if its size is no quantity."""
    meta, spec, asked = claim.metadata, claim.spec, requested_storage(claim)
    selector, problem = _selector(claim)
    controllers = [owner.uid for owner in meta.owner_references if owner.controller]
    return ClaimRecord(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        class_name=storage_class_of(claim),
        spec_class=spec.storage_class_name or "",
        volume=spec.volume_name,
        bound=bool(spec.volume_name) and BIND_COMPLETED in meta.annotations,
        selected=meta.annotations.get(SELECTED_NODE),
        size=None if asked is None else size_of(asked),
        units=0 if asked is None else to_units(asked),
        modes=tuple(sorted(set(spec.access_modes))),
        volume_mode=spec.volume_mode,
        attributes_class=spec.volume_attributes_class_name,
        selector=selector,
        problem=problem,
        lost=claim.status.phase == "Lost",
        deleting=bool(meta.deletion_timestamp),
        owner=controllers[0] if controllers else "",
    )


def _selector(claim: PersistentVolumeClaim) -> tuple[Selector | None, str]:
    # It is matched against all volumes of the class.
    if claim.spec.selector is not None and claim.spec.selector.size > MAX_SELECTED:
        size = claim.spec.selector.size
        return None, f"selector of claim {claim.metadata.key} has {size} entries; at most {MAX_SELECTED} are read"
    if claim.spec.selector is None:
        return None, ""
    try:
        return compile_selector(claim.spec.selector), ""
    except Malformed as problem:
        return None, f"error creating internal label selector for claim: {claim.metadata.key}: {problem}"


def volume_of(volume: PersistentVolume) -> VolumeRecord:
    """Returns the record of a volume. Raises Malformed if its size is no quantity."""
    meta, spec = volume.metadata, volume.spec
    refers = spec.claim_ref
    has = spec.capacity.get("storage", 0)
    record = VolumeRecord(
        name=meta.name,
        class_name=storage_class_of(volume),
        spec_class=spec.storage_class_name,
        size=size_of(has),
        units=to_units(has),
        modes=frozenset(spec.access_modes),
        volume_mode=spec.volume_mode,
        attributes_class=spec.volume_attributes_class_name,
        labels=meta.labels,
        available=volume.status.phase == "Available",
        deleting=bool(meta.deletion_timestamp),
        claim="" if refers is None else f"{refers.namespace}/{refers.name}",
        claim_uid="" if refers is None else refers.uid,
        reach=_reach(volume),
        zones=zones_of(meta.labels),
        attachment=None,
        csi=spec.csi is not None,
    )
    return _attached(record, volume)


def _attached(record: VolumeRecord, volume: PersistentVolume) -> VolumeRecord:
    plugin = csi_translation.plugin_of(volume)
    moved = csi_translation.translated_affinity(volume) if plugin else None
    try:
        attachment, problem = csi_translation.csi_volume_of_pv(volume), ""
    except Malformed as found:
        attachment, problem = None, f"could not translate pv: {found}"
    if attachment is not None and not (attachment.driver and attachment.handle):
        attachment = None
    return msgspec.structs.replace(
        record,
        attachment=attachment,
        plugin=plugin,
        moved=None if moved is None else topology_of_affinity(moved),
        problem=problem,
    )


def _reach(volume: PersistentVolume) -> VolumeTopology | None:
    affinity = volume.spec.node_affinity
    return None if affinity is None or affinity.required is None else topology_of_affinity(affinity.required)


def zones_of(labels: dict[str, str]) -> tuple[Zones, ...]:
    """Returns the zones and regions in a volume's labels. A label that contains an empty name is ignored."""
    found = []
    for key in _ZONE_LABELS:
        names = [name.strip() for name in labels.get(key, "").split(csi_translation.SEVERAL_ZONES)]
        if all(names):
            found.append((key, tuple(sorted(set(names)))))
    return tuple(found)


def class_of(storage_class: StorageClass) -> ClassRecord:
    reach = topology_of_class(storage_class.allowed_topologies)
    return ClassRecord(storage_class.metadata.name, storage_class.provisioner, storage_class.volume_binding_mode, reach)


def capacity_of(capacity: CSIStorageCapacity) -> CapacityRecord | None:
    """Returns the record of a capacity, None if it has no size. Raises Malformed if a size is no quantity."""
    room = None if capacity.capacity is None else to_units(capacity.capacity)
    largest = room if capacity.maximum_volume_size is None else to_units(capacity.maximum_volume_size)
    if largest is None:
        return None
    reach = topology_of_capacity(capacity.node_topology)
    return CapacityRecord(capacity.metadata.key, capacity.storage_class_name, largest, room, reach)


def node_of(node: CSINode) -> NodeRecord:
    if len(node.spec.drivers) > MAX_DRIVERS:  # each driver has columns over all nodes
        raise Malformed(f"has {len(node.spec.drivers)} drivers; at most {MAX_DRIVERS} are read", field="spec.drivers")
    migrated = node.metadata.annotations.get(MIGRATED_PLUGINS, "")
    limits: dict[str, int | None] = {}
    for driver in node.spec.drivers:
        count = None if driver.allocatable is None else driver.allocatable.count
        limits[driver.name] = limits.get(driver.name) if count is None else count
    return NodeRecord(tuple(limits.items()), frozenset(migrated.split(",")) if migrated else frozenset())
