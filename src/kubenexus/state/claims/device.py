"""`PoolDevice`: a device of a ResourceSlice, in little memory.

Of 40,000 devices nearly all have the same attribute names, taints and capacities. Those are shared objects (`Traits`,
`Names`); a device has its name and a tuple of values.
"""

import functools
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from kubenexus.api.cel.attribute_reads import Read
from kubenexus.api.cel.selector import CelDevice, cel_quantity, cel_value
from kubenexus.api.core import NodeSelector
from kubenexus.api.devices.resource_slice import BasicDevice, DeviceAttribute, DeviceCapacity, DeviceTaint, SliceDevice
from kubenexus.api.node_selectors import RequiredTerms, parse_required
from kubenexus.api.quantity import to_nano
from kubenexus.base.errors import Malformed, truncated

# A type (s, i, b, v, l: text, number, flag, version, list) and the value: in Python 1 is equal to True.
Value: TypeAlias = tuple[str, Any]

_MAX_SHARED: Final = 4096


class NodeSelection(msgspec.Struct, frozen=True, gc=False):
    """The nodes that a slice or a device is available on: one by name, all, or those of a selector."""

    name: str = ""
    all_nodes: bool = False
    selector: NodeSelector | None = None
    terms: RequiredTerms = RequiredTerms()

    @property
    def known(self) -> bool:
        """Whether anything is set. A slice with nothing that is known here has devices for no node."""
        return bool(self.name or self.all_nodes or self.selector is not None)

    def matches(self, node: str, labels: Mapping[str, str]) -> bool:
        if self.name:
            return self.name == node
        return self.all_nodes or self.terms.matches(node, labels)


class Consumption(msgspec.Struct, frozen=True, gc=False):
    """What a device takes of a counter set, in nano units."""

    counter_set: str
    counters: tuple[tuple[str, int], ...]


class Names(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The position of each attribute, by domain and name. One object for all devices with equal names."""

    positions: Mapping[tuple[str, str], int]


class Traits(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What many devices have in common, one object for all of them. `plain`: each capacity is taken as a whole."""

    selection: NodeSelection
    taints: tuple[DeviceTaint, ...]
    consumes: tuple[Consumption, ...]
    capacity: Mapping[str, DeviceCapacity]
    shared: bool
    binds_to_node: bool
    binding_conditions: tuple[str, ...] | None
    binding_failure_conditions: tuple[str, ...] | None
    compatibility_groups: bool
    plain: bool


class PoolDevice(msgspec.Struct, frozen=True, gc=False, weakref=False):
    name: str
    names: Names
    values: tuple[Value, ...]
    traits: Traits
    problem: str = ""

    def attribute(self, domain: str, name: str) -> Value | None:
        position = self.names.positions.get((domain, name))
        return None if position is None else self.values[position]


def pool_device(device: SliceDevice, driver: str) -> PoolDevice:
    """Returns a device of a slice. Raises Malformed if an amount cannot be read."""
    content = device.content
    found: dict[tuple[str, str], Value] = {}
    problem = ""
    # A name with the driver as its domain is the same as one without: the one that is written out counts.
    for key in sorted(content.attributes, key=lambda key: "/" in key):
        domain, name = _qualified(key, driver)
        value = _value(content.attributes[key])
        found[_shared((domain, name))] = _shared(value)
        if not problem:
            problem = _problem(key, value)
    names = _names(tuple(found))
    return PoolDevice(device.name, names, tuple(found.values()), _traits(content), problem)


def cel_device(device: PoolDevice, driver: str, reads: Collection[Read] | None) -> CelDevice:
    """Returns the device as a selector that reads this much sees it; None: everything."""
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, dict[str, Any]] = {}
    if device.problem:
        return CelDevice(driver, device.traits.shared, attributes, capacity, device.problem)
    if reads is None:
        for (domain, name), position in device.names.positions.items():
            attributes.setdefault(domain, {})[name] = _cel(device.values[position])
    for read in reads or ():
        value = device.attribute(read.domain, read.name) if read.map == "attributes" else None
        if value is not None:
            attributes.setdefault(read.domain, {})[read.name] = _cel(value)
    if reads is None or any(read.map != "attributes" for read in reads):
        for key, held in device.traits.capacity.items():
            domain, name = _qualified(key, driver)
            capacity.setdefault(domain, {})[name] = cel_quantity(held.value)
    return CelDevice(driver, device.traits.shared, attributes, capacity, device.problem)


