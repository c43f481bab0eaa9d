"""The state of a node as the demand-driven score reads it: what is left of each GPU, most first, the state of
`fill_table` that follows from it, and the free cpu. All classes share one table of them.

GPUs that pods hold without names count as whole ones that are taken. A GPU that is broken has nothing left.
"""

import functools
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.resource_names import CPU
from kubenexus.plugins.devices.demand.fill_table import CPUS, PAIR_OF, UNIT
from kubenexus.state.demand import TYPE_LABELS
from kubenexus.state.derived import Derivation
from kubenexus.state.devices.view import unpacked
from kubenexus.state.view import Nodes, OneNode

MIN_SLOTS: Final = 3  # so that every state has two GPUs in use, and one more that a part begins
_FIELDS: Final = 4  # of `states_and_cpu`


class CoarseState(NamedTuple):
    """The GPUs that are whole, the two GPUs in use that have most left (where the values of such a pair begin), and
    thousandths of a GPU that a state does not contain."""

    whole: int
    pair: int
    lost: int


def gpus_left(nodes: Nodes) -> Any:
    """Returns `left[i, n]`: what is left of each GPU of row n in thousandths, most first."""
    return _table(nodes)[:-_FIELDS]


def states_and_cpu(nodes: Nodes) -> Any:
    """Returns `[field, n]`: the fields of CoarseState, and the free cpu."""
    return _table(nodes)[-_FIELDS:]


def gpus_left_on(node: OneNode) -> list[int]:
    """Returns what is left of each GPU of one row, most first."""
    left: list[int] = _all(node)[:-_FIELDS, node.row].tolist()
    return left


def state_of_row(node: OneNode) -> CoarseState:
    """Returns the state of one row."""
    return CoarseState(*_all(node)[-_FIELDS:-1, node.row].tolist())


def states_of(left: Any) -> Any:
    """Returns a table of three rows, the fields of CoarseState, from what is left of each GPU, most first."""
    whole, rows, last = (left == WHOLE).sum(axis=0), np.arange(left.shape[1]), len(left) - 1
    most = np.where(whole <= last, left[np.minimum(whole, last), rows], 0)
    second = np.where(whole < last, left[np.minimum(whole + 1, last), rows], 0)
    lost = left.sum(axis=0) - whole * WHOLE - most // UNIT * UNIT - second // UNIT * UNIT
    return np.stack([whole, PAIR_OF[most // UNIT, second // UNIT] * CPUS, lost])


def state_of(left: list[int]) -> CoarseState:
    """The same for one row."""
    whole = left.count(WHOLE)
    most = left[whole] if whole < len(left) else 0
    second = left[whole + 1] if whole + 1 < len(left) else 0
    lost = sum(left) - whole * WHOLE - most // UNIT * UNIT - second // UNIT * UNIT
    return CoarseState(whole, PAIR_OF.item(most // UNIT, second // UNIT) * CPUS, lost)


def _table(nodes: Nodes) -> Any:
    return nodes.derived_for_all(_left_of(max(nodes.columns.devices.slots, MIN_SLOTS)))


def _all(nodes: Nodes) -> Any:
    columns = nodes.columns
    return columns.derived.all(_left_of(max(columns.devices.slots, MIN_SLOTS)), columns)


@functools.lru_cache(maxsize=64)
def _left_of(slots: int) -> Derivation:
    return Derivation(f"GPUs left, of {slots}", _of_rows, _of_row)


def _of_rows(nodes: Nodes) -> Any:
    devices, where, sets = nodes.columns.devices, nodes.where, nodes.devices
    usable = unpacked(sets.offered("") & sets.healthy, devices.slots)
    left = np.zeros((max(devices.slots, MIN_SLOTS), nodes.width), np.int64)
    left[: devices.slots] = np.where(usable, np.clip(devices.share[:, where], 0, WHOLE), 0)
    left = -np.sort(-left, axis=0)
    unnamed = _unnamed(sets)
    if unnamed.any():
        left = -np.sort(-np.where(np.arange(len(left))[:, None] < unnamed, 0, left), axis=0)
    return np.concatenate([left, states_of(left), (nodes.alloc(CPU) - nodes.used(CPU))[None]])


def _of_row(node: OneNode) -> list[int]:
    sets, slots, where = node.devices, node.columns.devices.slots, node.columns.resources.index[CPU]
    usable = sets.offered("") & sets.healthy
    left = [max(min(share, WHOLE), 0) if usable >> slot & 1 else 0 for slot, share in enumerate(sets.shares)]
    left += [0] * (max(slots, MIN_SLOTS) - len(left))
    left.sort(reverse=True)
    gpus = sets.offered("")
    taken = sum([max(sets.unnamed(name), 0) for name in sets.resources if sets.offered(name) & gpus])
    if taken > 0:
        left[:taken] = [0] * min(taken, len(left))
        left.sort(reverse=True)
    return [*left, *state_of(left), node.allocs[where] - node.uses[where]]


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
