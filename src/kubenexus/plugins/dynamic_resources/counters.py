"""Shared counters: what devices that are parts of one card take of it together."""

from collections.abc import Sequence

from kubenexus.plugins.dynamic_resources.candidates import Candidate
from kubenexus.state.claims.allocated import AllocatedDevices
from kubenexus.state.claims.device import Consumption
from kubenexus.state.claims.pools import Pool

_Key = tuple[str, str]  # counter set and counter


class PoolCounters:
    """The counters of one pool: what allocated devices leave, and what this search takes."""

    __slots__ = ("_available", "_taken")

    def __init__(self, pool: Pool, allocated: AllocatedDevices) -> None:
        self._available: dict[_Key, int] = {
            (name, counter): nano for name, counters in pool.counters.items() for counter, nano in counters.items()
        }
        self._taken: dict[_Key, int] = {}
        for each in (*pool.slices, *pool.others):
            for device in each.devices:
                if device.traits.consumes and allocated.is_held((*pool.id, device.name)):
                    for key, nano in _consumed(device.traits.consumes):
                        if key in self._available:
                            self._available[key] -= nano

    def take(self, candidate: Candidate) -> bool:
        """Takes the counters of a device, unless one of the pool would be exceeded."""
        self._add(candidate, +1)
        taken = self._taken
        if any(nano < taken.get(key, 0) for key, nano in self._available.items()):
            self._add(candidate, -1)
            return False
        return True

    def give_back(self, candidate: Candidate) -> None:
        self._add(candidate, -1)

    def _add(self, candidate: Candidate, sign: int) -> None:
        for key, nano in _consumed(candidate.device.traits.consumes):
            self._taken[key] = self._taken.get(key, 0) + sign * nano


class NodeCounters(dict[int, PoolCounters]):
    """The counters of each pool of a node, by the pool's position, made when they are first needed."""

    def __init__(self, pools: Sequence[Pool], allocated: AllocatedDevices) -> None:
        super().__init__()
        self._pools, self._allocated = pools, allocated

    def __missing__(self, position: int) -> PoolCounters:
        made = self[position] = PoolCounters(self._pools[position], self._allocated)
        return made


def _consumed(consumes: Sequence[Consumption]) -> list[tuple[_Key, int]]:
    return [((each.counter_set, name), nano) for each in consumes for name, nano in each.counters]
