"""What a pod's own policy finds on a NUMA node: whether all that it binds together is free there.

Amounts that a node does not report (memory without the static Memory Manager, CPUs without the static CPU Manager) are
unknown, and never refuse a node.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kubenexus.plugins.numa.request import NumaRequest, Wanted
from kubenexus.state.numa.zone_states import ZoneState, ZoneStates

FITS: Final = 1  # everything is free here
COULD: Final = 2  # the empty NUMA node has enough of everything
IDLE: Final = 4  # it fits, and nothing is in use here
MEMORY: Final = "memory"


class PolicyRule:
    """The bits of a pod's own policy."""

    nothing = 0

    def __init__(self, request: NumaRequest, wanted: Wanted) -> None:
        self.request, self.wanted = request, wanted

    def many(self, states: ZoneStates, codes: Any) -> Any:
        fits = could = allowed(self.request, states, codes)
        for number, total, free, known in amounts(self.wanted, states, codes):
            fits = fits & ((free >= number) | ~known)
            could = could & ((total >= number) | ~known)
        bits = np.where(fits, FITS, 0) | np.where(could, COULD, 0)
        return (bits | np.where(fits & idle(states, codes), IDLE, 0)).astype(np.int16)

    def one(self, state: ZoneState, states: ZoneStates) -> int:
        if state.id in self.request.avoided:
            return 0
        bits = FITS | COULD
        for number, total, free in amounts_of_one(self.wanted, state, states):
            bits &= (FITS if free >= number else 0) | (COULD if total >= number else 0)
        return bits | IDLE if bits & FITS and _is_idle(state) else bits


def amounts(wanted: Wanted, states: ZoneStates, codes: Any) -> Iterator[tuple[int, Any, Any, Any]]:
    """Yields for each resource the number wanted, what some states have in all and free, and where that is known."""
    if wanted.cores:
        total, free = states.field("all_cpus", codes), states.field("free_cpus", codes)
        yield wanted.cores, total, free, states.field("static_cpus", codes)
    if wanted.memory:
        total, free, reported = states.amounts("memory", MEMORY, codes)
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


def amounts_of_one(wanted: Wanted, state: ZoneState, states: ZoneStates) -> Iterator[tuple[int, int, int]]:
    """Yields the same for one state, where that is known."""
    kubelet = states.kinds[state.kind][1]
    if wanted.cores and kubelet.static_cpus:
        yield wanted.cores, state.all_cpus, state.free_cpus
    if wanted.memory and kubelet.static_memory:
        for kind, total, free in state.memory:
            if kind == MEMORY:
                yield wanted.memory, total, free
    for resource, number in wanted.devices:
        for name, total, free in state.devices:
            if name == resource:
                yield number, total, free


def _is_idle(state: ZoneState) -> bool:
    listed = all([total == free for _, total, free in (*state.memory, *state.devices)])  # noqa: C419
    return listed and not state.blocks and state.free_cpus == state.usable_cpus


def allowed(request: NumaRequest, states: ZoneStates, codes: Any) -> Any:
    """Returns the states of NUMA nodes that the pod does not avoid."""
    ids = states.field("id", codes)
    return ~np.isin(ids, request.avoided) if request.avoided else np.ones(len(ids), np.bool_)
