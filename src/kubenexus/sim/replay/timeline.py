"""A replay with departures, in virtual time: jobs arrive, wait until they fit, run for their duration, and end."""

import heapq
from collections.abc import Callable

from kubenexus.base.clock import SINCE_BOOT
from kubenexus.framework.decision import Decision
from kubenexus.sim.replay.backfill_order import BackfillOrder, HeadRecord, Order
from kubenexus.sim.replay.cluster import ReplayCluster
from kubenexus.sim.replay.fragmentation import FragmentationMeter
from kubenexus.sim.replay.progress import STEP, Progress
from kubenexus.sim.replay.start_forecasts import StartForecasts
from kubenexus.sim.replay.timeline_result import TimelineResult
from kubenexus.sim.replay.traces.trace import Trace, TraceJob
from kubenexus.sim.replay.waiting_jobs import WaitingJob, WaitingJobs


class Timeline:
    """The jobs that run and wait. `step` is the only place where time moves: to the next arrival or departure."""

    def __init__(
        self,
        trace: Trace,
        cluster: ReplayCluster,
        result: TimelineResult,
        meter: FragmentationMeter,
        order: Order = "first-fit",
        forecasts: StartForecasts | None = None,
    ) -> None:
        self._forecasts = forecasts
        self._cluster, self._result, self._meter = cluster, result, meter
        self._arrivals = trace.jobs
        self._arrived = 0
        self._first_fit = WaitingJobs(passing=order == "first-fit")
        self._backfill = BackfillOrder(cluster) if order == "backfill" else None
        self._waiting = self._backfill or self._first_fit
        self._departures: list[tuple[float, int, TraceJob, Decision, float]] = []

    def step(self) -> bool:
        """Moves to the next event and applies all events of that time. Returns False when there is none."""
        now = self._next()
        if now is None:
            self._result.never_started(self._waiting.jobs())
            return False
        self._result.advance(now, self._waiting.count, self._fragmentation)
        while self._departures and self._departures[0][0] <= now:
            _, _, job, decision, since = heapq.heappop(self._departures)
            if self._backfill is not None:
                self._backfill.ended(job, now, since)
            self._cluster.end(decision)
            self._result.ended(job)
            self._first_fit.retry_all()
        before = self._arrived
        while self._arrived < len(self._arrivals) and self._arrivals[self._arrived].at <= now:
            self._waiting.add(WaitingJob(self._arrived, self._arrivals[self._arrived]))
            self._arrived += 1
        self._start_jobs(now)
        if self._forecasts is not None and self._backfill is not None:
            self._forecasts.ask(self._backfill.waiting, range(before, self._arrived), now)
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
        if self._backfill is not None:
            for waiting, decision in self._backfill.start_jobs(now):
                self._started(waiting, decision, now)
            return
        while (found := self._first_fit.pop()) is not None:
            decision = self._cluster.try_job(found.job, now)
            if decision.placed:
                self._started(found, decision, now)
            else:
                self._first_fit.refuse(found)

    def _started(self, waiting: WaitingJob, decision: Decision, now: float) -> None:
        job = waiting.job
        if self._forecasts is not None:
            self._forecasts.started(waiting, [each.uid for each in decision.placements], now)
        self._result.started(job, now)
        if job.duration is not None:
            heapq.heappush(self._departures, (now + job.duration, waiting.order, job, decision, now))

    @property
    def heads(self) -> list[HeadRecord]:
        """The jobs that had an expected start, with backfill."""
        return [] if self._backfill is None else self._backfill.heads

    def _fragmentation(self) -> float:
        return self._meter.percent(self._cluster.ledger.nodes)


def play(
    trace: Trace,
    cluster: ReplayCluster,
    *,
    policy: str,
    seed: int,
    order: Order = "first-fit",
    ask_every: int = 0,
    progress: Progress = lambda _: None,
    stopwatch: Callable[[], float] = SINCE_BOOT,
) -> TimelineResult:
    """Plays all jobs of a trace. A KeyboardInterrupt ends it early: the result is then not complete. `ask_every`: with
    backfill, the expected start of every so many jobs that wait is compared with the truth."""
    result = TimelineResult.of(trace, policy, seed, cluster)
    forecasts = StartForecasts(cluster, ask_every) if ask_every and order == "backfill" else None
    timeline = Timeline(trace, cluster, result, FragmentationMeter(trace), order, forecasts)
    began, shown = stopwatch(), 0
    try:
        while timeline.step():
            if timeline.arrived - shown >= STEP:
                progress(timeline.arrived - shown)
                shown = timeline.arrived
    except KeyboardInterrupt:
        result.complete = False
    result.finish(stopwatch() - began, cluster)
    result.heads = timeline.heads
    result.forecasts = None if forecasts is None else forecasts.records
    return result
