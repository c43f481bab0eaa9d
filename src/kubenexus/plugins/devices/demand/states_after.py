"""The states of nodes (`node_states`) that a pod leads to.

The state after whole GPUs follows from the one before. Classes that ask for the same part of a GPU share the states
after it.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.plugins.devices.demand.node_states import (
    CoarseState,
    gpus_left,
    gpus_left_on,
    state_of,
    states_and_cpu,
    states_of,
)
from kubenexus.plugins.devices.request import COMMON_PARTS
from kubenexus.state.derived import Derivation
from kubenexus.state.view import Nodes, OneNode


class Wanted(NamedTuple):
    """What a pod takes: cpu in thousandths, a number of GPUs, and thousandths of each."""

    cpu: int
    gpus: int
    milli: int


def states(wanted: Wanted, nodes: Nodes) -> Any:
    """Returns `[field, when, n]`: the fields of CoarseState and the free cpu of rows, before and after a pod. Rows that
    cannot take it have anything after it."""
    before = states_and_cpu(nodes)
    both = np.empty((4, 2, nodes.width), np.int64)
    both[:] = before[:, None]
    both[3, 1] -= wanted.cpu
    if wanted.milli == WHOLE:
        np.maximum(before[0] - wanted.gpus, 0, out=both[0, 1])
    elif wanted.gpus:
        part = _after_part(wanted.milli)
        # A tenant may write any other part, so those share no columns.
        both[:3, 1] = part.of(nodes) if wanted.milli % COMMON_PARTS else nodes.derived_for_all(part)
    return both


def state_of_row_after(wanted: Wanted, before: CoarseState, node: OneNode) -> CoarseState:
    """Returns the state of one row after a pod."""
    if not wanted.gpus:
        return before
    if wanted.milli == WHOLE:
        return CoarseState(max(before.whole - wanted.gpus, 0), before.pair, before.lost)
    if wanted.milli % COMMON_PARTS:
        return state_of(after_part_on_row(wanted.milli, gpus_left_on(node)))
    return CoarseState(*node.columns.derived.all(_after_part(wanted.milli), node.columns)[:, node.row].tolist())


def after_part(milli: int, left: Any) -> Any:
    """Returns what is left of the GPUs of rows after a part of one, most first. It goes to the GPU that it fills up
    most."""
    tightest = np.maximum((left >= milli).sum(axis=0) - 1, 0)
    after = left.copy()
    after[tightest, np.arange(left.shape[1])] -= milli
    return -np.sort(-np.maximum(after, 0), axis=0)


def after_part_on_row(milli: int, left: list[int]) -> list[int]:
    """The same for one row."""
    tightest = max(sum([each >= milli for each in left]) - 1, 0)
    after = left.copy()
    after[tightest] = max(after[tightest] - milli, 0)
    after.sort(reverse=True)
    return after


@functools.lru_cache(maxsize=256)
def _after_part(milli: int) -> Derivation:
    return Derivation(
        f"states of GPUs after a part of {milli}",
        lambda nodes: states_of(after_part(milli, gpus_left(nodes))),
        lambda node: state_of(after_part_on_row(milli, gpus_left_on(node))),
    )
