"""The GPU that a node is expected to leave idle, for every state of a node, as a table.

A state is the free cpu, the number of whole GPUs that are free, and what is left of the two GPUs in use that have most
left, in coarse units. Pods are drawn from a mix of shapes, and each takes its part of the node if it fits. After each
draw the node ends with a small probability, so that a shape that comes once in a thousand pods is not certain to come.

The value of a state follows from the values of the states that a pod can lead to, all of which have less GPU left:

    V(s) = (p_end idle(s) + sum of p_k V(s after shape k)) / (p_end + sum of p_k), over the shapes k that fit

States with equally much GPU left do not depend on each other, so each such level is one matrix product.
"""

import functools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.devices.device_share import WHOLE

UNIT: Final = 50  # thousandths of a GPU
FULL: Final = WHOLE // UNIT
CPU_UNIT: Final = 2000  # thousandths of a core
MAX_CPU: Final = 64  # units: nodes with more free cpu count as this large
CPUS: Final = MAX_CPU + 1  # values of each state
MAX_WHOLE: Final = 8  # GPUs: nodes with more free ones count as this large
P_END: Final = 1 / 200
_PAIR_LIST: Final = [(one, other) for one in range(FULL) for other in range(one + 1)]
PAIRS: Final = len(_PAIR_LIST)
STATES: Final = (MAX_WHOLE + 1) * PAIRS
PAIR_OF: Final = np.zeros((FULL, FULL), np.int64)
for _i, (_one, _other) in enumerate(_PAIR_LIST):
    PAIR_OF[_one, _other] = PAIR_OF[_other, _one] = _i


class CoarseShape(NamedTuple):
    """A shape in coarse units, rounded up: cpu, GPUs, and units of each. `share` is its part of the mix."""

    cpu: int
    gpus: int
    units: int
    share: float


class _Steps(NamedTuple):
    """Where one kind of GPU request leads from each state: the state after it, whether it fits, and the units that
    count no longer, of a third GPU in use."""

    after: Any
    fits: Any
    dropped: Any


def coarse(cpu: int, gpus: int, milli: int, share: float) -> CoarseShape:
    """Returns a shape in coarse units."""
    units = -(-milli // UNIT) if gpus == 1 else FULL * (gpus > 0)
    return CoarseShape(-(-cpu // CPU_UNIT), gpus, units, share)


def fill_values(shapes: Sequence[CoarseShape], most_gpus: int = MAX_WHOLE) -> Any:
    """Returns `values[state, cpu]` in thousandths of a GPU. Nodes have at most so many GPUs."""
    requests = sorted({(shape.gpus, shape.units) for shape in shapes if 0 < shape.gpus <= MAX_WHOLE})
    if not requests:
        return np.repeat(_idle()[:, None] * np.float32(UNIT), MAX_CPU + 1, axis=1)
    steps = [_steps(*request) for request in requests]
    after = np.stack([step.after for step in steps], axis=1)
    fits = np.stack([step.fits for step in steps], axis=1)
    dropped = np.stack([step.dropped for step in steps], axis=1) * np.float32(UNIT)
    shifts = np.stack([_shift(shapes, request) for request in requests])
    weights = shifts.sum(axis=1)  # of each request, by cpu
    flat, without = shifts.reshape(-1, MAX_CPU + 1), _shift(shapes, (0, 0))
    without_weight = without.sum(axis=0)
    weight = fits.astype(np.float32) @ weights + np.float32(P_END)
    total = (fits * dropped) @ weights + (_idle() * np.float32(UNIT * P_END))[:, None]
    values = np.zeros((STATES + 1, MAX_CPU + 1), np.float32)  # the last row is 0: where a shape does not fit
    after = np.where(fits, after, STATES)
    for level in _levels(min(most_gpus, MAX_WHOLE)):
        found = values[after[level]].reshape(len(level), -1) @ flat + total[level]
        stays = found / weight[level]
        # Pods without GPUs leave as much GPU: they lead to the values without them.
        counts = weight[level] > P_END * 1.001
        values[level] = (found + (stays @ without) * counts) / (weight[level] + without_weight * counts)
    return values[:STATES]


def _shift(shapes: Sequence[CoarseShape], request: tuple[int, int]) -> Any:
    """Returns `m[c, d]`: the share of the shapes with this request that take a node from `d` to `c` units of cpu."""
    by_cpu = np.zeros(MAX_CPU + 1, np.float32)
    for shape in shapes:
        if (shape.gpus, shape.units) == request and shape.cpu <= MAX_CPU:
            by_cpu[shape.cpu] += shape.share
    taken = np.arange(MAX_CPU + 1)[None, :] - np.arange(MAX_CPU + 1)[:, None]
    return np.where(taken >= 0, by_cpu[np.maximum(taken, 0)], np.float32(0))


@functools.cache
def _idle() -> Any:
    """Returns the units of GPU that are left in each state."""
    pairs = np.array([sum(pair) for pair in _PAIR_LIST], np.float32)
    return (np.arange(MAX_WHOLE + 1, dtype=np.float32)[:, None] * FULL + pairs).reshape(-1)


@functools.cache
def _levels(most_gpus: int) -> tuple[Any, ...]:
    """Returns the states with equally much GPU left, least first."""
    idle = _idle()[: (most_gpus + 1) * PAIRS].astype(np.int64)
    order = np.argsort(idle, kind="stable")
    return tuple(np.split(order, np.flatnonzero(np.diff(idle[order])) + 1))


@functools.cache
def _steps(gpus: int, units: int) -> _Steps:
    """Returns where a request leads. A part goes to the GPU that it fills up most."""
    pairs = np.array(_PAIR_LIST)
    whole = np.repeat(np.arange(MAX_WHOLE + 1), PAIRS)
    most, second = (np.tile(pairs[:, i], MAX_WHOLE + 1) for i in (0, 1))
    nothing = np.zeros(STATES, np.float32)
    if units == FULL:
        return _Steps(_state(np.maximum(whole - gpus, 0), most, second), whole >= gpus, nothing)
    on_second, on_most = second >= units, most >= units
    left = np.sort(np.stack([most, second, np.full(STATES, FULL - units)]), axis=0)
    begins = ~on_most
    after = _state(
        np.maximum(whole - begins, 0),
        np.where(begins, left[2], np.where(on_second, most, most - units)),
        np.where(begins, left[1], np.where(on_second, second - units, second)),
    )
    return _Steps(after, on_most | (whole > 0), np.where(begins, left[0], 0).astype(np.float32))


def _state(whole: Any, one: Any, other: Any) -> Any:
    return whole * PAIRS + PAIR_OF[one, other]
