"""Draws of runtimes from earlier runs: given how long a pod has run already, and how few runs are known.

Runs x1 < ... < xn cut the line into n + 1 parts, each as likely as the others in the mean. A draw first draws how
likely each part is, once for all pods of a workload (the Bayesian bootstrap), and then a runtime. Beyond the longest
run the tail is Pareto's with exponent 1: a pod that has outlived all runs takes twice as long again, in the median.

Numbers follow from the names of objects, so that two answers in a row differ by what changed in the cluster alone.
"""

import hashlib
import math
from typing import Any, Final

import numpy as np

from kubenexus.state.runtimes.memory import KnownRuns

DRAWS: Final = 32
LONGEST: Final = math.log(3e9)  # seconds: a hundred years
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST: Final = np.uint64(31)
_SCALE: Final = 2.0**-53


def uniforms(name: str, count: int) -> Any:
    """Returns numbers between 0 and 1 that follow from a name (SplitMix64)."""
    seed = np.frombuffer(hashlib.blake2b(name.encode(), digest_size=8).digest(), np.uint64)[0]
    with np.errstate(over="ignore"):
        z = seed + _GOLDEN * np.arange(1, count + 1, dtype=np.uint64)
        for shift, factor in _MIX:
            z = (z ^ (z >> shift)) * factor
        z = z ^ (z >> _LAST)
    return ((z >> np.uint64(11)).astype(np.float64) + 0.5) * _SCALE


def strata(name: str, count: int) -> Any:
    """Returns one number of each of `count` equal parts of 0 to 1, in an order that follows from the name."""
    found = uniforms(name, count)
    return (found.argsort().argsort() + found) / count


class RuntimeDraws:
    """Draws for all pods of one answer."""

    def __init__(self, draws: int = DRAWS) -> None:
        self._draws = draws
        self._positions: dict[str, Any] = {}

    def seconds(self, name: str, workload: str, runs: KnownRuns, elapsed: float = 0.0) -> Any:
        """Returns how long a pod or gang runs in each draw, from its start on, if it has run for `elapsed` seconds.
        `workload`: pods with the same one share what is drawn about their earlier runs."""
        points = np.log(np.maximum(np.array(runs.seconds), 1e-3))
        positions = self._spread(workload, len(points))
        chances = strata(name, self._draws)
        found = np.empty(self._draws)
        for draw in range(self._draws):
            below = _chance(math.log(elapsed), points, positions[draw]) if elapsed > 0 else 0.0
            found[draw] = _quantile(below + (1.0 - below) * chances[draw], points, positions[draw])
        found = np.exp(np.minimum(found, LONGEST))
        return np.minimum(np.maximum(found, elapsed), max(runs.limit, elapsed))

    def _spread(self, workload: str, runs: int) -> Any:
        """Returns by draw the part of all runs that is below each known one."""
        key = f"{workload} {runs}"
        found = self._positions.get(key)
        if found is None:
            parts = -np.log(uniforms(key, self._draws * (runs + 1))).reshape(self._draws, runs + 1)
            sums = parts.cumsum(axis=1)
            found = self._positions[key] = sums[:, :-1] / sums[:, -1:]
        return found


def _quantile(chance: float, points: Any, positions: Any) -> float:
    """Returns the logarithm of the runtime that a part `chance` of all runs stays below."""
    if chance <= positions[0]:
        return float(points[0] + math.log(max(chance, 1e-9) / positions[0]))
    if chance >= positions[-1]:
        return float(points[-1] + math.log((1.0 - positions[-1]) / max(1.0 - chance, 1e-9)))
    return float(np.interp(chance, positions, points))


def _chance(point: float, points: Any, positions: Any) -> float:
    """Returns the part of all runs that stays below a runtime, by its logarithm."""
    if point <= points[0]:
        return float(positions[0] * math.exp(point - points[0]))
    if point >= points[-1]:
        return float(1.0 - (1.0 - positions[-1]) * math.exp(points[-1] - point))
    return float(np.interp(point, points, positions))