def node_selection(name: str, all_nodes: bool, selector: NodeSelector | None) -> NodeSelection:
    return NodeSelection(name, all_nodes, selector, RequiredTerms() if selector is None else parse_required(selector))


# --- parts ---------------------------------------------------------------------------------------------------------

_shared_parts: dict[Any, Any] = {}
_shared_traits: dict[bytes, Traits] = {}
_encode = msgspec.json.Encoder(order="deterministic").encode


def _shared(value: Any) -> Any:
    """Returns an equal object that other devices have, too."""
    if len(_shared_parts) >= _MAX_SHARED:
        _shared_parts.clear()
    return _shared_parts.setdefault(value, value)


@functools.lru_cache(maxsize=256)
def _names(keys: tuple[tuple[str, str], ...]) -> Names:
    return Names({key: position for position, key in enumerate(keys)})


def _traits(content: BasicDevice) -> Traits:
    parts = (
        (content.node_name, content.all_nodes, content.node_selector, content.taints, content.consumes_counters),
        (content.capacity, content.allow_multiple_allocations, content.binds_to_node),
        (content.binding_conditions, content.binding_failure_conditions),
    )
    key = _encode(parts)
    known = _shared_traits.get(key)
    if known is None:
        if len(_shared_traits) >= _MAX_SHARED:
            _shared_traits.clear()
        known = _shared_traits[key] = _read_traits(content)
    return known


def _read_traits(content: BasicDevice) -> Traits:
    amounts = [to_nano(held.value) for held in content.capacity.values()]  # raises Malformed
    consumes = [
        Consumption(each.counter_set, tuple((name, to_nano(held.value)) for name, held in each.counters.items()))
        for each in content.consumes_counters
    ]
    conditions, failures = content.binding_conditions, content.binding_failure_conditions
    return Traits(
        selection=node_selection(content.node_name, content.all_nodes, content.node_selector),
        taints=tuple(content.taints),
        consumes=tuple(consumes),
        capacity=content.capacity,
        shared=content.allow_multiple_allocations,
        binds_to_node=content.binds_to_node,
        binding_conditions=None if conditions is None else tuple(conditions),
        binding_failure_conditions=None if failures is None else tuple(failures),
        plain=all(each >= 0 for each in amounts)
        and all(held.request_policy is None for held in content.capacity.values()),
        compatibility_groups=any(each.compatibility_groups for each in content.consumes_counters),
    )


def _qualified(key: str, driver: str) -> tuple[str, str]:
    domain, slash, name = key.partition("/")
    return (domain, name) if slash else (driver, key)


def _value(attribute: DeviceAttribute) -> Value:
    """Returns the one value that is set, in upstream's order; "" as the type if none is."""
    for held in (attribute.numbers, attribute.flags, attribute.strings, attribute.versions):
        if held is not None:
            return "v*" if held is attribute.versions else "l", tuple(held)
    if attribute.number is not None:
        return "i", attribute.number
    if attribute.flag is not None:
        return "b", attribute.flag
    if attribute.string is not None:
        return "s", attribute.string
    return ("", None) if attribute.version is None else ("v", attribute.version)


def _problem(key: str, value: Value) -> str:
    try:
        _cel(value)
    except ValueError as error:
        return f"attribute {truncated(key)}: {error}"
    return ""


def _cel(value: Value) -> Any:
    kind, held = value
    if kind == "l":
        return list(held)
    if kind == "v*":
        return [cel_value(None, None, None, each) for each in held]
    if kind in ("i", "b", "s"):
        return held
    return cel_value(None, None, None, held)


def amount(text: Any) -> int:
    """Returns a quantity in nano units, 0 if it cannot be read."""
    try:
        return to_nano(text)
    except Malformed:
        return 0
