"""How much of a node its pods request, in percent: the mean of cpu, memory and devices.

On a node with GPUs or other devices cpu and memory count 35 % each and devices 30 %; on a node without any, cpu and
memory count alike. It does not depend on the pod, so all classes share one column.
"""

import functools
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.state.derived import Derivation
from kubenexus.state.resources import CPU, MEMORY
from kubenexus.state.view import Nodes, OneNode

FULL: Final = 100.0


class Weights(NamedTuple):
    """What each resource counts, in percent of their sum."""

    cpu: int = 35
    memory: int = 35
    devices: int = 30


@functools.lru_cache(maxsize=64)
def utilization(weights: Weights = Weights()) -> Derivation:  # noqa: B008  # it is frozen
    """Returns the derived table of two columns: the utilization of each row, and 100 less it, rounded down."""

    def of(nodes: Nodes) -> Any:
        resources, devices = nodes.columns.resources, nodes.columns.devices
        alloc, used = resources.alloc[:, nodes.where], resources.used[:, nodes.where]
        cpu, memory = _percent(used[CPU], alloc[CPU]), _percent(used[MEMORY], alloc[MEMORY])
        both = (weights.cpu * cpu + weights.memory * memory) / (weights.cpu + weights.memory or 1)
        known = resources.of_devices
        if known:
            offered = alloc[known]
            there = offered.sum(axis=0)
            held = _percent((used[known] * (offered > 0)).sum(axis=0), there)
            if devices.shared[nodes.where].any():
                held = np.maximum(held, _shared_percent(nodes))
            total = weights.cpu * cpu + weights.memory * memory + weights.devices * held
            both = np.where(there > 0, total / (sum(weights) or 1), both)
        both = np.where((alloc[CPU] > 0) & (alloc[MEMORY] > 0), both, 0.0)
        return np.stack([both, FULL - both]).astype(np.uint8)

    return Derivation(f"utilization by {weights}", of, lambda node: utilization_of(node, weights))


def utilization_points(nodes: Nodes, weights: Weights, *, packs: bool) -> Any:
    """Returns the utilization of each row for pods that are packed, 100 less it for others; a number for one row."""
    which = 0 if packs else 1
    if isinstance(nodes, OneNode):
        return utilization_of(nodes, weights)[which]
    column = nodes.derived_for_all(utilization(weights))[which]
    return column.copy() if nodes.rows is None else column


def utilization_of(node: OneNode, weights: Weights) -> tuple[int, int]:
    """Returns the same for one row, as plain numbers."""
    there, taken, known = node.allocs, node.uses, node.columns.resources.of_devices
    if not there[CPU] or not there[MEMORY]:
        return 0, 100
    cpu, memory = _percent_of(taken[CPU], there[CPU]), _percent_of(taken[MEMORY], there[MEMORY])
    offered = sum([there[r] for r in known]) if known else 0
    if not offered:
        both = (weights.cpu * cpu + weights.memory * memory) / (weights.cpu + weights.memory or 1)
    else:
        held = _percent_of(sum([taken[r] for r in known if there[r]]), offered)
        if node.columns.devices.shared.item(node.row):
            held = max(held, _shared_percent_of(node))
        both = (weights.cpu * cpu + weights.memory * memory + weights.devices * held) / (sum(weights) or 1)
    return int(both), int(FULL - both)


def _percent(used: Any, alloc: Any) -> Any:
    return np.minimum(FULL * used.astype(np.float64) / np.maximum(alloc, 1).astype(np.float64), FULL)


def _percent_of(used: int, alloc: int) -> float:
    return min(FULL * float(used) / float(alloc or 1), FULL)


def _shared_percent(nodes: Nodes) -> Any:
    """Returns how much of the devices is taken on rows whose devices pods share, 0 on others."""
    devices, where = nodes.columns.devices, nodes.where
    number = np.bitwise_count(devices.healthy[where]).astype(np.int64)
    left = devices.share[:, where].sum(axis=0)
    taken = FULL * (number * WHOLE - np.minimum(left, number * WHOLE)) / np.maximum(number * WHOLE, 1)
    return np.where(devices.shared[where], taken, 0.0)


def _shared_percent_of(node: OneNode) -> float:
    """The same for one row, whose devices are shared."""
    devices = node.columns.devices
    whole = devices.healthy.item(node.row).bit_count() * WHOLE
    left: int = sum(devices.share[:, node.row].tolist())
    return FULL * (whole - min(left, whole)) / max(whole, 1)
