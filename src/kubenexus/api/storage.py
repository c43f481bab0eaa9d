"""Persistent volumes and related kinds (`v1`, `storage.k8s.io/v1`), with the fields that a plugin reads."""

from kubenexus.api.core import (
    AWSDisk,
    AzureDisk,
    CinderDisk,
    GCEDisk,
    NodeSelector,
    PortworxVolume,
    QuantityText,
    ResourceList,
    ResourceRequirements,
)
from kubenexus.api.meta import ApiObject, Int32, ObjectMeta
from kubenexus.api.selectors import LabelSelector

FILESYSTEM = "Filesystem"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

# Annotations on claims and volumes. The class in an annotation is older than the field, and has precedence.
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
# On a CSINode: the in-tree plugins that are migrated to a CSI driver on that node.
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


class ClaimReference(ApiObject):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSISource(ApiObject):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(ApiObject):
    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiObject):
    capacity: ResourceList = {}
    access_modes: list[str] = []
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str = FILESYSTEM
    volume_attributes_class_name: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GCEDisk | None = None
    aws_elastic_block_store: AWSDisk | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderDisk | None = None
    portworx_volume: PortworxVolume | None = None


class PersistentVolumeStatus(ApiObject):
    phase: str = ""


class PersistentVolume(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimSpec(ApiObject):
    access_modes: list[str] = []
    resources: ResourceRequirements = ResourceRequirements()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = FILESYSTEM
    volume_attributes_class_name: str = ""
    selector: LabelSelector | None = None


class PersistentVolumeClaimStatus(ApiObject):
    phase: str = ""


class PersistentVolumeClaim(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(ApiObject):
    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(ApiObject):
    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] = []


class VolumeNodeResources(ApiObject):
    count: Int32 | None = None


class CSINodeDriver(ApiObject):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiObject):
    drivers: list[CSINodeDriver] = []


class CSINode(ApiObject):
    """The drivers installed on the node of the same name, and how many volumes each can attach."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(ApiObject):
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiObject):
    """How much a driver can still provision of a class, on the nodes that `node_topology` selects."""

    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None


class VolumeAttachmentSource(ApiObject):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiObject):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


StorageObject = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)


def storage_class_of(thing: PersistentVolume | PersistentVolumeClaim) -> str:
    """Returns the class of a volume or a claim, "" if it has none."""
    noted = thing.metadata.annotations.get(BETA_STORAGE_CLASS)
    return noted if noted is not None else thing.spec.storage_class_name or ""


def requested_storage(claim: PersistentVolumeClaim) -> QuantityText | None:
    """Returns the size that a claim requests, or None."""
    return (claim.spec.resources.requests or {}).get("storage")
