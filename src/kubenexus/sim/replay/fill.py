"""A replay without departures: jobs arrive until the cluster is full, and what does not fit is dropped."""

import hashlib
from collections.abc import Callable

from kubenexus.base.clock import SINCE_BOOT
from kubenexus.sim.replay.cluster import ReplayCluster
from kubenexus.sim.replay.results import FillResult
from kubenexus.sim.replay.traces.trace import Trace

Progress = Callable[[int], None]
STEP = 100  # jobs between two calls of `progress`


def fill(
    trace: Trace,
    cluster: ReplayCluster,
    *,
    policy: str,
    seed: int,
    progress: Progress = lambda _: None,
    stopwatch: Callable[[], float] = SINCE_BOOT,
) -> FillResult:
    """Decides for all jobs of a trace, in order. A KeyboardInterrupt ends it early: the result is then not complete."""
    run = FillResult.of(trace.name, policy, seed, cluster)
    digest = hashlib.blake2b(digest_size=8)
    began = stopwatch()
    try:
        for count, job in enumerate(trace.jobs):
            decision = cluster.try_job(job, job.at)
            run.record(job, placed=decision.placed)
            for placement in decision.placements:
                digest.update(f"{placement.pod} {placement.node}\n".encode())
            if count % STEP == STEP - 1:
                progress(STEP)
        progress(len(trace.jobs) % STEP)
    except KeyboardInterrupt:
        run.complete = False
    run.finish(stopwatch() - began, digest.hexdigest(), cluster)
    return run
