"""Merging hints set by set gives what walking through all combinations gives."""

from collections.abc import Iterator, Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.numa.machine import BEST_EFFORT, POLICIES, SINGLE_NUMA_NODE, CpuLayout, Kubelet, Machine
from kubenexus.api.numa.merge import Affinity, Hints, merge

ZONES = 3
EVERYWHERE = (1 << ZONES) - 1
HINTS = st.one_of(st.none(), st.dictionaries(st.integers(1, EVERYWHERE), st.booleans(), max_size=5))
DISTANCES = st.lists(st.integers(10, 13), min_size=ZONES * ZONES, max_size=ZONES * ZONES)


def combinations(hints: Sequence[Hints], single: bool) -> Iterator[tuple[int, bool]]:
    """The kubelet's own way: every combination of one hint for each resource."""
    lists: list[list[tuple[int | None, bool]]] = []
    for each in hints:
        told: list[tuple[int | None, bool]] = [(None, True)] if each is None else [*each.items()] or [(None, False)]
        if single:
            told = [hint for hint in told if hint[1] and (hint[0] is None or hint[0].bit_count() == 1)]
        lists.append(told)
    for combination in product(*lists):
        zones = [mask for mask, _ in combination if mask is not None]
        merged = EVERYWHERE
        for mask in zones:
            merged &= mask
        yield merged, all(preferred for _, preferred in combination) and len(set(zones)) < 2


def fitter(kubelet: Kubelet, machine: Machine, current: int, candidate: int) -> int:
    if kubelet.prefer_closest and kubelet.policy != SINGLE_NUMA_NODE and current.bit_count() == candidate.bit_count():

        def apart(mask: int) -> int:
            inside = [zone for zone in range(ZONES) if mask >> zone & 1]
            return sum(machine.distances[one][other] for one in inside for other in inside)

        if apart(current) != apart(candidate):
            return min(current, candidate, key=apart)
    return min(current, candidate, key=lambda mask: (mask.bit_count(), mask))


def naive(hints: Sequence[Hints], kubelet: Kubelet, machine: Machine) -> Affinity | None:
    widths = [min(mask.bit_count() for mask in each) for each in hints if each]
    if kubelet.policy == SINGLE_NUMA_NODE:
        widths = [1 for each in hints if each and any(p and m.bit_count() == 1 for m, p in each.items())]
    width = max(widths, default=0)
    best: tuple[int, bool] | None = None
    for mask, preferred in combinations(hints, kubelet.policy == SINGLE_NUMA_NODE):
        if mask == 0:
            continue
        if best is None or (preferred and not best[1]):
            best = mask, preferred
        elif preferred == best[1]:
            now, new = best[0].bit_count(), mask.bit_count()
            if preferred or now > width or new == now:
                best = fitter(kubelet, machine, best[0], mask), preferred
            elif now < width and now < new <= width:
                best = mask, preferred
    found = Affinity(*best) if best else Affinity(EVERYWHERE, False)
    if kubelet.policy == SINGLE_NUMA_NODE and found.zones == EVERYWHERE:
        found = Affinity(None, found.preferred)
    return found if kubelet.policy == BEST_EFFORT or found.preferred else None


@given(st.lists(HINTS, max_size=4), st.sampled_from(POLICIES[1:]), st.booleans(), DISTANCES)
def test_set_by_set_is_combination_by_combination(
    hints: list[Hints], policy: str, closest: bool, distances: list[int]
) -> None:
    rows = tuple(tuple(distances[zone * ZONES : (zone + 1) * ZONES]) for zone in range(ZONES))
    machine = Machine(CpuLayout((1, 2, 4), (7,), (1, 2, 4)), distances=rows)
    kubelet = Kubelet(policy=policy, prefer_closest=closest)
    assert merge(hints, kubelet, machine) == naive(hints, kubelet, machine)
