"""Pods and nodes (`v1`), with the fields that a plugin or the ledger reads."""

import msgspec

from kubenexus.api.meta import ApiObject, Int32, Int64, ObjectMeta
from kubenexus.api.selectors import LabelSelector

# A quantity as it is in JSON: "100m", "1Gi", 2 or 0.5. The module `quantity` parses it.
QuantityText = str | int | float
ResourceList = dict[str, QuantityText]


class Taint(ApiObject):
    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(ApiObject):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorRequirement(ApiObject):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(ApiObject):
    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(ApiObject):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(ApiObject):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiObject):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(ApiObject):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(ApiObject):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiObject):
    """Affinity to other pods, or (as `podAntiAffinity`) away from them."""

    required: list[PodAffinityTerm] = msgspec.field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(ApiObject):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(ApiObject):
    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = []


class ResourceRequirements(ApiObject):
    requests: ResourceList | None = None
    limits: ResourceList | None = None


class ContainerPort(ApiObject):
    host_port: Int32 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class RestartRule(ApiObject):
    action: str = ""


class VolumeMount(ApiObject):
    bind_mount_options: list[str] = []


class Container(ApiObject):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str = ""
    restart_policy_rules: list[RestartRule] = []
    volume_mounts: list[VolumeMount] = []


class ImageVolumeSource(ApiObject):
    reference: str = ""


class ClaimVolume(ApiObject):
    claim_name: str = ""


class EphemeralVolume(ApiObject):
    """A volume whose claim is created for it, named after the pod and the volume."""


class GCEDisk(ApiObject):
    pd_name: str = ""
    read_only: bool = False


class AWSDisk(ApiObject):
    volume_id: str = msgspec.field(default="", name="volumeID")


class AzureDisk(ApiObject):
    disk_uri: str = msgspec.field(default="", name="diskURI")


class CinderDisk(ApiObject):
    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolume(ApiObject):
    volume_id: str = msgspec.field(default="", name="volumeID")


class ISCSIDisk(ApiObject):
    iqn: str = ""
    read_only: bool = False


class RBDImage(ApiObject):
    monitors: list[str] = []
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class OtherVolume(ApiObject):
    """A source of which only the presence matters."""


class Volume(ApiObject):
    name: str = ""
    image: ImageVolumeSource | None = None
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GCEDisk | None = None
    aws_elastic_block_store: AWSDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: OtherVolume | None = None
    cinder: CinderDisk | None = None
    iscsi: ISCSIDisk | None = None
    portworx_volume: PortworxVolume | None = None
    rbd: RBDImage | None = None
    vsphere_volume: OtherVolume | None = None


class PodResourceClaim(ApiObject):
    """A device claim of a pod, by its name within the pod: an existing claim, or one made from a template."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class SchedulingGate(ApiObject):
    name: str = ""


class SchedulingGroup(ApiObject):
    """The PodGroup of the pod (`scheduling.k8s.io`, Kubernetes 1.36 and later)."""

    pod_group_name: str = ""


class WorkloadRef(ApiObject):
    """The Workload of the pod, as in Kubernetes 1.35. Each replica of a group is a gang by itself."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(ApiObject):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: Int32 = 0
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    restart_policy: str = ""
    active_deadline_seconds: Int64 | None = None
    scheduling_gates: list[SchedulingGate] = []
    containers: list[Container] = []
    init_containers: list[Container] = []
    ephemeral_containers: list[Container] = []
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    volumes: list[Volume] = []
    resource_claims: list[PodResourceClaim] = []
    host_network: bool = False
    host_users: bool = True
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadRef | None = None


class ContainerStatus(ApiObject):
    name: str = ""
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodCondition(ApiObject):
    """A condition. `message` and `observed_generation` are read so that an equal condition is not written again."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_transition_time: str = ""


class PodResourceClaimStatus(ApiObject):
    """The ResourceClaim that was made from a template for a claim of the pod; "": none was needed."""

    name: str = ""
    resource_claim_name: str = ""


class PodStatus(ApiObject):
    phase: str = ""
    conditions: list[PodCondition] = []
    nominated_node_name: str = ""
    start_time: str = ""
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None


class Pod(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """`namespace/name`, as kubectl users write it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ContainerImage(ApiObject):
    names: list[str] = []
    size_bytes: Int64 = 0


class NodeSpec(ApiObject):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(ApiObject):
    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    images: list[ContainerImage] = []
    declared_features: list[str] = []


class Node(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
