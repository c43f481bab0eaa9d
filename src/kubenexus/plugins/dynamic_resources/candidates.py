"""The devices that a node offers, flat and in the order in which they are tried.

Two nodes whose pools have equal shapes get equal answers, but for the names in them. A shape has what the claims can
read of a device, and whether it is held: not its name, and not its UUID. Shapes of pools are computed once for a pool
and a set of reads, so that comparing nodes compares identities.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec

from kubenexus.api.cel.attribute_reads import Read
from kubenexus.state.claims.allocated import AllocatedDevices, DeviceId
from kubenexus.state.claims.device import PoolDevice
from kubenexus.state.claims.pools import Pool, PoolSlice

Reads: TypeAlias = frozenset[Read] | None
_MAX_READS: Final = 8  # sets of reads whose shapes a pool keeps
_MAX_SHAPES: Final = 4096


class PoolShape(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What claims can read of a pool. One object for all pools that are equal in that; `devices` has a key for each
    device, equal for devices that are interchangeable."""

    devices: tuple[Any, ...]


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A device of a usable pool. Candidates with equal `shape` are interchangeable on their node."""

    id: DeviceId
    pool: int
    slice: PoolSlice
    device: PoolDevice
    shape: Any


class ShapeTable:
    """The shapes that are in use, each once."""

    def __init__(self) -> None:
        self._shapes: dict[Any, PoolShape] = {}

    def of(self, pool: Pool, reads: Reads) -> PoolShape:
        """Returns the shape of a pool for claims that read this much."""
        known: PoolShape | None = pool.shapes.get(reads)
        if known is None:
            if len(pool.shapes) >= _MAX_READS:
                pool.shapes.clear()
            known = pool.shapes[reads] = self._make(pool, reads)
        return known

    def _make(self, pool: Pool, reads: Reads) -> PoolShape:
        wanted = (
            None if reads is None else sorted((each.domain, each.name) for each in reads if each.map == "attributes")
        )
        devices = tuple([_key(each, device, wanted) for each in pool.slices for device in each.devices])
        counters = tuple((name, tuple(sorted(held.items()))) for name, held in sorted(pool.counters.items()))
        key = (pool.id[0], pool.incomplete, bool(pool.invalid), counters, devices)
        if len(self._shapes) >= _MAX_SHAPES:
            self._shapes.clear()
        return self._shapes.setdefault(key, PoolShape(devices))


def _key(found: PoolSlice, device: PoolDevice, wanted: list[tuple[str, str]] | None) -> Any:
    values: Any = (device.names, device.values)
    if wanted is not None:
        values = tuple([device.attribute(*each) for each in wanted])
    return found.selection is None, values, device.traits, device.problem


def pool_state(pool: Pool, allocated: AllocatedDevices) -> Any:
    """Returns which devices of a pool are held, by their positions, or None if none is."""
    held = allocated.in_pool(pool.id)
    if not held:
        return None
    devices = [device.name for each in pool.slices for device in each.devices]
    states = tuple((i, _state((*pool.id, name), allocated)) for i, name in enumerate(devices) if name in held)
    # Devices of the pool on other nodes take counters, too.
    elsewhere = tuple(
        device.traits
        for each in (pool.others if pool.counters else ())
        for device in each.devices
        if device.name in held
    )
    return states, elsewhere


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


def _state(id: DeviceId, allocated: AllocatedDevices) -> Any:
    return allocated.is_whole(id), allocated.is_shared(id), tuple(sorted(allocated.consumed(id).items()))
