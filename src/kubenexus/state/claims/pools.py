"""Pools of devices: which slices belong together, which of them a node sees, and whether they are complete.

A driver publishes a pool in one or more slices of one generation. A node sees the slices that name it, those for all
nodes, and those whose selector matches it. Devices of an incomplete or invalid pool are not allocated.
"""

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.api.quantity import to_nano
from kubenexus.state.claims.device import Names, NodeSelection, PoolDevice, node_selection, pool_device

PoolId: TypeAlias = tuple[str, str]  # driver and name
MAX_DEVICES: Final = 2048  # of the slices of one pool: 16 full slices
# Of one pool, and of one node. Each node of a pool sees all its slices, so thousands would take seconds.
MAX_SLICES: Final = 512
_MAX_NUMBERS: Final = 1 << 16
_MAX_TUPLES: Final = 1 << 14


class PoolSlice(msgspec.Struct, frozen=True, gc=False, weakref=False):
    """A ResourceSlice. `selection` is None if each device has its own."""

    name: str
    pool: PoolId
    generation: int
    count: int
    selection: NodeSelection | None
    devices: tuple[PoolDevice, ...]
    counters: Mapping[str, Mapping[str, int]]
    problem: str = ""
    has_compatibility_groups: bool = False
    has_binding_conditions: bool = False

    @property
    def node_name(self) -> str:
        """The node that its devices are for; "" if they are for others, too."""
        return "" if self.selection is None else self.selection.name

    def on_node(self, node: str, labels: Mapping[str, str]) -> bool:
        if self.selection is not None:
            return self.selection.matches(node, labels)
        return any(device.traits.selection.matches(node, labels) for device in self.devices)


class PoolCodes(msgspec.Struct, frozen=True, gc=False):
    """Numbers that are equal for pools with equal devices: `rest` for all but attributes, and one for each attribute of
    `names`, over all devices. `names` is None if the devices differ in their names of attributes: then `rest` has
    everything."""

    rest: int = 0
    names: Names | None = None
    attributes: tuple[int, ...] = ()


