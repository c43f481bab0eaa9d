"""How many times its declared runtime a workload takes of which no run is known, by what the whole cluster shows.

A declared runtime is a limit, so some is often left: that is assumed. Runs of the cluster that ended tell more, and so
do pods that run: one that has run for nine tenths of its declared time tells that it takes more than that. Both count
as in the estimator of Kaplan and Meier: at each point, how many of those that came so far ended there.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

ASSUMED: Final = (0.1, 0.3, 0.5, 0.7, 0.9, *[1.0] * 15)  # times the declared runtime, of twenty runs
POINTS: Final = len(ASSUMED)


def untried_factors(ended: Iterable[float], running: Iterable[float]) -> tuple[float, ...]:
    """Returns times the declared runtime, each as likely as the others. `ended`: of runs of the cluster; `running`: for
    how many times its declared runtime a pod has run so far."""
    ends, under_way = sorted([*ASSUMED, *ended]), sorted(running)
    found, left, place = list[float](), 1.0, 0
    while place < len(ends):
        factor = ends[place]
        after = place
        while after < len(ends) and ends[after] == factor:
            after += 1
        came_so_far = len(ends) - place + len(under_way) - bisect_left(under_way, factor)
        left *= 1.0 - (after - place) / came_so_far
        place = after
        while len(found) < POINTS and (len(found) + 0.5) / POINTS <= 1.0 - left:
            found.append(factor)
    longest = max(*ends[-1:], *under_way[-1:], 0.0)
    return (*found, *[longest] * (POINTS - len(found)))
