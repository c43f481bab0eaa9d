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


def largest_part(resource: str, nodes: Nodes) -> Any:
    """Returns the largest share of one device that each row can give to a plain part, 0 if none."""
    return nodes.derived_for_all(_largest_part(resource))


def largest_part_of_row(resource: str, node: OneNode) -> int:
    """The same for one row."""
    found: int = node.columns.derived.all(_largest_part(resource), node.columns).item(node.row)
    return found


@functools.lru_cache(maxsize=64)
def _largest_part(resource: str) -> Derivation:
    """A share needs as much of the card's memory, rounded down. Cards that pods hold without names may be those that
    could give most."""
    plain = DeviceRequest(resource, 1)

    def of(nodes: Nodes) -> Any:
        sets, devices, where = nodes.devices, nodes.columns.devices, nodes.where
        usable, memory = devices.usable[:, where], devices.memory[:, where]
        by_memory = np.where(
            usable > 0, ((memory + 1) * WHOLE - 1) // np.maximum(usable, 1), memory.clip(-1, 0) + WHOLE
        )
        gives = unpacked(np.where(sets.shared, sets.offered(resource) & sets.healthy, _NONE), devices.slots)
        largest = np.zeros((devices.slots + 1, nodes.width), np.int64)  # and 0, for rows with too few
        largest[1:] = np.where(gives, np.maximum(np.minimum(devices.share[:, where], by_memory), 0), 0)
        held = np.broadcast_to(unnamed_cards(plain, sets), (nodes.width,))
        return np.sort(largest, axis=0)[np.maximum(devices.slots - held, 0), np.arange(nodes.width)]

    def of_one(node: OneNode) -> int:
        sets = node.devices
        gives = sets.offered(resource) & sets.healthy if sets.shared else 0
        amounts = enumerate(zip(sets.shares, sets.memory, sets.usable, strict=True))
        largest = [
            min(share, ((memory + 1) * WHOLE - 1) // usable if usable else WHOLE * (memory >= 0))
            for slot, (share, memory, usable) in amounts
            if gives >> slot & 1
        ]
        largest.sort(reverse=True)
        held = unnamed_cards(plain, sets)
        return max(largest[held], 0) if held < len(largest) else 0

    return Derivation(f"largest part of {resource}", of, of_one)


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
