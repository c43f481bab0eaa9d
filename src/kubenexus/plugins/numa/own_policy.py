"""What a pod's own policy finds on a NUMA node: whether all that it binds together is free there, and the points.

Amounts that a node does not report (memory without the static Memory Manager, CPUs without the static CPU Manager) are
unknown, and never refuse a node. The plain form computes in the same order as the columns, so that both round alike.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kubenexus.plugins.numa.points import (
    BEST_USE,
    LEAST_FITTING,
    NEUTRAL,
    WITH_DEVICES,
    WITHOUT_DEVICES,
    bandwidth_points,
    distance_points,
    fit_points,
    node_points,
    use_after,
    zone_points,
)
from kubenexus.plugins.numa.request import NumaRequest, Wanted, is_intensive
from kubenexus.state.numa.zone_states import ZoneState, ZoneStates

FITS: Final = 1  # everything is free here
COULD: Final = 2  # the empty NUMA node has enough of everything
IDLE: Final = 4  # it fits, and nothing is in use here
UNFIT: Final = -1  # the score where it does not fit
_MEMORY: Final = "memory"


class PolicyRule:
    """The bits of a pod's own policy."""

    nothing = 0

    def __init__(self, request: NumaRequest, wanted: Wanted) -> None:
        self.request, self.wanted = request, wanted

    def many(self, states: ZoneStates, codes: Any) -> Any:
        fits = could = _allowed(self.request, states, codes)
        for number, total, free, known in amounts(self.wanted, states, codes):
            fits = fits & ((free >= number) | ~known)
            could = could & ((total >= number) | ~known)
        bits = np.where(fits, FITS, 0) | np.where(could, COULD, 0)
        return (bits | np.where(fits & idle(states, codes), IDLE, 0)).astype(np.int16)

    def one(self, state: ZoneState, states: ZoneStates) -> int:
        if state.id in self.request.avoided:
            return 0
        bits = FITS | COULD
        for number, total, free in _amounts_of_one(self.wanted, state, states):
            bits &= (FITS if free >= number else 0) | (COULD if total >= number else 0)
        return bits | IDLE if bits & FITS and _is_idle(state) else bits


