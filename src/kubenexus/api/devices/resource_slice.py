"""ResourceSlices (`resource.k8s.io/v1`, also as in v1beta1): the devices that DRA drivers publish, by complete pools.

A driver publishes a pool of devices in one or more slices. To change the pool it raises the generation in all of them,
one after the other. So a pool counts only if all slices of its newest generation are there.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kubenexus.api.core import NodeSelector, QuantityText
from kubenexus.api.meta import ApiObject, Int64, ObjectMeta
from kubenexus.base.errors import truncated


class DeviceAttribute(ApiObject):
    """One value: exactly one field is set. The lists exist since Kubernetes 1.36."""

    string: str | None = None
    number: Int64 | None = msgspec.field(default=None, name="int")
    flag: bool | None = msgspec.field(default=None, name="bool")
    version: str | None = None
    strings: list[str] | None = None
    numbers: list[Int64] | None = msgspec.field(default=None, name="ints")
    flags: list[bool] | None = msgspec.field(default=None, name="bools")
    versions: list[str] | None = None


class CapacityRange(ApiObject):
    """Amounts from `min` in steps; `step` absent: any."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(ApiObject):
    """Which parts of a capacity a request can take; without one: any part, and all of it by default."""

    default: QuantityText | None = None
    valid_values: list[QuantityText] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(ApiObject):
    value: QuantityText = "0"
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(ApiObject):
    key: str = ""
    value: str = ""
    effect: str = ""


class Counter(ApiObject):
    value: QuantityText = "0"


class CounterConsumption(ApiObject):
    """Parts of a card that the device takes when it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: list[str] | None = None


class CounterSet(ApiObject):
    """What the devices of a pool share, such as the memory of a card."""

    name: str = ""
    counters: dict[str, Counter] = {}


class BasicDevice(ApiObject):
    """What v1beta1 has one level deeper than v1."""

    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    node_name: str = ""
    all_nodes: bool = False
    node_selector: NodeSelector | None = None
    taints: list[DeviceTaint] = []
    consumes_counters: list[CounterConsumption] = []
    binds_to_node: bool = False
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool = False


class SliceDevice(BasicDevice):
    name: str = ""
    basic: BasicDevice | None = None

    @property
    def content(self) -> BasicDevice:
        """The device without its name, wherever the version of the API has it."""
        return self if self.basic is None else self.basic


class ResourcePool(ApiObject):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(ApiObject):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    all_nodes: bool = False
    node_selector: NodeSelector | None = None
    per_device_node_selection: bool = False
    devices: list[SliceDevice] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class PoolDevice(msgspec.Struct, frozen=True, gc=False):
    """A device of a complete pool, and the node that has it."""

    driver: str
    pool: str
    node: str
    name: str
    content: BasicDevice


class CompleteDevices(msgspec.Struct, frozen=True, gc=False):
    """The devices of complete pools in the natural order of their names, and a sentence for each pool left out."""

    devices: tuple[PoolDevice, ...] = ()
    warnings: tuple[str, ...] = ()


def node_names(found: ResourceSlice) -> frozenset[str]:
    """Returns the nodes that the devices of a slice are on. A device for several nodes is on none of them."""
    spec = found.spec
    if not spec.per_device_node_selection:
        return frozenset((spec.node_name,)) if spec.node_name else frozenset()
    return frozenset(each.content.node_name for each in spec.devices if each.content.node_name)


def complete_devices(slices: Iterable[ResourceSlice], node_name: str = "") -> CompleteDevices:
    """Returns the devices of all complete pools, those of one node if `node_name` is given.

    `slices` must have all slices of a pool, those without a device of the node, too. Their order does not matter.
    """
    pools: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for each in slices:
        pools[each.spec.driver, each.spec.pool.name].append(each)
    devices: list[PoolDevice] = []
    warnings: list[str] = []
    for driver, pool in sorted(pools):
        newest = _newest(pools[driver, pool])
        problem = _problem(newest)
        if problem:
            warnings.append(f"ResourceSlices of {truncated(driver)}, pool {truncated(pool)}: {problem}")
        else:
            devices += (each for found in newest for each in _devices(found) if node_name in ("", each.node))
    devices.sort(key=_order)
    return CompleteDevices(tuple(devices), tuple(warnings))


def _newest(slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    generation = max(each.spec.pool.generation for each in slices)
    return [each for each in slices if each.spec.pool.generation == generation]


def _problem(slices: Sequence[ResourceSlice]) -> str:
    """Returns why the slices of one generation are no complete pool, or ""."""
    counts = {each.spec.pool.resource_slice_count for each in slices}
    if len(counts) > 1:
        return f"its slices disagree about their number: {', '.join(map(str, sorted(counts)[:4]))}"
    (count,) = counts
    if len(slices) != count:
        return f"{len(slices)} of {count} slices are there"
    names = sorted(each.name for found in slices for each in found.spec.devices)
    for one, other in itertools.pairwise(names):
        if one == other:
            return f"two devices are named {truncated(one)!r}"
    return ""


def _devices(found: ResourceSlice) -> Iterator[PoolDevice]:
    spec = found.spec
    for each in spec.devices:
        content = each.content
        node = content.node_name if spec.per_device_node_selection else spec.node_name
        if node:
            yield PoolDevice(spec.driver, spec.pool.name, node, each.name, content)


_MAX_NAME = 63  # of a device, a DNS label
_DIGITS = re.compile(r"([0-9]{1,18})")


def natural_order(name: str) -> tuple[tuple[str, int], ...]:
    """Returns a key that sorts gpu-2 before gpu-10. A text that is too long for a name is sorted as it is."""
    if len(name) > _MAX_NAME:
        return ((name, -1),)
    parts = _DIGITS.split(name)
    return tuple((text, int(number or -1)) for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True))


def _order(device: PoolDevice) -> tuple[tuple[tuple[str, int], ...], str, str, str]:
    return natural_order(device.name), device.name, device.driver, device.pool