class PoolCoder:
    """Gives out the numbers of `PoolCodes`. A number is never given twice, so forgetting them only costs memory."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._next = 0

    def codes(self, id: PoolId, pool: "Pool") -> PoolCodes:
        """Returns the numbers of a pool."""
        devices = [(each.selection is None, device) for each in pool.slices for device in each.devices]
        counters = tuple((name, tuple(sorted(held.items()))) for name, held in sorted(pool.counters.items()))
        rest = (id[0], pool.incomplete, bool(pool.invalid), counters)
        parts = tuple([(own, device.traits, device.problem) for own, device in devices])
        names = {device.names for _, device in devices}
        if len(names) != 1:
            values = tuple([(device.names, device.values) for _, device in devices])
            return PoolCodes(self._number((rest, parts, values)))
        columns = zip(*(device.values for _, device in devices), strict=True)
        return PoolCodes(self._number((rest, parts)), names.pop(), tuple(map(self._number, columns)))

    def _number(self, what: Any) -> int:
        known = self._numbers.get(what)
        if known is None:
            if len(self._numbers) >= _MAX_NUMBERS:
                self._numbers.clear()
            known = self._numbers[what] = self._next
            self._next += 1
        return known


class Pool(msgspec.Struct, frozen=True, eq=False):
    """A pool as one node sees it. `slices` have devices that the node can use, `others` further ones that only take
    counters. `invalid` is why its devices cannot be allocated. `surplus` is what keeps a pool incomplete for good: its
    slices are more than they say."""

    id: PoolId
    incomplete: bool = False
    invalid: str = ""
    surplus: str = ""
    slices: tuple[PoolSlice, ...] = ()
    others: tuple[PoolSlice, ...] = ()
    counters: Mapping[str, Mapping[str, int]] = {}
    positions: Mapping[str, int] = {}  # of the devices in `slices`, by name
    codes: PoolCodes = PoolCodes()

    @property
    def selects_by_device(self) -> bool:
        """Whether devices have nodes of their own."""
        return any(each.selection is None for each in self.slices)

    @property
    def usable(self) -> bool:
        return not self.incomplete and not self.invalid

    @property
    def has_binding_conditions(self) -> bool:
        return any(each.has_binding_conditions for each in self.slices)

    def __str__(self) -> str:
        return "/".join(self.id)


def pool_slice(found: ResourceSlice) -> PoolSlice:
    """Returns a slice, as far as allocation reads it. Raises Malformed if an amount cannot be read."""
    spec = found.spec
    counters = {
        each.name: {name: to_nano(held.value) for name, held in each.counters.items()} for each in spec.shared_counters
    }
    twice = len(counters) < len(spec.shared_counters)
    devices = tuple([pool_device(each, spec.driver) for each in spec.devices[: MAX_DEVICES + 1]])
    return PoolSlice(
        name=found.metadata.name,
        pool=(spec.driver, spec.pool.name),
        generation=spec.pool.generation,
        count=spec.pool.resource_slice_count,
        selection=_selection(found),
        devices=devices,
        counters=counters,
        problem="duplicate counter set name" if twice else "",
        has_compatibility_groups=any(device.traits.compatibility_groups for device in devices),
        has_binding_conditions=any(device.traits.binding_conditions is not None for device in devices),
    )


def _selection(found: ResourceSlice) -> NodeSelection | None:
    spec = found.spec
    selection = node_selection(spec.node_name, spec.all_nodes, spec.node_selector)
    return None if spec.per_device_node_selection and not selection.known else selection


class _Seen(NamedTuple):
    """The slices of a pool that a node sees, all of one generation."""

    generation: int
    slices: list[PoolSlice]


class PoolBuilder:
    """Makes pools of the slices that nodes see. Nodes that see the same slices of a pool share one object, and those
    that see the same pools one tuple. `every` has all slices, by pool. `devices` counts those of the pools made."""

    def __init__(self, every: Mapping[PoolId, Mapping[str, PoolSlice]]) -> None:
        self.devices = 0
        self._every, self._coder = every, PoolCoder()
        # By the identities of their slices, which the entries keep in use.
        self._known: dict[PoolId, dict[tuple[int, ...], tuple[list[PoolSlice], Pool | None]]] = {}
        self._tuples: dict[tuple[int, ...], tuple[Pool, ...]] = {}

    def forget(self, id: PoolId) -> None:
        """Forgets a pool, because one of its slices changed."""
        if self._known.pop(id, None) is not None:
            self._tuples.clear()

    def of_node(self, seen: Iterable[PoolSlice], node: str, labels: Mapping[str, str]) -> tuple[Pool, ...]:
        """Returns the pools that have devices for a node, in the order in which devices are tried: by driver and name,
        those with binding conditions last. `seen` are the slices that the node may see."""
        found: dict[PoolId, _Seen] = {}
        for each in seen:
            if each.has_compatibility_groups or not each.on_node(node, labels):
                continue
            known = found.get(each.pool)
            if known is None or each.generation > known.generation:
                found[each.pool] = _Seen(each.generation, [each])
            elif each.generation == known.generation:
                known.slices.append(each)
        pools = [pool for id in sorted(found) if (pool := self._pool(id, found[id].slices)) is not None]
        return self._same(
            (
                *(pool for pool in pools if not pool.has_binding_conditions),
                *(pool for pool in pools if pool.has_binding_conditions),
            )
        )

    def _pool(self, id: PoolId, slices: list[PoolSlice]) -> Pool | None:
        if all(each.node_name for each in slices):
            return self._made(id, slices)
        known = self._known.setdefault(id, {})
        key = tuple(map(builtins.id, slices))
        entry = known.get(key)
        if entry is None:
            entry = known[key] = (list(slices), self._made(id, slices))
        return entry[1]

    def _made(self, id: PoolId, slices: list[PoolSlice]) -> Pool | None:
        pool = _pool(id, slices, self._every[id])
        if pool is None:
            return None
        self.devices += max(len(pool.positions), 0 if pool.invalid else len(self._every[id]))
        return msgspec.structs.replace(pool, codes=self._coder.codes(pool.id, pool))

    def _same(self, pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
        """Returns one tuple for nodes with the same pools, unless one of these is of one node alone, or its devices
        have nodes of their own. So what a reader finds for the tuple is true for all nodes that have it."""
        if not all(each.id in self._known and not each.selects_by_device for each in pools):
            return pools
        if len(self._tuples) >= _MAX_TUPLES:
            self._tuples.clear()
        return self._tuples.setdefault(tuple(map(builtins.id, pools)), pools)


def _pool(id: PoolId, slices: list[PoolSlice], every: Mapping[str, PoolSlice]) -> Pool | None:
    """Returns a pool of the slices that a node sees, or None if a newer generation has none for the node."""
    if len(every) > MAX_SLICES:
        return Pool(id, invalid=f"more than {MAX_SLICES} slices")
    count, generation = slices[0].count, slices[0].generation
    others: list[PoolSlice] = []
    if len(slices) != count:
        if any(each.generation > generation for each in every.values()):
            return None
        own = {each.name for each in slices}
        same = [each for each in every.values() if each.generation == generation and not each.has_compatibility_groups]
        if len(same) != count:
            many = f"{len(same)} slices of one generation, resourceSliceCount is {count}" if len(same) > count else ""
            return Pool(id, incomplete=True, surplus=many)
        others = [each for each in same if each.name not in own]
    slices.sort(key=lambda each: each.name)
    usable = [each for each in slices if not each.counters]
    elsewhere = [each for each in others if not each.counters]
    counting = [each for each in (*slices, *others) if each.counters]
    counters: dict[str, Mapping[str, int]] = {}
    for each in counting:
        counters.update(each.counters)
    invalid = _invalid(usable, elsewhere, counting, counters)
    if invalid:
        return Pool(id, invalid=invalid)
    names = (device.name for each in usable for device in each.devices)
    positions = {name: position for position, name in enumerate(names)}
    return Pool(id, slices=tuple(usable), others=tuple(elsewhere), counters=counters, positions=positions)


def _invalid(
    usable: Sequence[PoolSlice],
    elsewhere: Sequence[PoolSlice],
    counting: Sequence[PoolSlice],
    counters: Mapping[str, Mapping[str, int]],
) -> str:
    devices = [device for each in usable for device in each.devices]
    if len(devices) + sum(len(each.devices) for each in elsewhere) > MAX_DEVICES:
        return f"more than {MAX_DEVICES} devices"
    if len({device.name for device in devices}) < len(devices):
        return "duplicate device name"
    if any(each.problem for each in counting) or len(counters) < sum(len(each.counters) for each in counting):
        return "duplicate counter set name"
    for each in (*usable, *elsewhere):
        for device in each.devices:
            for taken in device.traits.consumes:
                known = counters.get(taken.counter_set)
                if known is None:
                    return "counter set not found"
                if any(name not in known for name, _ in taken.counters):
                    return "counter not found in counter set"
    return ""
