"""The kind `ResourceReservation` (`scheduling.kubenexus.io/v1alpha1`), as deploy/resourcereservations.yaml defines it.
Unknown fields are ignored, and all are optional: `request` checks what a reservation asks for."""

from typing import Final

import msgspec

from kubenexus.api.core import PodCondition, QuantityText, ResourceList, Toleration
from kubenexus.api.keys import gang
from kubenexus.api.meta import ApiObject, Int32, Int64, ObjectMeta
from kubenexus.api.selectors import LabelSelector

MANAGER: Final = "kubenexus-scheduler"
SUFFIX: Final = "-reservation"
_MAX_NAME: Final = 200  # characters of a gang's or a driver's name in an object's name


class EntrySpec(ApiObject):
    """The capacity of one pod, on `node` or on any node. `gpu` are units of nvidia.com/gpu."""

    node: str = ""
    cpu: QuantityText | None = None
    memory: QuantityText | None = None
    gpu: QuantityText | None = None
    resources: ResourceList = {}


class OwnerSelector(ApiObject):
    """The pods that may use a reservation. Without namespaces and selector: those of the reservation's namespace."""

    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None


class ResourceReservationSpec(ApiObject):
    """See docs/reservations.md. With `count`, `resources` are of each entry; else they are the sum over all entries."""

    pod_group_name: str = ""
    min_member: Int32 = 0
    starts_at: str = msgspec.field(default="", name="from")
    duration: str = ""
    count: Int32 = 0
    resources: ResourceList = {}
    reservations: dict[str, EntrySpec] = {}
    owner: OwnerSelector = OwnerSelector()
    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []
    tenant_tier: str = ""
    priority: Int32 | None = None


class ResourceReservationStatus(ApiObject):
    """What the scheduler has written. `nodes` is by entry; `pods` has the pods that use the reservation, by key."""

    phase: str = ""
    observed_generation: Int64 = 0
    owner: str = ""
    expires_at: str = ""
    nodes: dict[str, str] = {}
    pods: dict[str, str] = {}
    conditions: list[PodCondition] = []


class ResourceReservation(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceReservationSpec = ResourceReservationSpec()
    status: ResourceReservationStatus = ResourceReservationStatus()

    @property
    def is_managed(self) -> bool:
        """Whether the object has the label of those that the scheduler makes. Users can set it, too."""
        return self.metadata.labels.get(gang.RESERVATION_OWNER.key) == MANAGER

    @property
    def is_for_gang(self) -> bool:
        """Whether it only shows what the first gang in the queue keeps."""
        return self.is_managed and gang.RESERVATION_GANG.key in self.metadata.labels


def object_name(group: str) -> str:
    """Returns the name of the object for a gang or a driver: always the same, so that no second one is made."""
    return group.replace("/", ".").replace("_", "-").lower()[:_MAX_NAME].strip("-.") + SUFFIX
