"""The ranges in which jobs are expected to start: quantiles over many draws of the simulation."""

import math
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.plan.eta.queue_snapshot import QueueSnapshot, Workload
from kubenexus.plan.eta.runtime_draws import DRAWS, RuntimeDraws
from kubenexus.plan.eta.start_simulation import Draw, StartSimulation
from kubenexus.state.runtimes.start_outcomes import PARTS, Stretch

MAX_STEPS: Final = 4000  # of one draw
MAX_WORK: Final = 4_000_000  # of all draws, in units of `simulation_work`: some seconds
MIN_DRAWS: Final = 4  # however much one takes
# Seconds ahead from which on a start counts as not known: ten years. A pod may declare 68 years, and a hundred pods may
# wait for one another; the calendar ends in the year 9999.
MAX_AHEAD: Final = 3650 * 86_400.0
EARLY, LIKELY, LATE = PARTS


class StartRange(NamedTuple):
    """A start in ten is before `early`, every second one before `likely`, nine of ten before `late`. Infinite: not
    known, for pods without a known end hold what the job needs."""

    early: float
    likely: float
    late: float


def drawn_ranges(snapshot: QueueSnapshot, now: float, draws: int = DRAWS) -> list[StartRange]:
    """Returns the range of each job of the model, as it is drawn. Of a queue that is a lot of work there are fewer
    draws, and a draw may end early: what has not started by then is not known."""
    simulation, source = StartSimulation(snapshot.model, now), RuntimeDraws(draws)
    ends = [
        _ends(each, running.since, source, draws)
        for each, running in zip(snapshot.running, snapshot.model.running, strict=True)
    ]
    runtimes = [_runtimes(each, source, draws) for each in snapshot.waiting]
    starts, work = list[list[float]](), 0
    for draw in range(draws):
        drawn = Draw([float(each[draw]) for each in ends], [float(each[draw]) for each in runtimes])
        result = simulation.run(drawn, MAX_STEPS, MAX_WORK / MIN_DRAWS)
        starts.append(result.starts)
        work += result.work
        if work + result.work > MAX_WORK and len(starts) >= MIN_DRAWS:
            break
    return [_range(each, now) for each in np.array(starts).T]


def _ends(workload: Workload, since: float, source: RuntimeDraws, draws: int) -> Any:
    if workload.runs is None:
        return np.full(draws, math.inf)
    return since + source.seconds(workload.name, workload.identity, workload.runs, workload.elapsed)


def _runtimes(workload: Workload, source: RuntimeDraws, draws: int) -> Any:
    if workload.runs is None:
        return np.full(draws, math.inf)
    return source.seconds(workload.name, workload.identity, workload.runs)


def _range(starts: Any, now: float) -> StartRange:
    ordered = np.sort(np.where(starts - now <= MAX_AHEAD, starts, math.inf))
    places = [min(int(part * len(ordered)), len(ordered) - 1) for part in (EARLY, LIKELY, LATE)]
    early, likely, late = (float(ordered[place]) for place in places)
    return StartRange(early, likely, late)


def stretched(drawn: StartRange, stretch: Stretch, now: float) -> StartRange:
    """Returns the range, corrected by how earlier ones came out. The draws know neither jobs that have not arrived,
    which go ahead of those that wait, nor that workloads change."""
    if drawn.late == math.inf:
        return drawn
    return StartRange(*[min(time, now + MAX_AHEAD) for time in stretch.apply(drawn, now)])
