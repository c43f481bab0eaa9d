"""DeviceTaintRule (`resource.k8s.io/v1`): a taint that an administrator puts on devices, besides those of drivers."""

from kubenexus.api.devices.resource_slice import DeviceTaint
from kubenexus.api.meta import ApiObject, ObjectMeta


class DeviceTaintSelector(ApiObject):
    """The devices that a rule is for. What is not set selects all; a rule without a selector selects none."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiObject):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
