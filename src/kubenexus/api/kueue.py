"""Kueue's queues, Workloads and what these refer to (`kueue.x-k8s.io`). Kueue need not be installed."""

from typing import Final

from kubenexus.api.core import PodCondition, PodSpec, Toleration
from kubenexus.api.meta import ApiObject, Int32, ObjectMeta
from kubenexus.api.selectors import LabelSelector

QUOTA_RESERVED: Final = "QuotaReserved"
ADMITTED: Final = "Admitted"
FINISHED: Final = "Finished"


class LocalQueueSpec(ApiObject):
    cluster_queue: str = ""


class LocalQueue(ApiObject):
    """A queue of a namespace. Pods name it in the label `kueue.x-k8s.io/queue-name`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LocalQueueSpec = LocalQueueSpec()


class ClusterQueueSpec(ApiObject):
    """`namespace_selector` selects the namespaces whose LocalQueues may use the quota: without it none, as in Kueue."""

    namespace_selector: LabelSelector | None = None


class ClusterQueue(ApiObject):
    """The quota behind LocalQueues of the namespaces that it selects."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()


class PodTemplate(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class PodSet(ApiObject):
    """Equal pods of a Workload. `template` is None in the copy that the ledger keeps."""

    name: str = "main"
    count: Int32 = 1
    template: PodTemplate | None = None


class KueueWorkloadSpec(ApiObject):
    queue_name: str = ""
    priority: Int32 | None = None
    active: bool = True
    pod_sets: list[PodSet] = []


class IndividualValues(ApiObject):
    prefix: str = ""
    suffix: str = ""
    roots: list[str] = []


class LevelValues(ApiObject):
    """The values of one topology level, one for each domain; or the same for all of them."""

    universal: str | None = None
    individual: IndividualValues = IndividualValues()


class PodCounts(ApiObject):
    universal: Int32 | None = None
    individual: list[Int32] = []


class AssignmentSlice(ApiObject):
    domain_count: Int32 = 0
    values_per_level: list[LevelValues] = []
    pod_counts: PodCounts = PodCounts()


class AssignedDomain(ApiObject):
    values: list[str] = []
    count: Int32 = 0


class TopologyAssignment(ApiObject):
    """Which domains Kueue chose for a pod set: `slices` in v1beta2, `domains` in v1beta1."""

    levels: list[str] = []
    slices: list[AssignmentSlice] = []
    domains: list[AssignedDomain] = []


class PodSetAssignment(ApiObject):
    name: str = "main"
    flavors: dict[str, str] = {}
    count: Int32 | None = None
    topology_assignment: TopologyAssignment | None = None


class Admission(ApiObject):
    cluster_queue: str = ""
    pod_set_assignments: list[PodSetAssignment] = []


class ReclaimablePods(ApiObject):
    """Pods of a pod set that have ended and will not be replaced."""

    name: str = ""
    count: Int32 = 0


class CheckState(ApiObject):
    """The state of an AdmissionCheck for one Workload: Pending, Ready, Retry or Rejected."""

    name: str = ""
    state: str = ""
    message: str = ""


class KueueWorkloadStatus(ApiObject):
    conditions: list[PodCondition] = []
    admission: Admission | None = None
    reclaimable_pods: list[ReclaimablePods] = []
    admission_checks: list[CheckState] = []


class KueueWorkload(ApiObject):
    """The pods of one job, for which Kueue reserves quota and which it admits as a whole."""

    metadata: ObjectMeta = ObjectMeta()
    spec: KueueWorkloadSpec = KueueWorkloadSpec()
    status: KueueWorkloadStatus = KueueWorkloadStatus()

    def has(self, condition: str) -> bool:
        return any(each.type == condition and each.status == "True" for each in self.status.conditions)


class ResourceFlavorSpec(ApiObject):
    node_labels: dict[str, str] = {}
    tolerations: list[Toleration] = []
    topology_name: str = ""


class ResourceFlavor(ApiObject):
    """Nodes of one sort: pods that get quota of it get its labels as node selector, and its tolerations."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()


class AdmissionCheckSpec(ApiObject):
    controller_name: str = ""


class AdmissionCheckStatus(ApiObject):
    conditions: list[PodCondition] = []


class AdmissionCheck(ApiObject):
    """A check that a Workload must pass after its quota is reserved. The controller of that name decides."""

    metadata: ObjectMeta = ObjectMeta()
    spec: AdmissionCheckSpec = AdmissionCheckSpec()
    status: AdmissionCheckStatus = AdmissionCheckStatus()


def admitted_pods(workload: KueueWorkload) -> int:
    """Returns how many pods of a Workload Kueue lets run now; 0 if it is not admitted. Pods that ended and will not be
    replaced are left out, so that the rest of a job that is almost done does not wait for them."""
    if workload.status.admission is None or not workload.has(ADMITTED):
        return 0
    return max(1, sum(admitted_counts(workload).values()))


def admitted_counts(workload: KueueWorkload) -> dict[str, int]:
    """Returns the same by pod set, for a Workload with an admission."""
    admission = workload.status.admission
    if admission is None:
        return {}
    declared = {each.name: each.count for each in workload.spec.pod_sets}
    ended = {each.name: each.count for each in workload.status.reclaimable_pods}
    counts = {each.name: each.count for each in admission.pod_set_assignments}
    return {
        name: max((declared.get(name, 0) if count is None else count) - ended.get(name, 0), 0)
        for name, count in counts.items()
    }