class ScoreRule:
    """The score of a node for each of its NUMA nodes; the best one counts."""

    nothing = UNFIT

    def __init__(self, request: NumaRequest, wanted: Wanted) -> None:
        self.request, self.wanted = request, wanted
        self.intensive = is_intensive(request, wanted)

    def many(self, states: ZoneStates, codes: Any) -> Any:
        request, wanted = self.request, self.wanted
        cpus, free_cpus = states.field("all_cpus", codes), states.field("free_cpus", codes)
        memory, free_memory, _ = states.amounts("memory", _MEMORY, codes)
        fit = fit_points(use_after(free_cpus - wanted.cores, cpus, free_memory - wanted.memory, memory))
        if request.preferred:
            preferred = np.isin(states.field("id", codes), request.preferred)
            fit = np.where(preferred, np.minimum(fit * 1.2, 100), fit)
        bandwidth: Any = NEUTRAL
        if self.intensive:
            bandwidth = np.where(memory > 0, bandwidth_points(wanted.memory, memory), NEUTRAL)
        others = states.field("others", codes)
        mean = states.field("apart", codes) / np.maximum(others, 1)
        distance = np.where(others > 0, distance_points(mean, request.weight), 100)
        bonus = np.zeros(len(cpus), np.int64)
        for resource, number in wanted.devices:
            _, free, known = states.amounts("devices", resource, codes)
            here = np.where((free >= number) & (bonus >= 0), WITH_DEVICES, WITHOUT_DEVICES)
            bonus = np.where(known, here, bonus)
        fits = _allowed(request, states, codes)
        for number, _, free, known in amounts(wanted, states, codes):
            fits = fits & ((free >= number) | ~known)
        return np.where(fits, node_points(zone_points(fit, bandwidth, distance, devices=bonus)), UNFIT)

    def one(self, state: ZoneState, states: ZoneStates) -> int:
        request, wanted = self.request, self.wanted
        if state.id in request.avoided:
            return UNFIT
        for number, _, free in _amounts_of_one(wanted, state, states):
            if free < number:
                return UNFIT
        use = 100 - 100 * max(state.free_cpus - wanted.cores, 0) / max(state.all_cpus, 1)
        memory, free_memory = next(((total, free) for kind, total, free in state.memory if kind == _MEMORY), (0, 0))
        if memory:
            of_memory = 100 - 100 * max(free_memory - wanted.memory, 0) / max(memory, 1)
            use = 0.6 * use + 0.4 * of_memory
        fit = 100 - max(BEST_USE[0] - use, use - BEST_USE[1], 0)
        if state.id in request.preferred:
            fit = min(fit * 1.2, 100)
        bandwidth: float = NEUTRAL
        if self.intensive and memory:
            bandwidth = max(100 - 100 * wanted.memory / memory, 0)
        points = 0.40 * fit + 0.25 * bandwidth + 0.20 * self._distance(state, states) + 0.15 * NEUTRAL
        points = min(max(points + self._bonus(state), 0), 100)
        return int(LEAST_FITTING + points * (100 - LEAST_FITTING) / 100 + 0.5)

    def _distance(self, state: ZoneState, states: ZoneStates) -> float:
        zones = states.kinds[state.kind][0]
        if zones < 2:
            return 100
        mean = state.apart / (zones - 1)
        return min(max(100 - (mean - 10) * 5 * self.request.weight / 50, 0), 100)

    def _bonus(self, state: ZoneState) -> int:
        bonus = 0
        for resource, number in self.wanted.devices:
            for name, _, free in state.devices:
                if name == resource:
                    bonus = WITH_DEVICES if free >= number and bonus >= 0 else WITHOUT_DEVICES
        return bonus


def amounts(wanted: Wanted, states: ZoneStates, codes: Any) -> Iterator[tuple[int, Any, Any, Any]]:
    """Yields for each resource the number wanted, what some states have in all and free, and where that is known."""
    if wanted.cores:
        total, free = states.field("all_cpus", codes), states.field("free_cpus", codes)
        yield wanted.cores, total, free, states.field("static_cpus", codes)
    if wanted.memory:
        total, free, reported = states.amounts("memory", _MEMORY, codes)
        yield wanted.memory, total, free, reported & states.field("static_memory", codes)
    for resource, number in wanted.devices:
        total, free, reported = states.amounts("devices", resource, codes)
        yield number, total, free, reported


def idle(states: ZoneStates, codes: Any) -> Any:
    """Returns the states in which nothing is in use that is reported."""
    found = (states.field("blocks", codes) == 0) & (
        states.field("free_cpus", codes) == states.field("usable_cpus", codes)
    )
    for what in ("memory", "devices"):
        for resource in states.resources(what):
            total, free, _ = states.amounts(what, resource, codes)
            found &= free == total
    return found


def _amounts_of_one(wanted: Wanted, state: ZoneState, states: ZoneStates) -> Iterator[tuple[int, int, int]]:
    kubelet = states.kinds[state.kind][1]
    if wanted.cores and kubelet.static_cpus:
        yield wanted.cores, state.all_cpus, state.free_cpus
    if wanted.memory and kubelet.static_memory:
        for kind, total, free in state.memory:
            if kind == _MEMORY:
                yield wanted.memory, total, free
    for resource, number in wanted.devices:
        for name, total, free in state.devices:
            if name == resource:
                yield number, total, free


def _is_idle(state: ZoneState) -> bool:
    listed = all([total == free for _, total, free in (*state.memory, *state.devices)])  # noqa: C419
    return listed and not state.blocks and state.free_cpus == state.usable_cpus


def _allowed(request: NumaRequest, states: ZoneStates, codes: Any) -> Any:
    ids = states.field("id", codes)
    return ~np.isin(ids, request.avoided) if request.avoided else np.ones(len(ids), np.bool_)
