"""Scheduling loop: pops a job, decides, commits, submits the binds. Yields to the event loop after each burst.

One thread does everything but renew the lease, so a burst of decisions is bounded: by its cost in rows, and by how far
decisions may run ahead of the API server. Watches and probes are served between two bursts. Decisions are timed here,
since `decide` has no clock: a job whose decision took too long is tried after all others from then on.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from kubenexus.app.election.loop_activity import LoopActivity
from kubenexus.app.gangs.reservations import GangReservations
from kubenexus.app.job_committer import PORTION, JobCommitter
from kubenexus.app.preemption.executor import PreemptionExecutor
from kubenexus.app.recording.recorder import FlightRecorder
from kubenexus.app.report.decision_metrics import DecisionMetrics
from kubenexus.app.report.object_warnings import log_object_warnings
from kubenexus.app.report.pod_reporter import PodReporter
from kubenexus.app.report.tenant_usage import TenantUsage
from kubenexus.app.reservations.controller import ReservationController
from kubenexus.app.reservations.drivers import DriverReservations
from kubenexus.app.wakeup import Wakeup
from kubenexus.app.watch.node_reports import NodeReports
from kubenexus.base.clock import Clock
from kubenexus.bind.dispatcher import Dispatcher
from kubenexus.framework.cluster_events import ClassBackoff
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.observe import logs
from kubenexus.observe.metrics import ERROR, UNSCHEDULABLE, Metrics
from kubenexus.plan.decide import Planner
from kubenexus.plan.demand_learner import DemandLearner
from kubenexus.plan.node_backoff import NodeBackoff, exclude_backed_off_nodes
from kubenexus.queue.gangs.job_assembler import JobAssembler
from kubenexus.queue.object_events import backoffs_ended
from kubenexus.queue.queued_job import SchedulingAttempt
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger

BURST_BUDGET = 6400  # cost of a burst in rows: a few milliseconds
PER_DECISION = 100  # cost of a decision besides the rows it evaluates
PER_MEMBER = 20  # and for each further pod of a gang: to place one takes as long as so many rows
LARGE = 500  # pods of gangs that are built or decided; what follows then has a turn of the event loop of its own
MAX_BURST_SECONDS = 0.1  # seconds; no decision begins later, in case decisions cost more than their rows
MAX_DEVICE_READS = 20  # nodes whose devices a burst reads, up to a millisecond each; decisions wait for all of them
MAX_REPORTS = 4  # of NUMA nodes that a burst reads, up to a millisecond each
MAX_WAIT_SECONDS = 60.0  # seconds until the loop checks again whether something is due
LOG_INTERVAL = 30.0  # seconds between two log lines about decisions that wait

log = logs.get("scheduling_loop")


class LoopOptions(msgspec.Struct, frozen=True):
    """Options of the loop. `spent` is the clock that times decisions: CPU seconds of this thread in a process that may
    be paused, throttled or migrated; by default the clock of the loop. `on_decision` is called with every decision. In
    the simulator each decision takes `seconds_per_decision` of virtual time. `recorder` records every decision. A gang
    of more than `portion` members is committed in portions of so many."""

    spent: Callable[[], float] | None = None
    on_decision: Callable[[Decision], None] | None = None
    seconds_per_decision: float = 0.0
    recorder: FlightRecorder | None = None
    portion: int = PORTION


class SchedulingLoop:
    """The scheduling loop. `planners` are by profile name. `outdated` returns the kinds that decisions depend on and
    whose watch is down: no decision is made while there are any."""

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        ledger: Ledger,
        queue: SchedulingQueue,
        assembler: JobAssembler,
        planners: Mapping[str, Planner],
        dispatcher: Dispatcher,
        reservations: GangReservations,
        *,
        resource_reservations: ReservationController,
        drivers: DriverReservations,
        preemption: PreemptionExecutor,
        demand: DemandLearner,
        pod_reporter: PodReporter,
        tenant_usage: TenantUsage,
        metrics: Metrics,
        clock: Clock,
        node_backoff: NodeBackoff,
        wakeup: Wakeup,
        node_reports: NodeReports,
        outdated: Callable[[], list[str]],
        options: LoopOptions,
        on_refused: Callable[[Job, Decision], None] | None = None,
    ) -> None:
        self._ledger, self._queue, self._assembler, self._planners = ledger, queue, assembler, planners
        self._preemption, self._demand = preemption, demand
        self._dispatcher, self.reservations, self.node_backoff = dispatcher, reservations, node_backoff
        self.resource_reservations = resource_reservations
        self._pod_reporter, self._metrics, self._clock, self._wakeup = pod_reporter, metrics, clock, wakeup
        self._node_reports = node_reports
        self._outdated, self._options, self._tenant_usage = outdated, options, tenant_usage
        self._spent, self._on_refused = options.spent or clock.now, on_refused
        self._decision_metrics = DecisionMetrics(metrics, ledger, clock)
        self._committer = JobCommitter(
            ledger,
            queue,
            assembler,
            dispatcher,
            reservations=reservations,
            drivers=drivers,
            preemption=preemption,
            demand=demand,
            pod_reporter=pod_reporter,
            metrics=metrics,
            decision_metrics=self._decision_metrics,
            recorder=options.recorder,
            portion=options.portion,
        )
        self.activity = LoopActivity()
        self._waits_for: list[str] = []
        self._logged_at = 0.0
        self.decisions = 0

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            if self.idle:
                if self._options.recorder is not None:
                    self._options.recorder.flush()
                await self._wait()
            if self._prepare() > LARGE:
                await asyncio.sleep(0)
            count, members = self._decide_some()
            while self._committer.under_way:
                await asyncio.sleep(0)
                self._commit_some()
            if members > LARGE:
                await asyncio.sleep(0)
            self._report()
            await asyncio.sleep(count * self._options.seconds_per_decision)

    @property
    def idle(self) -> bool:
        """Returns whether there is nothing to do until the next event or the next due time."""
        if self._committer.under_way:
            return False
        busy = self._pod_reporter.busy or self._tenant_usage.busy or self._ledger.has_unread_devices
        if busy or self._node_reports or self._ledger.preemptions.any_news:
            return False
        ready = self._queue.has_ready or self._dispatcher.backlog.any_freed or self._gangs_due
        ready = ready or self.resource_reservations.busy
        return bool(self._outdated()) or self._dispatcher.resting or not ready

    def run_burst(self) -> int:
        """Does in one go what `run` does: makes as many decisions as the budget allows and returns their number, then
        some reports. Enters a portion instead while a large job is in the ledger in part. For tests."""
        if self._committer.under_way:
            self._commit_some()
            return 0
        self._prepare()
        count, _ = self._decide_some()
        self._report()
        return count

    def _prepare(self) -> int:
        """Brings the queue up to date. Returns how many members of gangs were built for that."""
        if self.node_backoff and (ended := self.node_backoff.expire()):
            self._queue.on_event(backoffs_ended(ended))
        self.reservations.expire()
        self._queue.tick()
        self._preemption.settle()
        self._release()
        built = self._assembler.build_changed()
        self._read_reports()
        return built

    def _decide_some(self) -> tuple[int, int]:
        """Makes as many decisions as the budget allows. Returns their number, and how many pods they were about. No
        decision is made while the watch of nodes or pods is down: the server may answer binds before those watches are
        back."""
        spent = count = members = 0
        now = self._clock.now()
        if self._watch_down(now):  # once in a burst: no watch is lost or comes back before it ends
            return 0, 0
        ends = now + MAX_BURST_SECONDS
        if not self._may_decide():  # asked once before the first decision: it reads devices
            return 0, 0
        self.resource_reservations.step()
        while self.resource_reservations.caught_up and spent < BURST_BUDGET and now < ends:
            attempt = self._queue.pop(self._admits, self._assembler)
            if attempt is None:
                break
            before = self._work_done()
            now = self._schedule_one(attempt)
            rows = self._work_done() - before
            self._metrics.refresh_rows.labels().observe(rows)
            pods = len(attempt.job.pods)
            spent += PER_DECISION + PER_MEMBER * (pods - 1) + rows
            count += 1
            members += pods
            if self._committer.under_way or not self._may_decide():
                break
        self.decisions += count
        return count, members

    def _report(self) -> None:
        """Makes some of the reports that are due."""
        self._pod_reporter.report_rejected(self._queue.take_rejected())
        self._pod_reporter.report_some()
        self._settle_usage()
        log_object_warnings(self._ledger)

    def _may_decide(self) -> bool:
        """Whether all devices are read, and the dispatcher takes more. Reads some devices if not."""
        if self._dispatcher.resting:
            return False
        return not self._ledger.has_unread_devices or not self._ledger.read_devices(MAX_DEVICE_READS)

    def _read_reports(self) -> None:
        """Reads some of the reports of nodes that wait. Decisions do not wait for the others."""
        for problem in self._node_reports.read_some(MAX_REPORTS) if self._node_reports else ():
            log.error("Failed to read what a node reports; going on", problem)  # noqa: PLE1205 - our own log

    def _settle_usage(self) -> None:
        """Counts some pods again whose tenant or node changed. A failure there must not stop the loop."""
        try:
            self._tenant_usage.settle()
        except Exception as error:
            log.error("Failed to count what tenants use; going on", error)  # noqa: PLE1205 - our own log

    @property
    def _gangs_due(self) -> bool:
        due = self._assembler.next_due()
        return due is not None and due <= self._clock.now()

    def _release(self) -> None:
        """Releases jobs that were set aside, as many as their namespaces may have under way."""
        backlog = self._dispatcher.backlog
        for namespace in backlog.take_freed():
            if self._queue.release(namespace, backlog.headroom(namespace)):
                backlog.hold(namespace)

    def _admits(self, job: Job) -> bool:
        """Whether decisions of the job's namespace are not too far ahead of the API server. If its binds hang or fail,
        that is reported to the job; if there are only many of them, the job is tried soon."""
        backlog, namespace = self._dispatcher.backlog, job.namespace
        if backlog.admits(namespace):
            return True
        backlog.hold(namespace)
        problem = backlog.problem(namespace)
        if problem:
            self._pod_reporter.held(job, problem)
        return False

    def _watch_down(self, now: float) -> bool:
        """Returns whether decisions have to wait because a watch is down. Logs when that begins, goes on, and ends."""
        kinds = self._outdated()
        if kinds and (kinds != self._waits_for or now >= self._logged_at + LOG_INTERVAL):
            log.warning("Decisions wait until these kinds are heard of again", kinds=kinds)
            self._logged_at = now
        elif self._waits_for and not kinds:
            log.info("Decisions go on")
        self._waits_for = kinds
        return bool(kinds)

    # --- one attempt -------------------------------------------------------------------------------------------------

    def _schedule_one(self, attempt: SchedulingAttempt) -> float:
        """Runs one attempt. An exception of the planner or a plugin fails this job alone. Returns the time after it."""
        began, spent = self._clock.now(), self._spent()
        self.activity.deciding = (attempt.job.key, began)
        try:
            self._decide_and_submit(attempt, began)
        except (Exception, SystemExit, GeneratorExit, asyncio.CancelledError) as error:  # nothing here awaits
            self._failed(attempt, error, began)
        finally:
            self.activity.deciding = None
        return self._timed(attempt.job.key, self._spent() - spent)

    def _commit_some(self) -> None:
        """Enters the next portion of a large job. No other job is decided until the last one."""
        attempt, began = self._committer.attempt
        self.activity.deciding = (attempt.job.key, self._clock.now())
        try:
            self._committer.step()
        except (Exception, SystemExit, GeneratorExit, asyncio.CancelledError) as error:  # nothing here awaits
            self._failed(attempt, error, began)
        finally:
            self.activity.deciding = None

    def _failed(self, attempt: SchedulingAttempt, error: BaseException, began: float) -> None:
        log.error("Failed to decide; trying again later", error, job=attempt.job.key)  # noqa: PLE1205 - our own log
        self._queue.bind_failed(attempt)
        self._pod_reporter.report_error(attempt.job, f"{type(error).__name__}: {error}")
        self._decision_metrics.attempt_failed(attempt.job, ERROR, began)

    def _timed(self, job: str, seconds: float) -> float:
        """Postpones the job and its class if the decision took too long. Returns the time."""
        now = self._clock.now()
        until = self.activity.slow_jobs.decided(job, now - seconds, now)
        if until is not None:
            log.warning("Decision took too long; trying the job last", job=job, seconds=round(seconds, 1))
            self._queue.postpone(job, until)
        elif self._queue.any_late:
            self._queue.in_time(job)
        return now

    def _decide_and_submit(self, attempt: SchedulingAttempt, began: float) -> None:
        job = attempt.job
        profile = job.profile
        planner = self._planners[profile]
        problem = self._dispatcher.prebind_runner.reason_to_postpone(job.pods)
        if problem:
            self._queue.bind_failed(attempt)
            self._pod_reporter.report_error(job, problem)
            self._decision_metrics.attempt_failed(job, ERROR, began)
            return
        backoffs = frozenset[ClassBackoff]()
        if self.node_backoff:
            job, backoffs = exclude_backed_off_nodes(job, self.node_backoff, planner.class_cache, self._ledger.nodes)
        snapshot = self._ledger.snapshot()
        spared = self._preemption.spared(job)
        ahead = self.reservations.ahead_of(job)
        decision = planner.decide(job, snapshot, began, ahead, spared=spared)
        if self._options.recorder is not None:
            self._options.recorder.decided(job, began, ahead, spared, decision)
        if backoffs:
            decision = msgspec.structs.replace(decision, backoffs=backoffs)
        if self._options.on_decision is not None:
            self._options.on_decision(decision)
        seconds = self._clock.now() - began
        self._metrics.algorithm_duration.labels().observe(seconds)
        if job.is_gang:
            self._metrics.group_algorithm_duration.labels().observe(seconds)
        if decision.placed:
            self._committer.begin(attempt, job, decision, began)
            return
        decision = self._preemption.review(attempt.job, decision)
        if decision.preemption is None and not decision.alone:
            self.reservations.refused(job, decision, planner, snapshot)
        self._refused(attempt, decision, began)
        if self._on_refused is not None:
            self._on_refused(attempt.job, decision)
        self._demand.decided(job, self._ledger, placed=False, placements=())

    def _refused(self, attempt: SchedulingAttempt, decision: Decision, began: float) -> None:
        if decision.preemption is not None or self._preemption.waits(attempt.job):
            self._queue.wait_for_victims(attempt)
        elif decision.alone:
            self._queue.bind_failed(attempt)
        else:
            self._queue.done(attempt, decision)
        self._preempt(attempt.job, decision)
        result = ERROR if decision.code is Code.ERROR else UNSCHEDULABLE
        self._decision_metrics.refused(decision, attempt.job, result)
        self._decision_metrics.attempt_failed(attempt.job, result, began)
        if log.enabled(2):
            why, number = decision.full_sentence(), str(attempt.id)
            log.v(2, "Unable to schedule pod; no fit; waiting", pod=attempt.job.pods[0], err=why, cycle=number)
        self._pod_reporter.report_unschedulable(attempt.job.key, decision)

    def _preempt(self, job: Job, decision: Decision) -> None:
        """Starts the preemption that a refused decision plans, if any."""
        if decision.diagnosis.post_filter:
            self._metrics.preemption_attempts.labels().add()
        if decision.preemption is not None:
            self._preemption.submit(job, decision.preemption)
        elif decision.clears_nomination:
            self._preemption.clear_nominations(job)

    def _work_done(self) -> int:
        """Returns how many rows all planners have evaluated so far."""
        size = self._ledger.nodes.count
        works = (planner.class_cache.work for planner in self._planners.values())
        return sum(work.rows + work.beyond + work.reported + work.builds * size for work in works)

    def enter_rest(self) -> None:
        """Enters the rest of a large job that is in the ledger in part. Called in a copy of the process."""
        self._committer.enter_rest()

    # --- waiting --------------------------------------------------------------------------------------------------

    async def _wait(self) -> None:
        self._wakeup.clear()
        paused = self._dispatcher.resting or bool(self._waits_for)
        log_due = self._logged_at + LOG_INTERVAL if self._waits_for else None
        jobs = () if paused else (self._queue.next_due(), self._assembler.next_due())
        others = (self.reservations.due, self.resource_reservations.due, self._preemption.due, log_due)
        times = (*jobs, self._pod_reporter.due, *others)
        due = min((time for time in times if time is not None), default=None)
        seconds = MAX_WAIT_SECONDS if due is None else min(max(due - self._clock.now(), 0.0), MAX_WAIT_SECONDS)
        await self._wakeup.wait(seconds)
