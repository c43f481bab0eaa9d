"""A replay with departures, in virtual time: jobs arrive, wait until they fit, run for their duration, and end."""

import heapq
from collections.abc import Callable

from kubenexus.base.clock import SINCE_BOOT
from kubenexus.framework.decision import Decision
from kubenexus.sim.replay.cluster import ReplayCluster
from kubenexus.sim.replay.fragmentation import FragmentationMeter
from kubenexus.sim.replay.progress import STEP, Progress
from kubenexus.sim.replay.timeline_result import TimelineResult
from kubenexus.sim.replay.traces.trace import Trace, TraceJob
from kubenexus.sim.replay.waiting_jobs import WaitingJob, WaitingJobs


class Timeline:
    """The jobs that run and wait. `step` is the only place where time moves: to the next arrival or departure."""

    def __init__(self, trace: Trace, cluster: ReplayCluster, result: TimelineResult, meter: FragmentationMeter) -> None:
        self._cluster, self._result, self._meter = cluster, result, meter
        self._arrivals = trace.jobs
        self._arrived = 0
        self._waiting = WaitingJobs()
        self._departures: list[tuple[float, int, TraceJob, Decision]] = []

    def step(self) -> bool:
        """Moves to the next event and applies all events of that time. Returns False when there is none."""
        now = self._next()
        if now is None:
            self._result.never_started(self._waiting.jobs())
            return False
        self._result.advance(now, self._waiting.count, self._fragmentation)
        while self._departures and self._departures[0][0] <= now:
            _, _, job, decision = heapq.heappop(self._departures)
            self._cluster.end(decision)
            self._result.ended(job)
            self._waiting.retry_all()
        while self._arrived < len(self._arrivals) and self._arrivals[self._arrived].at <= now:
            self._waiting.add(WaitingJob(self._arrived, self._arrivals[self._arrived]))
            self._arrived += 1
        self._start_jobs(now)
        return True

    @property
    def arrived(self) -> int:
        return self._arrived

    def _next(self) -> float | None:
        times = [self._departures[0][0]] if self._departures else []
        if self._arrived < len(self._arrivals):
            times.append(self._arrivals[self._arrived].at)
        return min(times, default=None)

    def _start_jobs(self, now: float) -> None:
        while (waiting := self._waiting.pop()) is not None:
            job = waiting.job
            decision = self._cluster.try_job(job, now)
            if not decision.placed:
                self._waiting.refuse(waiting)
                continue
            self._result.started(job, now)
            if job.duration is not None:
                heapq.heappush(self._departures, (now + job.duration, waiting.order, job, decision))

    def _fragmentation(self) -> float:
        return self._meter.percent(self._cluster.ledger.nodes)


def play(
    trace: Trace,
    cluster: ReplayCluster,
    *,
    policy: str,
    seed: int,
    progress: Progress = lambda _: None,
    stopwatch: Callable[[], float] = SINCE_BOOT,
) -> TimelineResult:
    """Plays all jobs of a trace. A KeyboardInterrupt ends it early: the result is then not complete."""
    result = TimelineResult.of(trace, policy, seed, cluster)
    timeline = Timeline(trace, cluster, result, FragmentationMeter(trace))
    began, shown = stopwatch(), 0
    try:
        while timeline.step():
            if timeline.arrived - shown >= STEP:
                progress(timeline.arrived - shown)
                shown = timeline.arrived
    except KeyboardInterrupt:
        result.complete = False
    result.finish(stopwatch() - began, cluster)
    return result
