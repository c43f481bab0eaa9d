"""The GPU that a node is expected to leave idle, for every state of a node, as a table.

A state is the free cpu, the number of whole GPUs that are free, and what is left of the two GPUs in use that have most
left, in coarse units. Pods are drawn from a mix of shapes, and each takes its part of the node if it fits. After each
draw the node ends with a small probability. So a shape that comes once in a thousand pods does not count as if it were
certain to come: without it 5.7 % of the GPUs stay idle instead of 4.2 (an eighth of openb, two seeds).

The value of a state follows from the values of the states that a pod can lead to, all of which have less GPU left:

    V(s) = (p_end idle(s) + sum of p_k V(s after shape k)) / (p_end + sum of p_k), over the shapes k that fit
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.devices.device_share import WHOLE

UNIT: Final = 50  # thousandths of a GPU
FULL: Final = WHOLE // UNIT
CPU_UNIT: Final = 1000  # thousandths
MAX_CPU: Final = 128  # cores: nodes with more count as this large
MAX_WHOLE: Final = 8  # GPUs
P_END: Final = 1 / 60


class Shape(NamedTuple):
    """A shape in coarse units, rounded up: cores, GPUs, and units of each. `share` is its part of the mix."""

    cpu: int
    gpus: int
    units: int
    share: float


class FillTable:
    """The table of one mix: `values[gpu state, cores]` in thousandths of a GPU."""

    def __init__(self, shapes: Sequence[Shape], p_end: float = P_END) -> None:
        self._on_gpus = [shape for shape in shapes if shape.gpus]
        self._without = [shape for shape in shapes if not shape.gpus]
        self._p_end = p_end
        self.values = np.zeros(((MAX_WHOLE + 1) * PAIRS, MAX_CPU + 1))
        self._pass([])
        if self._without:
            self._pass(self._without)

    def _pass(self, without_gpus: Sequence[Shape]) -> None:
        """Computes all values. Pods of `without_gpus` leave as much GPU: they lead to values of the pass before."""
        cores = np.arange(MAX_CPU + 1)
        steps = cores - np.array([shape.cpu for shape in self._on_gpus], np.int64)[:, None]
        shares = (steps >= 0) * np.array([shape.share for shape in self._on_gpus])[:, None]
        steps = np.maximum(steps, 0)
        others = cores - np.array([shape.cpu for shape in without_gpus], np.int64)[:, None]
        other_shares = (others >= 0) * np.array([shape.share for shape in without_gpus])[:, None]
        for state in _BY_IDLE:
            whole, (most, second) = divmod(state, PAIRS)[0], _PAIR_LIST[state % PAIRS]
            idle = (whole * FULL + most + second) * UNIT
            after = [_after(whole, most, second, shape) for shape in self._on_gpus]
            fits = [i for i, each in enumerate(after) if each is not None]
            if not fits:
                self.values[state] = idle
                continue
            states, dropped = (np.array(each) for each in zip(*(after[i] for i in fits), strict=True))
            found = self.values[states[:, None], steps[fits]] + dropped[:, None]
            total, weight = (shares[fits] * found).sum(axis=0), shares[fits].sum(axis=0)
            if len(others):
                stays = self.values[state][np.maximum(others, 0)]
                total = total + (other_shares * stays).sum(axis=0) * (weight > 0)
                weight = weight + other_shares.sum(axis=0) * (weight > 0)
            self.values[state] = (total + self._p_end * idle) / (weight + self._p_end)

    def at(self, cpu: Any, whole: Any, most: Any, second: Any) -> Any:
        """Returns the expected idle GPU of states: free cpu, whole GPUs, and what is left of the two GPUs in use that
        have most left; cpu and GPUs in use in thousandths."""
        state = np.minimum(whole, MAX_WHOLE) * PAIRS + _PAIR_OF[most // UNIT, second // UNIT]
        lost = most % UNIT + second % UNIT + np.maximum(whole - MAX_WHOLE, 0) * WHOLE
        return self.values[state, np.clip(cpu // CPU_UNIT, 0, MAX_CPU)] + lost


def _after(whole: int, most: int, second: int, shape: Shape) -> tuple[int, int] | None:
    """Returns the GPU state after a pod, and what no longer counts as usable; None if it does not fit. A part goes to
    the GPU that it fills up most."""
    if shape.gpus > 1 or shape.units == FULL:
        return None if whole < shape.gpus else (state_of(whole - shape.gpus, most, second), 0)
    if second >= shape.units:
        return state_of(whole, most, second - shape.units), 0
    if most >= shape.units:
        return state_of(whole, most - shape.units, second), 0
    if not whole:
        return None
    left = sorted((most, second, FULL - shape.units), reverse=True)
    return state_of(whole - 1, left[0], left[1]), left[2] * UNIT


def state_of(whole: int, one: int, other: int) -> int:
    """Returns the row of `values` for whole GPUs and two GPUs in use, in units."""
    return whole * PAIRS + int(_PAIR_OF[one, other])


def coarse(cpu: int, gpus: int, milli: int, share: float) -> Shape:
    """Returns a shape in coarse units."""
    units = -(-milli // UNIT) if gpus == 1 else FULL * (gpus > 0)
    return Shape(-(-cpu // CPU_UNIT), gpus, units, share)


_PAIR_LIST: Final = [(one, other) for one in range(FULL) for other in range(one + 1)]
PAIRS: Final = len(_PAIR_LIST)
_PAIR_OF: Final = np.zeros((FULL, FULL), np.int64)
for _i, (_one, _other) in enumerate(_PAIR_LIST):
    _PAIR_OF[_one, _other] = _PAIR_OF[_other, _one] = _i
_BY_IDLE: Final = sorted(
    range((MAX_WHOLE + 1) * PAIRS), key=lambda state: state // PAIRS * FULL + sum(_PAIR_LIST[state % PAIRS])
)
