"""How the Topology Manager merges the hints of all resources into one set of NUMA nodes.

The kubelet walks through all combinations of hints, which is exponential in the number of resources. The outcome needs
less: a combination is preferred only if all its hints are preferred and name the same set, so each set is looked at
once. Other combinations matter under `best-effort` only, and there only by which intersections exist.
"""

from collections.abc import Sequence

import msgspec

from kubenexus.api.numa.machine import BEST_EFFORT, SINGLE_NUMA_NODE, Kubelet, Machine, members

# The sets of NUMA nodes that would do for one resource, and whether each is preferred. No set: it cannot be satisfied.
# None: the resource does not care.
Hints = dict[int, bool] | None


class Affinity(msgspec.Struct, frozen=True, gc=False):
    """A merged hint. `zones` None: no preference."""

    zones: int | None = None
    preferred: bool = False


def merge(hints: Sequence[Hints], kubelet: Kubelet, machine: Machine) -> Affinity | None:
    """Returns the NUMA nodes that a container or pod gets, or None if the policy refuses it."""
    found = merge_preferred(hints, kubelet, machine)
    if found is None and kubelet.policy == BEST_EFFORT:
        return _best_effort([each for each in hints if each is not None], kubelet, machine)
    return found


def merge_preferred(hints: Sequence[Hints], kubelet: Kubelet, machine: Machine) -> Affinity | None:
    """Returns the best set of NUMA nodes that all resources prefer, None if there is none. Reads only what is preferred
    of the hints."""
    told = [each for each in hints if each is not None]
    everywhere = machine.all_zones
    if not told:
        best: int | None = everywhere
    else:
        common = [
            zones
            for zones, preferred in told[0].items()
            if preferred and all(other.get(zones, False) for other in told[1:])
        ]
        if kubelet.policy == SINGLE_NUMA_NODE:
            common = [zones for zones in common if zones.bit_count() == 1]
        best = min(common, key=lambda zones: _fitness(zones, kubelet, machine)) if common else None
    if best is None:
        return None
    if kubelet.policy == SINGLE_NUMA_NODE and best == everywhere:
        return Affinity(None, True)
    return Affinity(best, True)


def _best_effort(told: Sequence[dict[int, bool]], kubelet: Kubelet, machine: Machine) -> Affinity:
    """Returns the best intersection of hints: as wide as the resource that needs most NUMA nodes, if possible."""
    found = {machine.all_zones}
    for hints in told:
        if hints:
            found = {zones & other for zones in found for other in hints}
    found.discard(0)
    if not found:
        return Affinity(machine.all_zones, False)
    width = max((min(map(int.bit_count, hints)) for hints in told if hints), default=0)

    def rank(zones: int) -> tuple[int, tuple[int, int, int]]:
        wide = zones.bit_count()
        return (width - wide if wide <= width else wide), _fitness(zones, kubelet, machine)

    narrow = [zones for zones in found if zones.bit_count() <= width]
    return Affinity(min(narrow or found, key=rank), False)


def _fitness(zones: int, kubelet: Kubelet, machine: Machine) -> tuple[int, int, int]:
    """Returns a key: the narrowest set first, then (if asked for) the closest, then the lowest NUMA nodes."""
    apart = 0
    if kubelet.prefer_closest and kubelet.policy != SINGLE_NUMA_NODE:
        inside = members(zones)
        apart = sum(machine.distances[one][other] for one in inside for other in inside)
    return zones.bit_count(), apart, zones
