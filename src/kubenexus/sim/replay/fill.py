"""A replay without departures: jobs arrive until the cluster is full, and what does not fit is dropped."""

from collections.abc import Callable

from kubenexus.base.clock import SINCE_BOOT
from kubenexus.sim.replay.cluster import ReplayCluster
from kubenexus.sim.replay.progress import STEP, Progress
from kubenexus.sim.replay.results import FillResult
from kubenexus.sim.replay.traces.trace import Trace


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
    began = stopwatch()
    try:
        for count, job in enumerate(trace.jobs):
            run.record(job, placed=cluster.try_job(job, job.at).placed)
            if count % STEP == STEP - 1:
                progress(STEP)
        progress(len(trace.jobs) % STEP)
    except KeyboardInterrupt:
        run.complete = False
    run.finish(stopwatch() - began, cluster)
    return run
