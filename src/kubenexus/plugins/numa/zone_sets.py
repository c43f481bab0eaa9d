"""Sets of NUMA nodes of a row that have together what a pod wants."""

import functools
from typing import Any

import numpy as np

from kubenexus.plugins.numa.own_policy import amounts
from kubenexus.plugins.numa.request import NumaRequest, Wanted
from kubenexus.state.numa.zone_states import NO_ZONE, ZoneStates


def exceeds_needed(request: NumaRequest, wanted: Wanted, states: ZoneStates, codes: Any) -> Any:
    """Returns the rows that need more NUMA nodes than they would if nothing ran there. `codes` has a column for each
    row."""
    known = list(_by_row(request, wanted, states, codes))
    members, widths = _sets(len(codes))
    present = ((codes != NO_ZONE).T.astype(np.float64) @ members) == widths

    def fewest(in_use: bool) -> Any:
        enough = present.copy()
        for number, total, free, counts in known:
            enough &= ((free if in_use else total).T @ members >= number) | ~counts.any(axis=0)[:, None]
        return np.where(enough, widths, len(codes) + 1).min(axis=1)

    return fewest(in_use=True) > fewest(in_use=False)


def at_least(request: NumaRequest, wanted: Wanted, states: ZoneStates, codes: Any) -> Any:
    """Returns how many NUMA nodes of each row the pod needs at least: as many as the scarcest resource. One more than
    there are, if all of them have too little."""
    found = np.ones(codes.shape[1], np.int64)
    most = (codes != NO_ZONE).sum(axis=0) + 1
    for number, _, free, counts in _by_row(request, wanted, states, codes):
        together = -np.sort(-free, axis=0)
        needed = np.minimum((np.cumsum(together, axis=0) < number).sum(axis=0) + 1, most)
        found = np.where(counts.any(axis=0), np.maximum(found, needed), found)
    return found


def _by_row(request: NumaRequest, wanted: Wanted, states: ZoneStates, codes: Any) -> Any:
    there = codes != NO_ZONE
    if request.avoided:
        there &= ~np.isin(states.field("id", codes), request.avoided)
    for number, total, free, known in amounts(wanted, states, codes):
        yield number, np.where(there, total, 0.0), np.where(there, free, 0.0), known & (codes != NO_ZONE)


@functools.cache
def _sets(zones: int) -> tuple[Any, Any]:
    """Returns which NUMA node is in which set, and how many each set has."""
    members = np.array([[sets >> zone & 1 for sets in range(1, 1 << zones)] for zone in range(zones)], np.float64)
    return members, members.sum(axis=0).astype(np.int64)
