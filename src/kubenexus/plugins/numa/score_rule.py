"""The points of a NUMA node for a pod class (`points.py`), for columns of states and for one.

A class of pods is scored on all states when it is first seen, so that the columns are passed over as rarely as can be:

    score = min(most, most + leeway - |balance - cores * cpu - memory * byte|)

All but `cores` and `memory` follows from the NUMA node alone and is a derived column that all classes share, in points
of the score. `balance` is what is free beyond the best use. Where the pod does not fit there are no points, so that
nothing is left that is negative. The plain form computes in the same order: both round alike.
"""

from typing import Any, Final

import numpy as np

from kubenexus.plugins.numa.own_policy import MEMORY, allowed, amounts
from kubenexus.plugins.numa.points import (
    ALONE,
    BEST_FREE,
    DEVICES,
    LEAST_FITTING,
    LEEWAY,
    NEUTRAL,
    OF_CPU,
    OF_MEMORY,
    PREFERRED,
    WEIGHTS,
    bandwidth_points,
    cpu_percent,
    distance_points,
    memory_percent,
    node_points,
)
from kubenexus.plugins.numa.request import USUAL_WEIGHT, NumaRequest, Wanted, is_intensive
from kubenexus.state.numa.zone_states import ZoneState, ZoneStates

_MAX_DISTANCES: Final = 256  # sums of distances; machines of one kind have one or two
UNFIT: Final = -1  # the score where it does not fit
_SCALE: Final = (100 - LEAST_FITTING) / 100  # points of a node's score for each point of a NUMA node
_FIT: Final = WEIGHTS.fit * _SCALE
_BANDWIDTH: Final = WEIGHTS.bandwidth * _SCALE
_BEST_FREE: Final = BEST_FREE * _FIT
_LEEWAY: Final = LEEWAY * _FIT
_GRACE: Final = (PREFERRED - 1) * 100 * _FIT  # what a preferred NUMA node may lack of the best fit
_DEVICES: Final = DEVICES * _SCALE
_HIGHEST: Final = node_points(100)
# The points of a pod that finds the best use: fit, bandwidth and gang.
_BASE: Final = WEIGHTS.fit * 100 + WEIGHTS.bandwidth * NEUTRAL + WEIGHTS.gang * NEUTRAL


