"""Columns about devices that many pod classes share: computed once for all rows, and again for rows that changed.

Most pods ask for a small number of devices, or for a round part of one, and nothing else. What such a pod gets of a
row depends on these few values, so a new class finds its columns computed.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.keys import gpu
from kubenexus.base.arrays import IntColumn
from kubenexus.plugins.devices.capacity import unnamed_cards
from kubenexus.plugins.devices.request import DeviceRequest
from kubenexus.plugins.devices.row_states import StateResults
from kubenexus.state.derived import Derivation
from kubenexus.state.devices.layout import ISLAND
from kubenexus.state.devices.view import unpacked
from kubenexus.state.view import Nodes, OneNode

_results: StateResults[int] = StateResults()
MANY: Final = np.int16(np.iinfo(np.int16).max)  # units of a row where numbers alone count


def units_to_take(resource: str, nodes: Nodes) -> Any:
    """Returns how many more units of a resource each row has on devices that are free."""
    return nodes.derived_for_all(_units(resource))


def parts(request: DeviceRequest, nodes: Nodes) -> Any:
    """Returns how many devices of each row have a plain part free. All rows share a column if many classes ask for it."""
    if nodes.rows is None and request.is_common:
        return nodes.derived(_parts(request.resource, request.share))
    return _parts_of(nodes, request.resource, request.share)


def parts_of_row(request: DeviceRequest, node: OneNode) -> int:
    """The same for one row."""
    table = node.columns.derived.all(_largest_parts(request.resource), node.columns)
    found: list[int] = table[:, node.row].tolist()
    return sum([each >= request.share for each in found[:-1]]) - found[-1]


def _parts_of(nodes: Nodes, resource: str, share: int) -> Any:
    table = nodes.derived_for_all(_largest_parts(resource))
    return (table[:-1] >= share).sum(axis=0) - table[-1]


@functools.lru_cache(maxsize=256)
def _parts(resource: str, share: int) -> Derivation:
    request = DeviceRequest(resource, 1, share)
    return Derivation(
        f"parts of {share} of {resource}",
        lambda nodes: _parts_of(nodes, resource, share),
        lambda node: parts_of_row(request, node),
    )


@functools.lru_cache(maxsize=64)
def _largest_parts(resource: str) -> Derivation:
    """Returns the derivation of the largest share that each device can give, 0 or less if none, and in a last row of
    the cards that pods hold without names. A share needs as much of the card's memory, rounded down."""
    plain = DeviceRequest(resource, 1)

    def of(nodes: Nodes) -> Any:
        sets, devices, where = nodes.devices, nodes.columns.devices, nodes.where
        usable, memory = devices.usable[:, where], devices.memory[:, where]
        by_memory = np.where(
            usable > 0, ((memory + 1) * WHOLE - 1) // np.maximum(usable, 1), memory.clip(-1, 0) + WHOLE
        )
        largest = np.minimum(devices.share[:, where], by_memory)
        gives = unpacked(np.where(sets.shared, sets.offered(resource) & sets.healthy, _NONE), devices.slots)
        unnamed = np.broadcast_to(unnamed_cards(plain, sets), (1, nodes.width))
        return np.concatenate([np.where(gives, largest, 0), unnamed])

    def of_one(node: OneNode) -> list[int]:
        sets = node.devices
        gives = sets.offered(resource) & sets.healthy if sets.shared else 0
        amounts = enumerate(zip(sets.shares, sets.memory, sets.usable, strict=True))
        largest = [
            min(share, ((memory + 1) * WHOLE - 1) // usable if usable else WHOLE * (memory >= 0))
            if gives >> slot & 1
            else 0
            for slot, (share, memory, usable) in amounts
        ]
        return [*largest, unnamed_cards(plain, sets)]

    return Derivation(f"largest parts of {resource}", of, of_one)


def shared_scores(
    request: DeviceRequest, nodes: Nodes, plugin: str, of: Callable[[Nodes], Any], of_one: Callable[[OneNode], int]
) -> IntColumn:
    """Returns the scores of a plugin for a request. Requests that many classes have are computed once for all."""
    if not request.is_common:
        own: IntColumn = of(nodes)
        return own
    what = f"{plugin}: {request.number} x {request.share} of {request.resource}"
    wanted = Derivation(
        what,
        lambda view: of(view).astype(np.int16),
        lambda node: _results.get(what, request, node, of_one),
    )
    found: IntColumn = nodes.derived_for_all(wanted)
    return found.copy() if nodes.rows is None else found


@functools.lru_cache(maxsize=64)
def _units(resource: str) -> Derivation:
    def of(nodes: Nodes) -> Any:
        sets = nodes.devices
        left = np.clip(sets.free_units(resource) - sets.unnamed(resource), -MANY, MANY).astype(np.int16)
        return np.where(sets.offered(resource) == 0, MANY, left)

    def of_one(node: OneNode) -> int:
        # A pod that names its node may request any number there, far more than an int16 holds.
        left: int = node.devices.units_to_take(resource)
        return max(min(left, int(MANY)), -int(MANY))

    return Derivation(f"units of {resource}", of, of_one)


def by_island(devices: Any, sets: Any) -> Any:
    """Returns how many devices of a set are in each island, and in a last row all of a node without islands."""
    counts = sets.group_sizes(devices, ISLAND)
    alone = sets.count(devices) * (sets.group_sizes(_EVERY, ISLAND).sum(axis=0) == 0)
    return np.concatenate([counts, alone[None, :]])


def in_use(resource: str, nodes: Nodes) -> Any:
    """Returns the rows on which no island counts as whole: pods without names hold some device, or the label says so.

    The label `is-pristine` may only spoil an island. It goes stale, so `true` is not believed.
    """
    sets = nodes.devices
    spoiled = nodes.cached_until_node_change("islands in use", _spoiled) | sets.sliced
    return spoiled | (sets.unnamed(resource) > 0) if resource else spoiled


def is_in_use(resource: str, node: OneNode) -> bool:
    """The same for one row."""
    sets = node.devices
    if sets.sliced:
        return True
    if node.columns.labels.rows_with(gpu.PRISTINE.key) and label_spoils(node.labels.get(gpu.PRISTINE.key, "")):
        return True
    return bool(resource) and sets.unnamed(resource) > 0


def label_spoils(value: str) -> bool:
    return value.strip().lower() == "false"


def _spoiled(nodes: Nodes) -> Any:
    codes, column = nodes.label(gpu.PRISTINE.key)
    return np.array([label_spoils(value) for value in column.values.names], np.bool_)[codes]


_EVERY, _NONE = np.uint64(2**64 - 1), np.uint64(0)
