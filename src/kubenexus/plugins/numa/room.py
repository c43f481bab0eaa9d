"""How many members of a gang a NUMA node takes, where each gets all its resources of one NUMA node."""

from typing import Any, Final

import numpy as np

from kubenexus.api.numa.pod_demand import ContainerDemand
from kubenexus.plugins.numa.own_policy import amounts
from kubenexus.plugins.numa.request import NumaRequest, Wanted
from kubenexus.state.numa.zone_states import ZoneState, ZoneStates

MOST: Final = 1 << 12  # members; eight times this fits into the numbers of a memo


class ContainerRoom:
    """How often a kubelet can give a container what it wants. Where it aligns nothing, only memory counts: the rest is
    limited by the totals of the node."""

    nothing = 0

    def __init__(self, container: ContainerDemand) -> None:
        self.container = container

    def many(self, states: ZoneStates, codes: Any) -> Any:
        wanted, aligned = self.container, states.field("aligned", codes)
        room, closed = np.full(len(aligned), MOST, np.int64), np.zeros(len(aligned), np.bool_)
        if wanted.cpus:
            free, total = states.field("free_cpus", codes), states.field("all_cpus", codes)
            room = _lower(room, wanted.cpus, total, free, aligned & states.field("static_cpus", codes))
        for name, size in wanted.memory or ():
            if size:
                total, free, reported = states.amounts("memory", name, codes)
                known = reported & states.field("static_memory", codes)
                room = _lower(room, size, total, free, known)
                closed = closed | (known & (states.field("blocks", codes) > 0) & ~states.field("own_group", codes))
        for resource, number in wanted.devices:
            if number:
                total, free, reported = states.amounts("devices", resource, codes)
                room = _lower(room, number, total, free, aligned & reported)
        return np.where(closed, 0, room).astype(np.int16)

    def one(self, state: ZoneState, states: ZoneStates) -> int:
        return int(self.many(states, np.array([states.code(state)]))[0])


class PolicyRoom:
    """How often a NUMA node has what a pod's own policy binds together."""

    nothing = 0

    def __init__(self, request: NumaRequest, wanted: Wanted) -> None:
        self.request, self.wanted = request, wanted

    def many(self, states: ZoneStates, codes: Any) -> Any:
        ids = states.field("id", codes)
        room = np.full(len(ids), MOST, np.int64)
        for number, total, free, known in amounts(self.wanted, states, codes):
            room = _lower(room, number, total, free, known)
        if self.request.avoided:
            room[np.isin(ids, self.request.avoided)] = 0
        return room.astype(np.int16)

    def one(self, state: ZoneState, states: ZoneStates) -> int:
        return int(self.many(states, np.array([states.code(state)]))[0])


def _lower(room: Any, number: int, total: Any, free: Any, known: Any) -> Any:
    """Returns the room that a resource leaves; none where the empty NUMA node has too little."""
    return np.where(known, np.where(total >= number, np.minimum(room, free // number), 0), room)