class ScoreRule:
    """The score of a node for each of its NUMA nodes; the best one counts."""

    nothing = UNFIT

    def __init__(self, request: NumaRequest, wanted: Wanted) -> None:
        self.request, self.wanted = request, wanted
        self.intensive = is_intensive(request, wanted)
        self._best_uses: dict[tuple[int, int], float] = {}

    def many(self, states: ZoneStates, codes: Any) -> Any:
        request, wanted = self.request, self.wanted
        taken = states.derived("cpu_points", codes, _cpu_points) * wanted.cores
        off = states.derived("balance", codes, _balance) - taken
        np.multiply(states.derived("byte_points", codes, _byte_points), wanted.memory, out=taken)
        off -= taken
        np.abs(off, out=off)
        if request.preferred:
            preferred = np.isin(states.field("id", codes), request.preferred)
            off = np.where(preferred, np.maximum((off - _LEEWAY) * PREFERRED - _GRACE, 0) + _LEEWAY, off)
        most = self._most(states, codes)
        points = most + _LEEWAY
        points -= off
        np.minimum(points, most, out=points)
        fits = allowed(request, states, codes)
        for number, _, left, known in amounts(wanted, states, codes):
            fits &= (left >= number) | ~known
        if wanted.devices:
            points += self._devices(states, codes)
        np.minimum(points, _HIGHEST, out=points)
        return np.where(fits, points.astype(np.int16), np.int16(UNFIT))

    def _most(self, states: ZoneStates, codes: Any) -> Any:
        """Returns the score of the best use."""
        if self.request.weight == USUAL_WEIGHT:
            most = states.derived("most", codes, _usual_most)
        else:
            most = _most_points(states, codes, self.request.weight)
        if not self.intensive:
            return most
        memory, _, _ = states.amounts("memory", MEMORY, codes)
        known = (memory > 0) & (states.field("bandwidth", codes) > 0)
        more = (bandwidth_points(self.wanted.memory, memory) - NEUTRAL) * _BANDWIDTH
        return most + np.where(known, more, 0)

    def _devices(self, states: ZoneStates, codes: Any) -> Any:
        known = np.zeros(1, np.bool_)
        for resource, _ in self.wanted.devices:
            known = known | states.amounts("devices", resource, codes)[2]
        return known * _DEVICES

    def one(self, state: ZoneState, states: ZoneStates) -> int:
        """The same for one state."""
        request, wanted, kubelet = self.request, self.wanted, states.kinds[state.kind][1]
        if state.id in request.avoided or (state.free_cpus < wanted.cores and kubelet.static_cpus):
            return UNFIT
        total = free = 0
        for kind, of_kind, left in state.memory:
            if kind == MEMORY:
                total, free = of_kind, left
                if left < wanted.memory and kubelet.static_memory:
                    return UNFIT
        devices = self._devices_of_one(state) if wanted.devices else 0
        if devices < 0:
            return UNFIT
        cpu = (OF_CPU if total else 100) / state.all_cpus * _FIT if state.all_cpus else 0.0
        byte = OF_MEMORY / total * _FIT if total else 0.0
        balance = state.free_cpus * cpu + free * byte - _BEST_FREE
        off = abs(balance - cpu * wanted.cores - byte * wanted.memory)
        if state.id in request.preferred:
            off = max((off - _LEEWAY) * PREFERRED - _GRACE, 0) + _LEEWAY
        alike = states.kinds[state.kind][0], state.apart
        most = self._best_uses.get(alike)
        if most is None:
            most = self._best_use(*alike)
        if self.intensive and total and state.bandwidth:
            most += (max(100 - 100 * wanted.memory / total, 0) - NEUTRAL) * _BANDWIDTH
        points = min(most + _LEEWAY - off, most)
        return int(min(points + devices, _HIGHEST))

    def _devices_of_one(self, state: ZoneState) -> float:
        """Returns the points for a device resource that the pod wants and that is on NUMA nodes; UNFIT if there are too
        few of one."""
        points = 0.0
        for resource, number in self.wanted.devices:
            for name, _, left in state.devices:
                if name == resource:
                    if left < number:
                        return UNFIT
                    points = _DEVICES
        return points

    def _best_use(self, zones: int, apart: int) -> float:
        """Returns the score of the best use of a NUMA node with as many others that are so far apart."""
        distance: float = ALONE
        if zones > 1:
            distance = min(max(100 - (apart / (zones - 1) - 10) * 5 * self.request.weight / 50, 0), 100)
        if len(self._best_uses) >= _MAX_DISTANCES:
            self._best_uses.clear()
        most: float = node_points(_BASE + WEIGHTS.distance * distance)
        self._best_uses[zones, apart] = most
        return most


def _cpu_points(states: ZoneStates, codes: Any) -> Any:
    memory, _, _ = states.amounts("memory", MEMORY, codes)
    return cpu_percent(states.field("all_cpus", codes), memory) * _FIT


def _byte_points(states: ZoneStates, codes: Any) -> Any:
    return memory_percent(states.amounts("memory", MEMORY, codes)[0]) * _FIT


def _balance(states: ZoneStates, codes: Any) -> Any:
    of_cpus = states.field("free_cpus", codes) * _cpu_points(states, codes)
    return of_cpus + states.amounts("memory", MEMORY, codes)[1] * _byte_points(states, codes) - _BEST_FREE


def _usual_most(states: ZoneStates, codes: Any) -> Any:
    return _most_points(states, codes, USUAL_WEIGHT)


def _most_points(states: ZoneStates, codes: Any, weight: int) -> Any:
    others = states.field("others", codes)
    mean = states.field("apart", codes) / np.maximum(others, 1)
    return node_points(_BASE + WEIGHTS.distance * np.where(others > 0, distance_points(mean, weight), ALONE))
