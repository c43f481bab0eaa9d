"""Namespaces, services, pod groups and controllers: read only to know which pods belong together."""

from typing import Final

from kubenexus.api.core import PodCondition, PodResourceClaim
from kubenexus.api.meta import ApiObject, Int32, Int64, ObjectMeta
from kubenexus.api.selectors import LabelSelector

# The condition of Kubernetes' own PodGroup: as many members as it needs had a node once. Then its name up to Kubernetes
# 1.36.
INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
INITIALLY_SCHEDULED_OLD: Final = "PodGroupScheduled"


class Namespace(ApiObject):
    metadata: ObjectMeta = ObjectMeta()


class NameOnly(ApiObject):
    """A kind of which only the existence matters so far."""

    metadata: ObjectMeta = ObjectMeta()


class PodDisruptionBudgetSpec(ApiObject):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiObject):
    """What the disruption controller counted. `disrupted_pods` are evicted already, with the time, by name."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(ApiObject):
    """How many pods of an application may be away at the same time (`policy/v1`)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(NameOnly):
    """A priority by name; admission writes the number into the pods."""


class GangPolicy(ApiObject):
    min_count: Int64 = 0


class SchedulingPolicy(ApiObject):
    """A policy. Without `gang` it is `basic`: each pod by itself."""

    gang: GangPolicy | None = None


class TopologyConstraint(ApiObject):
    key: str = ""


class SchedulingConstraints(ApiObject):
    topology: list[TopologyConstraint] = []


class DisruptionChoice(ApiObject):
    """An empty object, which counts by being there."""


class DisruptionMode(ApiObject):
    """How pods of a group may be evicted: each by itself (`single`), or only all together (`all`)."""

    single: DisruptionChoice | None = None
    all: DisruptionChoice | None = None


class PodGroupSpec(ApiObject):
    """Kubernetes' own form has a policy and constraints; those of scheduler-plugins and of Volcano have `minMember`."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    min_member: Int64 | None = None
    resource_claims: list[PodResourceClaim] = []


class PodGroupStatus(ApiObject):
    """The status. It is read so that an equal condition is not written again, and to know when a gang was complete."""

    conditions: list[PodCondition] = []


class PodGroup(ApiObject):
    """Pods that start together: `scheduling.k8s.io`, `scheduling.x-k8s.io` or `scheduling.volcano.sh`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class WorkloadPodGroup(ApiObject):
    """A group of a Workload: with a `policy` in Kubernetes 1.35, a template with a `schedulingPolicy` since."""

    name: str = ""
    policy: SchedulingPolicy | None = None
    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None


class WorkloadSpec(ApiObject):
    pod_groups: list[WorkloadPodGroup] = []
    pod_group_templates: list[WorkloadPodGroup] = []


class Workload(ApiObject):
    """`scheduling.k8s.io`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class ServiceSpec(ApiObject):
    selector: dict[str, str] = {}


class Service(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(ApiObject):
    """`v1`: its selector is a plain set of labels, as a service's."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class OwnerSpec(ApiObject):
    selector: LabelSelector | None = None


class ReplicaSet(ApiObject):
    """`apps/v1`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: OwnerSpec = OwnerSpec()


class StatefulSet(ApiObject):
    """`apps/v1`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: OwnerSpec = OwnerSpec()
