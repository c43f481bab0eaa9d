"""ResourceClaims and DeviceClasses (`resource.k8s.io/v1`, also as in v1beta2): what pods ask for, and what they got."""

from typing import Any, Final

import msgspec

from kubenexus.api.core import NodeSelector, QuantityText, Toleration
from kubenexus.api.meta import ApiObject, Int64, ObjectMeta

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"  # an annotation
ALL_DEVICES: Final = "All"
EXACT_COUNT: Final = "ExactCount"
MAX_RESULTS: Final = 32  # devices of one claim
MAX_ALTERNATIVES: Final = 8  # of one request
MAX_RESERVATIONS: Final = 256


class CelSelector(ApiObject):
    expression: str = ""


class DeviceSelectorSpec(ApiObject):
    cel: CelSelector | None = None


class OpaqueConfiguration(ApiObject):
    """Parameters for a driver, which only the driver reads."""

    driver: str = ""
    parameters: Any = None


class DeviceConfiguration(ApiObject):
    requests: list[str] = []
    opaque: OpaqueConfiguration | None = None


class DeviceToleration(Toleration):
    toleration_seconds: Int64 | None = None


class CapacityRequirements(ApiObject):
    requests: dict[str, QuantityText] = {}


class ExactDeviceRequest(ApiObject):
    device_class_name: str = ""
    selectors: list[DeviceSelectorSpec] = []
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None
    derived_attributes: list[Any] = []


class DeviceSubRequest(ExactDeviceRequest):
    """One of several alternatives, the first of which is preferred. It has no `admin_access`."""

    name: str = ""


class DeviceRequest(ApiObject):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = []


class DeviceConstraint(ApiObject):
    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(ApiObject):
    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[DeviceConfiguration] = []


class ResourceClaimSpec(ApiObject):
    devices: DeviceClaim = DeviceClaim()


class DeviceAllocation(ApiObject):
    """One device that a request got."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, QuantityText] | None = None
    skip_node_operations: list[Any] = []


class AllocatedConfiguration(DeviceConfiguration):
    source: str = ""


class DeviceAllocations(ApiObject):
    results: list[DeviceAllocation] = []
    config: list[AllocatedConfiguration] = []


class AllocationResult(ApiObject):
    """What a claim got. Without a node selector it is available on all nodes."""

    devices: DeviceAllocations = DeviceAllocations()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str = ""


class ConsumerReference(ApiObject):
    """The pod (or PodGroup) that may use a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(ApiObject):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(ApiObject):
    """What a driver reports about a device of the claim."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: list[DeviceCondition] = []


class ResourceClaimStatus(ApiObject):
    allocation: AllocationResult | None = None
    reserved_for: list[ConsumerReference] = []
    devices: list[AllocatedDeviceStatus] = []


class ClaimMeta(ObjectMeta):
    finalizers: list[str] = []


class ResourceClaim(ApiObject):
    metadata: ClaimMeta = ClaimMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class DeviceClassSpec(ApiObject):
    selectors: list[DeviceSelectorSpec] = []
    config: list[DeviceConfiguration] = []
    extended_resource_name: str = ""


class DeviceClass(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()
