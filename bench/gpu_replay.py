"""Decisions of a whole replay: a GPU cluster that fills up with pods of many shapes, none of which ends.

Each row is the mean over all decisions, not the best round: tables of demand, refusals and all. The yardstick is the
same replay without demand (`byDemand: false`), in turns of a few jobs. The cluster is drawn, with the machines and
shapes of openb in round numbers. With OPENB=folder the whole trace `default` is played, too.
"""

import os
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from bench.measure import Timing, clock
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.profile import EnabledPlugin, Profile, ProfilePlugins
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.plugins import BUILT_IN, shipped_profile
from kubenexus.plugins.devices.fragmentation import ResourceFragmentationScore
from kubenexus.sim.replay.cluster import ReplayCluster, ledger_of
from kubenexus.sim.replay.traces import openb
from kubenexus.sim.replay.traces.trace import WHOLE_GPU, JobShape, Trace, TraceJob, TraceNode

BENCH: Final = "replay"
DRAWN, PUBLISHED = "drawn GPU cluster", "openb default"
FEW_NODES: Final = 1_213  # up to which a decision may take LIMIT: those of openb
LIMIT: Final = 400.0  # us
TURN: Final = 10  # jobs
SEED: Final = 42
_GIB: Final = 1 << 30
# Machines: how many of a hundred, cores, GPUs, model.
_MACHINES: Final = (
    (45, 96, 8, "G2"),
    (32, 104, 2, "T4"),
    (9, 16, 2, "P100"),
    (4, 128, 8, "G3"),
    (4, 32, 4, "V100M16"),
    (4, 96, 8, "V100M32"),
    (2, 8, 1, "V100M16"),
)
# Requests for GPUs: how many of a hundred pods, GPUs, thousandths.
_REQUESTS: Final = ((13, 0, 1000), (38, 1, 0), (45, 1, 1000), (1, 2, 1000), (1, 4, 1000), (2, 8, 1000))


def rows(sizes: tuple[int, ...], jobs: int) -> Iterator[Timing]:
    """Yields a row for each size, of the first so many jobs, and one of openb where its folder is named."""
    for nodes in sizes:
        yield replayed(DRAWN, drawn(nodes, jobs))
    folder = os.environ.get("OPENB", "")
    if folder and (Path(folder) / f"{openb.PREFIX}default.csv").exists():
        file = Path(folder) / f"{openb.PREFIX}default.csv"
        trace = Trace(openb.trace_name(file), openb.read_nodes(file.parent / openb.NODES_FILE), openb.read_pods(file))
        yield replayed(PUBLISHED, openb.inflated(trace, SEED))


def drawn(nodes: int, jobs: int) -> Trace:
    """Returns a cluster and the pods that come, about 150 different ones."""
    rng = random.Random(SEED)
    kinds = rng.choices(_MACHINES, [each[0] for each in _MACHINES], k=nodes)
    machines = [
        TraceNode(f"n{i:05}", cpu=cores * 1000, memory=cores * 4 * _GIB, gpus=gpus, model=model)
        for i, (_, cores, gpus, model) in enumerate(kinds)
    ]
    shapes = [_shape(rng) for _ in range(150)]
    weights = [rng.expovariate(1.0) for _ in shapes]
    found = rng.choices(shapes, weights, k=jobs)
    arrivals = [TraceJob(f"p{i}", shape, at=float(i)) for i, shape in enumerate(found)]
    return Trace("drawn", tuple(machines), tuple(arrivals))


def _shape(rng: random.Random) -> JobShape:
    _, gpus, milli = rng.choices(_REQUESTS, [each[0] for each in _REQUESTS])[0]
    cores = rng.choice((2, 4, 6, 8, 10, 12)) * max(gpus, 1)
    milli = milli or 50 * rng.randrange(1, 20)
    return JobShape(cores * 1000, cores * rng.choice((2, 4)) * _GIB, gpus, milli if gpus else WHOLE_GPU)


def replayed(case: str, trace: Trace) -> Timing:
    """Plays a trace with the shipped profile and without demand, in turns."""
    ours, plain = (_Replay(trace, by_demand=by_demand) for by_demand in (True, False))
    for start in range(0, len(trace.jobs), TURN):
        for replay in (ours, plain):
            replay.play(trace.jobs[start : start + TURN])
    ratios = [one / other for one, other in zip(ours.turns, plain.turns, strict=True)]
    us, plain_us = (1e6 * sum(each.turns) / len(trace.jobs) for each in (ours, plain))
    return Timing(
        bench=BENCH,
        case=case,
        nodes=len(trace.nodes),
        us=round(us, 2),
        kernel_us=round(plain_us, 2),
        ratio=round(us / plain_us, 3),
        median_ratio=round(statistics.median(ratios), 3),
        rounds=len(ratios),
    )


class _Replay(ReplayCluster):
    """A cluster under the shipped profile. `turns` are the seconds of all decisions of each turn, without commits."""

    def __init__(self, trace: Trace, *, by_demand: bool) -> None:
        super().__init__(ledger_of(trace.nodes, shared=True), ProfilePlugins(_profile(by_demand=by_demand), BUILT_IN))
        self.turns: list[float] = []

    def play(self, jobs: tuple[TraceJob, ...]) -> None:
        self.turns.append(0.0)
        for job in jobs:
            self.try_job(job, job.at)

    def _decide(self, job: Job, now: float, ahead: Reservation | None) -> Decision:
        began = clock()
        decision = super()._decide(job, now, ahead)
        self.turns[-1] += clock() - began
        return decision


def _profile(*, by_demand: bool) -> Profile:
    profile = shipped_profile()
    name = ResourceFragmentationScore.name
    plugins = tuple(
        EnabledPlugin(each.name, each.weight, {**each.args, "byDemand": by_demand}) if each.name == name else each
        for each in profile.plugins
    )
    return msgspec.structs.replace(profile, plugins=plugins)
