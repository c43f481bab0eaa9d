"""The devices that a node offers, flat and in the order in which they are tried.

Two nodes whose pools have equal shapes get equal answers, but for the names in them. A shape has what the claims can
read of a device: not its name, and not its UUID. Of an attribute that only constraints read it has which devices have
equal values, since PCI roots and the like can be different on every node.
"""

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from kubenexus.api.cel.attribute_reads import Read
from kubenexus.plugins.dynamic_resources.claim_requests import EQUAL
from kubenexus.plugins.dynamic_resources.constraints import COMPARED
from kubenexus.state.claims.allocated import AllocatedDevices, DeviceId
from kubenexus.state.claims.device import Names, PoolDevice, Value
from kubenexus.state.claims.pools import Pool, PoolSlice

Reads: TypeAlias = frozenset[Read] | None
_Name: TypeAlias = tuple[str, str]  # domain and name of an attribute
_MAX_PATTERNS: Final = 1 << 16


class PoolShape:
    """What claims can read of a pool. One object for all pools that are equal in that."""

    def __init__(self, pool: Pool, wanted: Sequence[_Name] | None) -> None:
        self._pool, self._wanted = pool, wanted

    @functools.cached_property
    def devices(self) -> tuple[Any, ...]:
        """A key for each device, equal for devices that are interchangeable."""
        return tuple([_key(each, device, self._wanted) for each in self._pool.slices for device in each.devices])


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A device of a usable pool. Candidates with equal `shape` are interchangeable on their node."""

    id: DeviceId
    pool: int
    slice: PoolSlice
    device: PoolDevice
    shape: Any


class ShapeTable:
    """The shapes of pools for claims that read this much, each once."""

    def __init__(self, reads: Reads) -> None:
        self._shapes: dict[Any, PoolShape] = {}
        self._wanted = None if reads is None else _names(reads, "attributes")
        self._equal = () if reads is None else _names(reads, EQUAL)
        self._readers: dict[Names, Callable[[tuple[int, ...]], Any]] = {}
        self._patterns: dict[int, Any] = {}  # by number of a pool's values of an attribute

    def of(self, pool: Pool) -> PoolShape:
        """Returns the shape of a pool."""
        codes = pool.codes
        read: Any = None
        if codes.names is not None:
            reader = self._readers.get(codes.names)
            if reader is None:
                reader = self._readers[codes.names] = self._reader(codes.names)
            read = reader(codes.attributes)
            if self._equal:
                read = (read, tuple([self._pattern(pool, codes.names.positions.get(each)) for each in self._equal]))
        known = self._shapes.get((codes.rest, read))
        if known is None:
            wanted = None if self._wanted is None else (*self._wanted, *self._equal)
            known = self._shapes[codes.rest, read] = PoolShape(pool, wanted)
        return known

    def joint(self, pools: Sequence[Pool]) -> Any:
        """Returns which devices of several pools have equal values of the attributes that constraints read."""
        if not self._equal or len(pools) < 2:
            return None
        devices = [device for pool in pools for each in pool.slices for device in each.devices]
        return tuple([pattern([device.attribute(*name) for device in devices]) for name in self._equal])

    def _pattern(self, pool: Pool, position: int | None) -> Any:
        if position is None:
            return None
        code = pool.codes.attributes[position]
        known = self._patterns.get(code)
        if known is None:
            if len(self._patterns) >= _MAX_PATTERNS:
                self._patterns.clear()
            values = [device.values[position] for each in pool.slices for device in each.devices]
            known = self._patterns[code] = pattern(values)
        return known

    def _reader(self, names: Names) -> Callable[[tuple[int, ...]], Any]:
        """Returns a function that takes what claims read out of the numbers of pools with these attributes."""
        if self._wanted is None:
            return lambda codes: (names, codes)
        found = [names.positions.get(each) for each in self._wanted]
        known = [position for position in found if position is not None]
        if len(known) == len(found) and known:
            return operator.itemgetter(*known)
        return lambda codes: tuple([None if position is None else codes[position] for position in found])


def _names(reads: frozenset[Read], map: str) -> tuple[_Name, ...]:
    return tuple(sorted((each.domain, each.name) for each in reads if each.map == map))


def pattern(values: Sequence[Value | None]) -> tuple[Any, ...]:
    """Returns which values are equal: for each the position of the first that equals it. Lists, which constraints do
    not compare, stay as they are."""
    first: dict[Any, Any] = {None: None}
    return tuple(
        [
            first.setdefault(value, value if value is not None and value[0] not in COMPARED else position)
            for position, value in enumerate(values)
        ]
    )


def _key(found: PoolSlice, device: PoolDevice, wanted: Sequence[_Name] | None) -> Any:
    values: Any = (device.names, device.values)
    if wanted is not None:
        values = tuple([device.attribute(*each) for each in wanted])
    return found.selection is None, values, device.traits, device.problem


def pool_state(pool: Pool, allocated: AllocatedDevices) -> Any:
    """Returns which devices of a pool are held: a number with a bit for each, or their positions with what is held of
    each if that says more."""
    if not pool.counters:
        word = allocated.whole_word(pool.id, pool.positions)
        if word is not None:
            return word
    held = allocated.in_pool(pool.id)
    if not held:
        return 0
    positions = pool.positions
    states = [(positions[name], _state((*pool.id, name), allocated)) for name in held if name in positions]
    states.sort()
    # Devices of the pool on other nodes take counters, too.
    elsewhere = tuple(
        device.traits
        for each in (pool.others if pool.counters else ())
        for device in each.devices
        if device.name in held
    )
    return tuple(states), elsewhere


def node_candidates(pools: Sequence[Pool], shapes: Sequence[PoolShape], allocated: AllocatedDevices) -> list[Candidate]:
    """Returns the candidates of a node. `shapes` are those of its pools."""
    found: list[Candidate] = []
    for position, (pool, shape) in enumerate(zip(pools, shapes, strict=True)):
        held = allocated.in_pool(pool.id)
        keys = iter(shape.devices)
        for each in pool.slices:
            for device in each.devices:
                id = (*pool.id, device.name)
                state = _state(id, allocated) if device.name in held else None
                found.append(Candidate(id, position, each, device, (position, next(keys), state)))
    return found


def candidates_at(pools: Sequence[Pool], positions: Iterable[int]) -> dict[int, Candidate]:
    """Returns some candidates of a node by their positions, without their shapes."""
    found: dict[int, Candidate] = {}
    for wanted in positions:
        left = wanted
        for number, pool in enumerate(pools):
            for each in pool.slices:
                if 0 <= left < len(each.devices):
                    device = each.devices[left]
                    found[wanted] = Candidate((*pool.id, device.name), number, each, device, None)
                left -= len(each.devices)
    return found


def _state(id: DeviceId, allocated: AllocatedDevices) -> Any:
    if not allocated.is_shared(id):
        return _WHOLE if allocated.is_whole(id) else _FREE
    return allocated.is_whole(id), True, tuple(sorted(allocated.consumed(id).items()))


_WHOLE: Final = (True, False, ())
_FREE: Final = (False, False, ())
