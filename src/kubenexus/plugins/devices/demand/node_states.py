"""The state of a node's GPUs as the demand-driven score reads it: what is left of each GPU, most first.

GPUs that pods hold without names count as whole ones that are taken. A GPU that is broken has nothing left.
"""

import functools
from typing import Any, Final

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.state.demand import TYPE_LABELS
from kubenexus.state.derived import Derivation
from kubenexus.state.devices.view import unpacked
from kubenexus.state.view import Nodes, OneNode

MIN_SLOTS: Final = 3  # so that every state has two GPUs in use, and one more that a part begins


def gpus_left(nodes: Nodes) -> Any:
    """Returns `left[i, n]`: what is left of each GPU of row n in thousandths, most first."""
    # The column of all rows is brought up to date once for all classes, so some rows are taken out of it.
    found = _all_left(nodes)
    return found if nodes.rows is None else found[:, nodes.rows]


def gpus_left_on(node: OneNode) -> list[int]:
    """The same for one row."""
    left: list[int] = _all_left(node)[:, node.row].tolist()
    return left


def _all_left(nodes: Nodes) -> Any:
    columns = nodes.columns
    return columns.derived.all(_left_of(max(columns.devices.slots, MIN_SLOTS)), columns)


@functools.lru_cache(maxsize=64)
def _left_of(slots: int) -> Derivation:
    return Derivation(f"GPUs left, of {slots}", _of_rows, _of_row)


def _of_rows(nodes: Nodes) -> Any:
    devices, where, sets = nodes.columns.devices, nodes.where, nodes.devices
    usable = unpacked(sets.offered("") & sets.healthy, devices.slots)
    left = np.zeros((max(devices.slots, MIN_SLOTS), nodes.width), np.int32)
    left[: devices.slots] = np.where(usable, np.clip(devices.share[:, where], 0, WHOLE), 0)
    left = -np.sort(-left, axis=0)
    unnamed = _unnamed(sets)
    if unnamed.any():
        left = -np.sort(-np.where(np.arange(len(left))[:, None] < unnamed, 0, left), axis=0)
    return left


def _of_row(node: OneNode) -> list[int]:
    sets, slots = node.devices, node.columns.devices.slots
    usable = sets.offered("") & sets.healthy
    left = [max(min(share, WHOLE), 0) if usable >> slot & 1 else 0 for slot, share in enumerate(sets.shares)]
    left += [0] * (max(slots, MIN_SLOTS) - len(left))
    left.sort(reverse=True)
    gpus = sets.offered("")
    taken = sum([max(sets.unnamed(name), 0) for name in sets.resources if sets.offered(name) & gpus])
    if taken > 0:
        left[:taken] = [0] * min(taken, len(left))
        left.sort(reverse=True)
    return left


def _unnamed(sets: Any) -> Any:
    found: Any = 0
    for name in sets.resources:
        found = found + np.maximum(sets.unnamed(name), 0) * (sets.offered(name) & sets.offered("") != 0)
    return np.asarray(found)


def gpu_types(nodes: Nodes) -> Any:
    """Returns the GPU type that labels give each row, "" if none; of one row as a text."""
    if isinstance(nodes, OneNode):
        labels = nodes.labels
        return next((labels[key] for key in TYPE_LABELS if labels.get(key)), "")
    return nodes.cached_until_node_change("GPU types", _types)


def _types(nodes: Nodes) -> Any:
    found = np.full(nodes.width, "", object)
    for key in reversed(TYPE_LABELS):
        if nodes.columns.labels.rows_with(key):
            codes, column = nodes.label(key)
            named = np.array([str(name or "") for name in column.values.names], object)[codes]
            found = np.where(named == "", found, named)
    return found
