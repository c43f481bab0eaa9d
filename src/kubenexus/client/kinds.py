"""`ApiResource`: the kinds that the scheduler uses and their paths at the server. All paths are made here."""

import re
from typing import Final
from urllib.parse import quote

import msgspec


class ApiResource(msgspec.Struct, frozen=True):
    """One kind under one version. `group` is empty for the core."""

    kind: str
    plural: str
    version: str = "v1"
    group: str = ""
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def all(self) -> str:
        """The path of all objects in all namespaces."""
        return f"{self.root}/{self.plural}"

    def at(self, namespace: str = "", name: str = "", part: str = "") -> str:
        """Returns the path of an object or of a part of it (`status`, `binding`); without a name, of its collection."""
        path = self.root
        if self.namespaced:
            path += f"/namespaces/{_quoted(namespace)}"
        path += f"/{self.plural}"
        if name:
            path += f"/{_quoted(name)}"
        return f"{path}/{part}" if part else path

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]*")


def _quoted(name: str) -> str:
    """Quotes a name for a path. Names that the API server allows need no quotes, and each call has two."""
    return name if _PLAIN.fullmatch(name) else quote(name, safe="")


STORAGE: Final = "storage.k8s.io"
SCHEDULING: Final = "scheduling.k8s.io"

PODS: Final = ApiResource("Pod", "pods")
NODES: Final = ApiResource("Node", "nodes", namespaced=False)
NAMESPACES: Final = ApiResource("Namespace", "namespaces", namespaced=False)
SERVICES: Final = ApiResource("Service", "services")
REPLICATION_CONTROLLERS: Final = ApiResource("ReplicationController", "replicationcontrollers")
PERSISTENT_VOLUMES: Final = ApiResource("PersistentVolume", "persistentvolumes", namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Final = ApiResource("PersistentVolumeClaim", "persistentvolumeclaims")
CONFIG_MAPS: Final = ApiResource("ConfigMap", "configmaps")
SECRETS: Final = ApiResource("Secret", "secrets")

JOBS: Final = ApiResource("Job", "jobs", group="batch")
REPLICA_SETS: Final = ApiResource("ReplicaSet", "replicasets", group="apps")
STATEFUL_SETS: Final = ApiResource("StatefulSet", "statefulsets", group="apps")
POD_DISRUPTION_BUDGETS: Final = ApiResource("PodDisruptionBudget", "poddisruptionbudgets", group="policy")

STORAGE_CLASSES: Final = ApiResource("StorageClass", "storageclasses", group=STORAGE, namespaced=False)
CSI_NODES: Final = ApiResource("CSINode", "csinodes", group=STORAGE, namespaced=False)
CSI_DRIVERS: Final = ApiResource("CSIDriver", "csidrivers", group=STORAGE, namespaced=False)
CSI_STORAGE_CAPACITIES: Final = ApiResource("CSIStorageCapacity", "csistoragecapacities", group=STORAGE)
VOLUME_ATTACHMENTS: Final = ApiResource("VolumeAttachment", "volumeattachments", group=STORAGE, namespaced=False)

DEVICE_CLASSES: Final = ApiResource("DeviceClass", "deviceclasses", group="resource.k8s.io", namespaced=False)
DEVICE_TAINT_RULES: Final = ApiResource(
    "DeviceTaintRule", "devicetaintrules", group="resource.k8s.io", namespaced=False
)
RESOURCE_CLAIMS: Final = ApiResource("ResourceClaim", "resourceclaims", group="resource.k8s.io")
RESOURCE_CLAIMS_BETA: Final = ApiResource("ResourceClaim", "resourceclaims", "v1beta2", "resource.k8s.io")
DEVICE_CLASSES_BETA: Final = ApiResource("DeviceClass", "deviceclasses", "v1beta2", "resource.k8s.io", False)
DEVICE_TAINT_RULES_BETA: Final = ApiResource(
    "DeviceTaintRule", "devicetaintrules", "v1beta2", "resource.k8s.io", namespaced=False
)
RESOURCE_CLAIM_TEMPLATES: Final = ApiResource(
    "ResourceClaimTemplate", "resourceclaimtemplates", group="resource.k8s.io"
)
RESOURCE_SLICES: Final = ApiResource("ResourceSlice", "resourceslices", group="resource.k8s.io", namespaced=False)
RESOURCE_SLICES_BETA: Final = ApiResource("ResourceSlice", "resourceslices", "v1beta2", "resource.k8s.io", False)
RESOURCE_SLICES_OLD: Final = ApiResource("ResourceSlice", "resourceslices", "v1beta1", "resource.k8s.io", False)
# Of Node Feature Discovery's topology updater, where that is installed.
NODE_RESOURCE_TOPOLOGIES: Final = ApiResource(
    "NodeResourceTopology", "noderesourcetopologies", "v1alpha2", "topology.node.k8s.io", namespaced=False
)

PRIORITY_CLASSES: Final = ApiResource("PriorityClass", "priorityclasses", group=SCHEDULING, namespaced=False)
# Served by 1.37 if its feature gate and version are switched on; the newer form first.
POD_GROUPS: Final = ApiResource("PodGroup", "podgroups", "v1beta1", SCHEDULING)
POD_GROUPS_ALPHA: Final = ApiResource("PodGroup", "podgroups", "v1alpha3", SCHEDULING)
POD_GROUPS_OLD: Final = ApiResource("PodGroup", "podgroups", "v1alpha2", SCHEDULING)
WORKLOADS: Final = ApiResource("Workload", "workloads", "v1beta1", SCHEDULING)
WORKLOADS_ALPHA: Final = ApiResource("Workload", "workloads", "v1alpha3", SCHEDULING)
WORKLOADS_OLD: Final = ApiResource("Workload", "workloads", "v1alpha2", SCHEDULING)
WORKLOADS_OLDEST: Final = ApiResource("Workload", "workloads", "v1alpha1", SCHEDULING)
# Of scheduler-plugins and of Volcano, where these are installed.
COSCHEDULING_POD_GROUPS: Final = ApiResource("PodGroup", "podgroups", "v1alpha1", "scheduling.x-k8s.io")
VOLCANO_POD_GROUPS: Final = ApiResource("PodGroup", "podgroups", "v1beta1", "scheduling.volcano.sh")

# Our own, where deploy/resourcereservations.yaml is installed.
RESOURCE_RESERVATIONS: Final = ApiResource(
    "ResourceReservation", "resourcereservations", "v1alpha1", "scheduling.kubenexus.io"
)

# Where deploy/queues.yaml is installed.
QUEUES: Final = ApiResource("Queue", "queues", "v1alpha1", "scheduling.kubenexus.io", namespaced=False)
POD_TEMPLATES: Final = ApiResource("PodTemplate", "podtemplates")
# Of autoscalers, where one serves it.
PROVISIONING_REQUESTS: Final = ApiResource("ProvisioningRequest", "provisioningrequests", "v1", "autoscaling.x-k8s.io")

# Of Kueue, where that is installed.
KUEUE: Final = "kueue.x-k8s.io"
LOCAL_QUEUES: Final = ApiResource("LocalQueue", "localqueues", "v1beta2", KUEUE)
LOCAL_QUEUES_OLD: Final = ApiResource("LocalQueue", "localqueues", "v1beta1", KUEUE)
CLUSTER_QUEUES: Final = ApiResource("ClusterQueue", "clusterqueues", "v1beta2", KUEUE, namespaced=False)
CLUSTER_QUEUES_OLD: Final = ApiResource("ClusterQueue", "clusterqueues", "v1beta1", KUEUE, namespaced=False)
KUEUE_WORKLOADS: Final = ApiResource("Workload", "workloads", "v1beta2", KUEUE)
ADMISSION_CHECKS: Final = ApiResource("AdmissionCheck", "admissionchecks", "v1beta2", KUEUE, namespaced=False)
RESOURCE_FLAVORS: Final = ApiResource("ResourceFlavor", "resourceflavors", "v1beta2", KUEUE, namespaced=False)
KUEUE_WORKLOADS_OLD: Final = ApiResource("Workload", "workloads", "v1beta1", KUEUE)

EVENTS: Final = ApiResource("Event", "events", group="events.k8s.io")
LEASES: Final = ApiResource("Lease", "leases", group="coordination.k8s.io")
TOKEN_REVIEWS: Final = ApiResource("TokenReview", "tokenreviews", group="authentication.k8s.io", namespaced=False)
ACCESS_REVIEWS: Final = ApiResource(
    "SubjectAccessReview", "subjectaccessreviews", group="authorization.k8s.io", namespaced=False
)
SELF_ACCESS_REVIEWS: Final = ApiResource(
    "SelfSubjectAccessReview", "selfsubjectaccessreviews", group="authorization.k8s.io", namespaced=False
)

ADMISSION: Final = "admissionregistration.k8s.io"
VALIDATING_WEBHOOKS: Final = ApiResource(
    "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", group=ADMISSION, namespaced=False
)
MUTATING_WEBHOOKS: Final = ApiResource(
    "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", group=ADMISSION, namespaced=False
)

# Pods that have ended use no capacity, and there may be hundreds of thousands of them.
LIVE_PODS_FIELD_SELECTOR: Final = "status.phase!=Succeeded,status.phase!=Failed"
