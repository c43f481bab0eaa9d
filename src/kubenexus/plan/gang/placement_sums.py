"""Sums over the placements and members of jobs, by resource."""

from collections.abc import Iterable, Mapping

from kubenexus.framework.decision import Decision
from kubenexus.state.footprint import Footprint


def total(parts: Iterable[tuple[Footprint, int]]) -> dict[str, int]:
    """Returns the sum of the footprints, each multiplied by its count; `pods` is the number of pods."""
    sums = {"pods": 0}
    for footprint, count in parts:
        for name, amount in (*footprint.amounts, ("pods", 1)):
            sums[name] = sums.get(name, 0) + amount * count
    return sums


def largest_placement(decision: Decision) -> Mapping[str, int]:
    """Returns the most that one placement takes of each resource."""
    most = {"pods": 1}
    for footprint in {id(each.footprint): each.footprint for each in decision.placements}.values():
        for name, amount in footprint.amounts:
            most[name] = max(most.get(name, 0), amount)
    return most
