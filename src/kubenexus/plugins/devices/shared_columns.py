"""Columns about whole devices that all pod classes share: computed once for all rows, and again for rows that changed.

Most pods ask for devices by number alone. What such a pod gets of a row depends on the resource and the number only,
so the columns here leave each new class a comparison or two. They hold 16-bit numbers: a node has up to 64 devices.
"""

import functools
from typing import Any, Final

import numpy as np

from kubenexus.api.keys import gpu
from kubenexus.state.derived import Derivation
from kubenexus.state.devices.layout import ISLAND, LEVELS
from kubenexus.state.view import Nodes

MANY: Final = np.int16(np.iinfo(np.int16).max)  # units of a row where numbers alone count
# Planes of `islands`: free and all devices of each island, and the points that only a whole island gets, -1 if it is
# not whole: if it is small, and if a pod takes three or more but less than half of it.
FREE, TOTAL, SMALL, LARGE = range(4)
SMALL_AND_WHOLE, MIN_ISLAND = 40, 4  # GPUs of an island that is kept whole


def units(resource: str, nodes: Nodes) -> Any:
    """Returns how many more units of a resource each row has on devices that are free."""
    return nodes.derived(_units(resource))


def islands(resource: str, nodes: Nodes) -> Any:
    """Returns the planes of all islands; the last is that of all devices of a row without islands."""
    return nodes.derived(_islands(resource, len(nodes.columns.devices.groups[ISLAND])))


def largest_groups(resource: str, nodes: Nodes) -> Any:
    """Returns, for each level, the most free devices of the resource that are together there."""
    return nodes.derived(_largest(resource, tuple(len(each) for each in nodes.columns.devices.groups)))


@functools.lru_cache(maxsize=64)
def _units(resource: str) -> Derivation:
    def of(nodes: Nodes) -> Any:
        sets = nodes.devices
        offered = sets.offered(resource)
        left = np.minimum(sets.count(offered & sets.free) - sets.unnamed(resource), MANY).astype(np.int16)
        return np.where((offered == 0) | sets.sliced, MANY, left)

    return Derivation(f"units of {resource}", of)


@functools.lru_cache(maxsize=256)
def _islands(resource: str, groups: int) -> Derivation:
    def of(nodes: Nodes) -> Any:
        sets = nodes.devices
        could = sets.offered(resource) & sets.healthy
        total, free = by_island(could, sets), by_island(could & sets.free, sets)
        whole = (free == total) & ~in_use(resource, nodes)
        planes = np.empty((4, *total.shape), np.int16)
        planes[FREE], planes[TOTAL] = free, total
        planes[SMALL] = np.where(whole, np.where(total < MIN_ISLAND, SMALL_AND_WHOLE, 0), -1)
        planes[LARGE] = np.where(whole & (total >= MIN_ISLAND), 20 + sets.quality // 10, -1)
        return planes

    return Derivation(f"islands of {resource}, {groups}", of)


@functools.lru_cache(maxsize=256)
def _largest(resource: str, groups: tuple[int, ...]) -> Derivation:
    def of(nodes: Nodes) -> Any:
        sets = nodes.devices
        free = sets.offered(resource) & sets.healthy & sets.free
        return np.stack([sets.in_groups(free, level).max(axis=0, initial=0) for level in LEVELS]).astype(np.int16)

    return Derivation(f"groups of {resource}, {groups}", of)


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


def label_spoils(value: str) -> bool:
    return value.strip().lower() == "false"


def _spoiled(nodes: Nodes) -> Any:
    codes, column = nodes.label(gpu.PRISTINE.key)
    return np.array([label_spoils(value) for value in column.values.names], np.bool_)[codes]


_EVERY: Final = np.uint64(2**64 - 1)
