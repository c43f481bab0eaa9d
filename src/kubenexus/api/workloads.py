"""Namespaces, services and the controllers that own pods: read only to know which pods belong together."""

from kubenexus.api.meta import Object, ObjectMeta
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


class PodGroup(Named):
    """Pods that start together, in Kubernetes' own form."""


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
