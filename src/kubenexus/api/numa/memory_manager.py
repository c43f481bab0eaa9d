"""The Memory Manager of a kubelet with the policy `Static`: hints, and blocks of memory and huge pages.

A block lies on a set of NUMA nodes. A NUMA node holds blocks of its own, or blocks of one group of NUMA nodes, never
both.
"""

from collections.abc import Mapping, Sequence

import msgspec

from kubenexus.api.numa.machine import Machine, Usage, in_set, members, narrowest_sets, set_sums
from kubenexus.api.numa.merge import Affinity, Hints
from kubenexus.api.numa.pod_demand import ContainerDemand
from kubenexus.api.numa.refusal import unexpected

Memory = Mapping[str, int]


class Block(msgspec.Struct):
    type: str
    zones: int
    size: int


class MemoryManager:
    """One admission. `reusable` is what init containers of the pod have left, by set of NUMA nodes and type."""

    def __init__(self, machine: Machine, usage: Usage) -> None:
        self.machine, self.usage = machine, usage
        self.reusable: dict[tuple[int, str], int] = {}

    def hints(self, wanted: Sequence[tuple[str, int]] | None, *, preferred_only: bool = False) -> list[Hints]:
        """Returns the same hints for each type. If no set of NUMA nodes will do, that counts as no preference."""
        if not wanted:
            return []
        # Without a preferred set, all have to be looked at: is there any?
        found = (preferred_only and self._preferred_sets(dict(wanted))) or self._sets(dict(wanted))
        return [found] * len(wanted) if found else []

    def allocate(self, container: ContainerDemand, affinity: Affinity) -> list[Block]:
        """Returns the blocks of a container, which then are taken. Raises Refused."""
        if container.memory is None:
            raise unexpected("[memorymanager] failed to represent quantity as int64")
        wanted = dict(container.memory)
        if not wanted:
            return []
        zones = self._choose(wanted, affinity)
        if zones.bit_count() > 1 and any(self._taken_otherwise(zone, zones) for zone in members(zones)):
            raise unexpected("[memorymanager] preferred hint violates NUMA node allocation")
        for kind, size in wanted.items():
            self._take(zones, kind, max(size - self.reusable.get((zones, kind), 0), 0))
        for kind, size in wanted.items():
            left = self.reusable.get((zones, kind), 0)
            self.reusable[zones, kind] = max(left, size) if container.leaves_for_reuse else max(left - size, 0)
        return [Block(kind, zones, size) for kind, size in wanted.items()]

    def _choose(self, wanted: Memory, affinity: Affinity) -> int:
        chosen = affinity
        if chosen.zones is None:
            found = self._sets(wanted)
            if not found:
                raise unexpected(
                    "[memorymanager] failed to get the default NUMA affinity, "
                    "no NUMA nodes with enough memory is available"
                )
            chosen = _best(found)
            if affinity.preferred and not chosen.preferred:
                raise unexpected("[memorymanager] failed to find the default preferred hint")
        zones = chosen.zones or 0
        free = self.usage.memory
        if all(sum(self._amounts(free, kind)[zone] for zone in members(zones)) >= wanted[kind] for kind in wanted):
            return zones
        wider = {each: preferred for each, preferred in self._sets(wanted).items() if zones & ~each == 0}
        if not wider:
            raise unexpected("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
        extended = _best(wider)
        if chosen.preferred and not extended.preferred:
            raise unexpected("[memorymanager] failed to find the extended preferred hint")
        return extended.zones or 0

    def _sets(self, wanted: Memory) -> dict[int, bool]:
        """Returns the sets of NUMA nodes that have the memory, with whether each is preferred."""
        count = self.machine.zones
        total = {kind: set_sums(self._amounts(self.machine.memory, kind)) for kind in wanted}
        free = {kind: set_sums(self._amounts(self.usage.memory, kind)) for kind in wanted}
        usage = self.usage
        taken = sum(1 << zone for zone in range(count) if usage.blocks[zone])
        limits = [
            (total[kind], free[kind], size, {sets: left for (sets, of), left in self.reusable.items() if of == kind})
            for kind, size in wanted.items()
        ]
        width, found = count, list[int]()
        for zones in range(1, 1 << count):
            enough = fits = True
            for in_all, left, size, reusable in limits:
                if in_all[zones] < size:
                    enough = False
                    break
                if left[zones] < size and left[zones] + reusable.get(zones, 0) < size:
                    fits = False
            if not enough:
                continue
            width = min(width, zones.bit_count())
            if not fits:
                continue
            if zones & (zones - 1) == 0:
                if usage.groups[zones.bit_length() - 1] == zones:
                    found.append(zones)
            elif not zones & taken or not any(self._taken_otherwise(zone, zones) for zone in members(zones)):
                found.append(zones)
        return {zones: zones.bit_count() == width for zones in found}

    def _preferred_sets(self, wanted: Memory) -> dict[int, bool]:
        """Returns those of `_sets` that are preferred."""
        amounts = [self._amounts(self.machine.memory, kind) for kind in wanted]
        found = narrowest_sets(amounts, [*wanted.values()], self.machine.all_zones)
        return {zones: True for zones in found if self._has_room(zones, wanted)}

    def _has_room(self, zones: int, wanted: Memory) -> bool:
        for kind, size in wanted.items():
            left = in_set(self._amounts(self.usage.memory, kind), zones)
            if left < size and left + self.reusable.get((zones, kind), 0) < size:
                return False
        if zones & (zones - 1) == 0:
            return self.usage.groups[zones.bit_length() - 1] == zones
        return not any([self._taken_otherwise(zone, zones) for zone in members(zones)])  # noqa: C419

    def _taken_otherwise(self, zone: int, zones: int) -> bool:
        """Returns whether a NUMA node cannot be part of a group, since it holds blocks of its own or of another."""
        return self.usage.blocks[zone] > 0 and self.usage.groups[zone] != zones

    def _amounts(self, amounts: Mapping[str, Sequence[int]], kind: str) -> Sequence[int]:
        return amounts.get(kind) or [0] * self.machine.zones

    def _take(self, zones: int, kind: str, size: int) -> None:
        free = self.usage.memory.get(kind)
        for zone in members(zones):
            self.usage.blocks[zone] += 1
            self.usage.groups[zone] = zones
            if free is not None:
                part = min(free[zone], size)
                free[zone] -= part
                size -= part


def _best(found: Mapping[int, bool]) -> Affinity:
    """Returns a preferred set if there is one, then the narrowest, then the lowest."""
    zones = min(found, key=lambda zones: (not found[zones], zones.bit_count(), zones))
    return Affinity(zones, found[zones])
