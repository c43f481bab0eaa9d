"""Writes into the condition of a waiting job when it is expected to start.

    every minute ─▶ forecast in a copy of the process ─▶ the first jobs with a range ─▶ a patch if it has moved enough

The message of PodScheduled gets an ending: `; expected to start between 14:05 and 14:40 UTC`. Only the first pod of a
job has it. A range moves a little with each pod that ends. So it is written again only if it moved by more than five
minutes and a fifth of the time that is left, and after some minutes.
"""

import asyncio
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from kubenexus.app.http.api.queue_entries import queue_entries
from kubenexus.app.http.api.request_problem import RequestProblem
from kubenexus.app.http.api.state_copies import StateCopies
from kubenexus.app.http.api.waiting_questions import Question
from kubenexus.app.report.pod_reporter import PodReporter
from kubenexus.base.clock import Clock
from kubenexus.observe import logs
from kubenexus.plan.decide import Planner
from kubenexus.plan.eta.forecast import forecast_starts
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger

if TYPE_CHECKING:
    from kubenexus.app.scheduler import Scheduler

MAX_JOBS: Final = 100  # that have an expected start in their condition
MIN_SECONDS: Final = 300.0  # between two writes for a job, and by which a range has to move
MIN_PART: Final = 0.2  # of the time until it starts, by which a range has to move
STEP: Final = 300.0  # times are rounded to whole five minutes, outwards
DAY: Final = 86_400.0
_WAITS: Final = (QueueState.UNSCHEDULABLE, QueueState.BACKOFF, QueueState.ACTIVE, QueueState.IN_FLIGHT)
_TRIED: Final = (QueueState.UNSCHEDULABLE.value, QueueState.BACKOFF.value)

log = logs.get("expected_starts")


class Copies(Protocol):
    """Runs questions in copies of the process (`app.http.api.state_copies`)."""

    async def answer(self, question: Question) -> bytes: ...

    async def close(self) -> None: ...


class ExpectedStart(msgspec.Struct, frozen=True):
    """The range of one job. `pod` is one of its pods, and `drawn` the range before it was stretched."""

    job: str
    early: float
    late: float
    pod: str = ""
    drawn: tuple[float, float, float] = (math.inf, math.inf, math.inf)


class _Written(NamedTuple):
    early: float
    late: float
    at: float


class ExpectedStartReporter:
    """The task that writes expected starts. `period` in seconds, 0: it does nothing. It ends when cancelled."""

    def __init__(
        self,
        queue: SchedulingQueue,
        ledger: Ledger,
        planners: Mapping[str, Planner],
        reporter: PodReporter,
        *,
        copies: Copies,
        clock: Clock,
        period: float,
    ) -> None:
        self._queue, self._ledger, self._planners, self._reporter = queue, ledger, planners, reporter
        self._copies, self._clock, self._period = copies, clock, period
        self._written: dict[str, _Written] = {}
        self._pods: dict[str, str] = {}  # by job whose start is awaited

    async def run(self) -> None:
        try:
            while self._period:
                await asyncio.sleep(self._period)
                await self.step()
        finally:
            await self._copies.close()

    async def step(self) -> None:
        """Computes the expected starts, and writes those that have moved."""
        self._settle()
        if not len(self._queue) or not self._ledger.nodes.pods.expected_ends.known:
            return
        question = partial(starts_in_copy, self._queue, self._ledger, self._planners, self._clock.now())
        try:
            answer = await self._copies.answer(question)
        except RequestProblem as problem:
            log.v(1, "Expected starts are not known", err=problem.message)
            return
        found = msgspec.json.decode(answer, type=list[ExpectedStart])
        self._note(found)
        self._write(found)

    def _note(self, found: list[ExpectedStart]) -> None:
        """Notes what was drawn for jobs that still wait, so that later ranges are corrected by how it comes out."""
        starts, now = self._ledger.nodes.pods.expected_ends.starts, self._clock.now()
        for each in found:
            if each.job not in self._pods and self._queue.state(each.job) in _WAITS:
                starts.expect(each.job, each.drawn, now)
                self._pods[each.job] = each.pod
        self._pods = {job: self._pods.get(job, "") for job in starts.jobs}

    def _settle(self) -> None:
        """Looks which jobs have started since, and when."""
        starts = self._ledger.nodes.pods.expected_ends.starts
        for job in starts.jobs:
            record = self._ledger.pods.get(self._pods.get(job, ""))
            if record is not None and record.slot >= 0:
                starts.started(job, record.assumed_at or self._clock.now())
            elif self._queue.state(job) not in _WAITS:
                starts.forget(job)

    def _write(self, found: list[ExpectedStart]) -> None:
        now, known = self._clock.now(), {each.job for each in found}
        for each in found:
            if self._has_moved(each, now) and self._reporter.set_ending(each.job, ending(each, now)):
                self._written[each.job] = _Written(each.early, each.late, now)
        for job in [job for job in self._written if job not in known]:
            del self._written[job]
            self._reporter.set_ending(job, "")

    def _has_moved(self, each: ExpectedStart, now: float) -> bool:
        last = self._written.get(each.job)
        if last is None:
            return True
        least = max(MIN_SECONDS, MIN_PART * (each.late - now))
        moved = max(abs(each.early - last.early), abs(each.late - last.late))
        return now - last.at >= MIN_SECONDS and moved > least


def ending(each: ExpectedStart, now: float) -> str:
    """Returns `; expected to start between 14:05 and 14:40 UTC`, with the day if that is more than a day away."""
    early, late = math.floor(max(each.early, now) / STEP) * STEP, math.ceil(each.late / STEP) * STEP
    form = "%H:%M" if late - now < DAY else "%Y-%m-%d %H:%M"
    first, last = (datetime.fromtimestamp(time, UTC).strftime(form) for time in (early, late))
    return f"; expected to start between {first} and {last} UTC"


def starts_in_copy(queue: SchedulingQueue, ledger: Ledger, planners: Mapping[str, Planner], now: float) -> bytes:
    """Returns the first jobs that have a range, as JSON. Called in a copy of the process."""
    entries = queue_entries(queue, now)
    found = forecast_starts([each.entry for each in entries], planners, ledger.nodes, now, ledger.queues)
    known = [
        ExpectedStart(job.key, each.expected.early, each.expected.late, job.pods[0].key, each.drawn[:3])
        for queued, each in zip(entries, found, strict=True)
        for job in [queued.entry.job]
        if each.place and now < each.expected.late < math.inf and queued.state in _TRIED
    ]
    return msgspec.json.encode(known[:MAX_JOBS])


def expected_start_reporter(scheduler: "Scheduler", clock: Clock, *, enabled: bool) -> ExpectedStartReporter:
    """Makes the task of a scheduler. The shortest period of its profiles counts."""
    periods = [each.backfill.report for each in scheduler.gangs.values() if each.backfill.report]
    return ExpectedStartReporter(
        scheduler.queue,
        scheduler.ledger,
        scheduler.planners,
        scheduler.pod_reporter,
        copies=StateCopies(clock, scheduler.silence),
        clock=clock,
        period=min(periods, default=0.0) if enabled else 0.0,
    )
