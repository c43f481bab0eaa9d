"""Namespaces, services, groups and the controllers that own pods: read only to know which pods belong together."""

from kubenexus.api.core import PodCondition
from kubenexus.api.meta import Int64, Object, ObjectMeta
from kubenexus.api.selectors import LabelSelector


class Namespace(Object):
    metadata: ObjectMeta = ObjectMeta()


class Named(Object):
    """A kind of which no rule reads more, yet, than that it is there."""

    metadata: ObjectMeta = ObjectMeta()


class PodDisruptionBudget(Named):
    """How many pods of an application may be away at the same time."""


class PriorityClass(Named):
    """A priority by name; admission writes the number into the pods."""


class GangPolicy(Object):
    min_count: Int64 = 0


class SchedulingPolicy(Object):
    """Without `gang` the policy is `basic`: each pod by itself."""

    gang: GangPolicy | None = None


class TopologyConstraint(Object):
    key: str = ""


class SchedulingConstraints(Object):
    topology: list[TopologyConstraint] = []


class PodGroupSpec(Object):
    """Kubernetes' own form has a policy and constraints, those of scheduler-plugins and of Volcano have `minMember`."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    min_member: Int64 | None = None


class PodGroupStatus(Object):
    """Read so that nothing is written that is there already."""

    conditions: list[PodCondition] = []


class PodGroup(Object):
    """Pods that start together: `scheduling.k8s.io`, `scheduling.x-k8s.io` or `scheduling.volcano.sh`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class WorkloadPodGroup(Object):
    """A group of a Workload: with a `policy` in Kubernetes 1.35, a template with a `schedulingPolicy` since."""

    name: str = ""
    policy: SchedulingPolicy | None = None
    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None


class WorkloadSpec(Object):
    pod_groups: list[WorkloadPodGroup] = []
    pod_group_templates: list[WorkloadPodGroup] = []


class Workload(Object):
    """`scheduling.k8s.io`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class ServiceSpec(Object):
    selector: dict[str, str] = {}


class Service(Object):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(Object):
    """`v1`: its selector is a plain set of labels, as a service's."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class OwnerSpec(Object):
    selector: LabelSelector | None = None


class ReplicaSet(Object):
    """`apps/v1`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: OwnerSpec = OwnerSpec()


class StatefulSet(Object):
    """`apps/v1`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: OwnerSpec = OwnerSpec()
