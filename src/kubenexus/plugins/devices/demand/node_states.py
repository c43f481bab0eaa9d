"""What the demand-driven score reads of a row: the number of its GPU state (`gpu_states`), free cpu, and GPU type.

GPUs that pods hold without names count as whole ones that are taken. A GPU that is broken has nothing left. All classes
share one table of numbers and cpu.
"""

from typing import Any, Final

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.resource_names import CPU
from kubenexus.plugins.devices.demand.gpu_states import MIN_SLOTS, GpuStates
from kubenexus.state.demand import TYPE_LABELS
from kubenexus.state.derived import Derivation
from kubenexus.state.devices.view import unpacked
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

MAX_STATES: Final = 1 << 14  # and four for each row: then all rows get new numbers


class _NumberedStates:
    """GPU states, and the derived table of two columns: the number of each row's state, and its free cpu."""

    def __init__(self, generation: int) -> None:
        self.states, self.generation = GpuStates(), generation
        self.derivation = Derivation(f"GPU states {generation} and cpu", self._of_rows, self._of_row)

    def _of_rows(self, nodes: Nodes) -> Any:
        left = _left_of_rows(nodes)
        numbers = [self.states.number_of(each) for each in left.T.tolist()]
        return np.stack([np.array(numbers, np.int64), nodes.alloc(CPU) - nodes.used(CPU)])

    def _of_row(self, node: OneNode) -> list[int]:
        where = node.columns.resources.index[CPU]
        return [self.states.number_of(_left_of_row(node)), node.allocs[where] - node.uses[where]]


_current: list[_NumberedStates] = [_NumberedStates(0)]


def states_for(columns: NodeColumns) -> GpuStates:
    """Returns the GPU states that `numbers_and_cpu` counts by."""
    return _numbered(columns).states


def numbers_and_cpu(nodes: Nodes) -> Any:
    """Returns `[field, n]`: the number of the GPU state and the free cpu of each row."""
    return nodes.derived_for_all(_numbered(nodes.columns).derivation)


def number_of_row(node: OneNode) -> int:
    """Returns the number of the GPU state of one row."""
    number: int = node.columns.derived.all(_numbered(node.columns).derivation, node.columns).item(0, node.row)
    return number


def gpus_left(nodes: Nodes) -> Any:
    """Returns `left[i, n]`: what is left of each GPU of row n in thousandths, most first."""
    numbers = numbers_and_cpu(nodes)[0]
    return states_for(nodes.columns).left(numbers, max(nodes.columns.devices.slots, MIN_SLOTS))


def _numbered(columns: NodeColumns) -> _NumberedStates:
    known = _current[0]
    if len(known.states) >= MAX_STATES + 4 * columns.size:
        known = _current[0] = _NumberedStates(known.generation + 1)
    return known


def _left_of_rows(nodes: Nodes) -> Any:
    devices, where, sets = nodes.columns.devices, nodes.where, nodes.devices
    usable = unpacked(sets.offered("") & sets.healthy, devices.slots)
    left = np.zeros((max(devices.slots, MIN_SLOTS), nodes.width), np.int64)
    left[: devices.slots] = np.where(usable, np.clip(devices.share[:, where], 0, WHOLE), 0)
    left = -np.sort(-left, axis=0)
    unnamed = _unnamed(sets)
    if unnamed.any():
        left = -np.sort(-np.where(np.arange(len(left))[:, None] < unnamed, 0, left), axis=0)
    return left


def _left_of_row(node: OneNode) -> list[int]:
    """The same for one row."""
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
