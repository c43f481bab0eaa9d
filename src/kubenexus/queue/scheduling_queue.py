"""The waiting room: every job that is to be placed is in exactly one place here, from the first we hear of it until it
is placed or gone.

                    ┌───────────── GATED ◀──────────────┐
                    │ the gate opens                    │ a gate is shut
         add        ▼               pop                 │
       ─────────▶ in a line ──────────────────────▶ IN FLIGHT ── done: placed ──▶ GONE
                   ▲     ▲                           │     │
                   │     └────── done: refused ──────┘     │ failed: could not be bound
                   │                                       ▼
                   └────────── backoff over ───── a line of its own

A line is ACTIVE, in BACKOFF or UNSCHEDULABLE with all the jobs that stand in it: `queue.job_classes` has that part.
`delete` leads to GONE from everywhere.

Single-threaded, without I/O and without a clock of its own. The loop begins each of its turns with `tick`, at
`next_due` at the latest, calls `pop`, decides, and calls `done`; the watches call `add`, `delete` and
`on_event`. Whatever changes the ledger in anybody's favour (a bind that failed, too) has to be told as an event
(`queue.object_events`), or those it helps wait for the flush.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from kubenexus.base.clock import Clock
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Retry, Verdict
from kubenexus.queue.attempts import Attempts
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.due_work import DueWork
from kubenexus.queue.enqueuer import FORCED, Enqueuer
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.job_classes import JobClasses
from kubenexus.queue.object_events import WILDCARD_EVENT
from kubenexus.queue.postponed_jobs import PostponedJobs
from kubenexus.queue.question_cost import event_cost
from kubenexus.queue.queue_metrics import (
    IncomingCount,
    PendingCount,
    QueueMetrics,
    UnschedulableCount,
    unschedulable_counts,
)
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueuedJob, QueueState, SchedulingAttempt
from kubenexus.queue.signature_context import SignatureContext
from kubenexus.queue.work_allowance import WorkAllowance

ADDED = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD).label


def _any(job: Job) -> bool:
    """Every job is admitted."""
    return True


class SchedulingQueue:
    """`profile` by the name of the profile (`spec.schedulerName`), those under "" for all other names."""

    def __init__(self, profile: Mapping[str, QueueProfile], clock: Clock, policy: BackoffPolicy | None = None) -> None:
        self._queued_jobs: dict[str, QueuedJob] = {}
        self._queue_metrics = QueueMetrics()
        self.policy = policy or BackoffPolicy()
        self._clock = clock
        self._work_allowance = WorkAllowance(self.policy.portion)
        self._job_classes = JobClasses(self.policy, self._queue_metrics, clock, self._work_allowance)
        self._postponed = PostponedJobs()
        self._enqueuer = Enqueuer(profile, self._job_classes, self._queue_metrics, self._postponed)
        self._attempts = Attempts(self._job_classes, self._enqueuer, self.policy)
        self._profiles = self._enqueuer.profiles()
        self._numbers = 0
        self._signature_context = SignatureContext(self._profiles)
        self._due_work = DueWork(self._job_classes, self._enqueuer, self.policy, clock, self._work_allowance)

    def now(self) -> float:
        """By its clock."""
        return self._clock.now()

    # --- what the API server says ---------------------------------------------------------------------------------

    def add(
        self, job: Job, since: float | None = None, ready: float | None = None, hold: Verdict | None = None
    ) -> QueueState:
        """A job we did not know, or know in another form. `since`: how old it is, by the API server's timestamp;
        `has_ready`: from when it may be tried, if that is later (`math.inf`: a gate has just opened); `hold`: why it
        may not be tried, however its gates are. Should it fail,
        nothing of the job is left behind."""
        try:
            return self._add(job, since, ready, hold)
        except BaseException:
            self.delete(job.key)
            raise

    def _add(self, job: Job, since: float | None, ready: float | None, hold: Verdict | None) -> QueueState:
        self._check_signature_context()
        now, queued = self._clock.now(), self._queued_jobs.get(job.key)
        if not job.pods:
            self.delete(job.key)  # its last member is gone
            return QueueState.GONE
        if queued is not None and _related(queued.job, job):
            queued.hold = hold
            if since is not None and not queued.attempt_id:
                queued.added_at = since  # a gang is as old as the oldest of the members it has now, whoever comes first
            if ready is not None:
                queued.may_be_tried_from(ready, now)
            return self._enqueuer.update(queued, job, now)
        if queued is not None:
            self.delete(job.key)  # made again under the same name, and nobody told us of the delete
        self._numbers += 1
        queued = self._queued_jobs[job.key] = QueuedJob(job, now if since is None else since, self._numbers, hold)
        if ready is not None:
            queued.may_be_tried_from(ready, now)
        state = self._enqueuer.enqueue(queued, ADDED, now)
        self._postponed.mark(queued)
        return state

    def delete(self, key: str) -> bool:
        """A job is gone: deleted, or bound by somebody else. Says whether it was here."""
        queued = self._queued_jobs.pop(key, None)
        if queued is None:
            return False
        if queued.attempt_id:
            self._attempts.end(queued)
        else:
            self._enqueuer.remove(queued)
        return True

    def on_event(self, event: ClusterEvent) -> int:
        """Something happened in the cluster. Returns how many lines were woken at once; asks once a line, not once a
        job. Those for which the allowance of this turn is not enough are asked in the next ones (`tick`)."""
        in_flight_events, before = self._attempts.in_flight_events, self._job_classes.woken
        cost = event_cost(event)
        if self._job_classes.sub_queues.refused_by or self._enqueuer.gated_jobs:  # else no job waits for an event
            self._check_signature_context()
            for profile in self._profiles:
                self._job_classes.happened(profile, event, cost)
                self._enqueuer.happened(profile, event)
            self._due_work.ask()
        if in_flight_events and (event.is_wildcard or any(profile.plugins_for(event) for profile in self._profiles)):
            in_flight_events.record(event, cost.size)
        return self._job_classes.woken - before

    # --- what the loop does ---------------------------------------------------------------------------------------

    def pop(self, admits: Callable[[Job], bool] = _any) -> SchedulingAttempt | None:
        """The job whose turn it is; it is in flight until `done`, `bind_failed` or `delete`. None: none is ready, or
        more jobs had to be looked at than one call may (then `has_ready` still says yes). A job that is not admitted is
        set aside, with all of its kind in its namespace, until `release`."""
        self._check_signature_context()
        self._due_work.run()
        now, signed = self._clock.now(), 0
        for _ in range(self.policy.batch):
            job_class = self._job_classes.next_active(now)
            queued = None if job_class is None else job_class.head
            if job_class is None or queued is None:
                break
            admitted = admits(queued.job)
            if not admitted:
                self._postponed.set_apart(queued.job.namespace)
            moves = self._enqueuer.stands_with_others(queued, job_class)
            if not admitted and not moves:
                signed += 1
                self._job_classes.sub_queues.set_aside(job_class, queued.job.namespace)
                if signed == self.policy.portion:
                    break
                continue
            if not moves and self._postponed and self._rests(job_class, queued, now):
                continue
            if moves or self._job_classes.is_outdated(job_class):
                if signed >= self.policy.portion:
                    break
                signed += 1
                self._enqueuer.sign_again(queued, now)
                continue
            flushed = job_class.after_timeout
            if self._attempts.begin(queued, job_class, now):
                return SchedulingAttempt(queued.attempt_id, queued.job, queued.attempts, queued.added_at, flushed)
        return None

    def release(self, namespace: str, kinds: int) -> bool:
        """So many kinds of jobs of this namespace that were set aside may be tried now. Returns whether some are left
        aside."""
        self._job_classes.sub_queues.release(namespace, kinds)
        return namespace in self._job_classes.sub_queues.aside

    def done(self, attempt: SchedulingAttempt, decision: Decision | None = None) -> QueueState:
        """The end of a turn. Without a decision there was nothing to decide (the pod is being deleted, or has a node):
        the job leaves. So it does when it was placed, but for members that were not: they wait on, as a job."""
        queued, now = self._flying(attempt), self._clock.now()
        if queued is None:
            return QueueState.GONE
        self._check_signature_context()
        if decision is not None and decision.code.retry is not Retry.NEVER:
            return self._attempts.refused(queued, decision, now)
        state = self._attempts.succeeded(queued, decision, now)
        if state is QueueState.GONE:
            del self._queued_jobs[queued.job.key]
        return state

    def bind_failed(self, attempt: SchedulingAttempt) -> QueueState:
        """The job was placed, but that could not be carried out (the API server refused the bind, say). Nobody is to
        blame and its kind is not concerned: this job alone is tried again, after a backoff of its own."""
        queued = self._flying(attempt)
        return QueueState.GONE if queued is None else self._attempts.bind_failed(queued, self._clock.now())

    def postpone(self, key: str, until: float) -> None:
        """A decision about this job took too long, here or in a process before this one. Neither it nor those like it
        in its namespace are tried before `until`, and then after all others. The job need not be here yet."""
        self._postponed.add(key, until, self._clock.now())
        queued = self._queued_jobs.get(key)
        if queued is not None:
            self._postponed.mark(queued)

    def in_time(self, key: str) -> None:
        """A decision about this job took no longer than it should: it is one like all others again."""
        self._postponed.forget(key, self._queued_jobs.get(key))

    @property
    def any_late(self) -> bool:
        """Whether some job was postponed, and has not been decided in time since."""
        return bool(self._postponed)

    def is_before(self, one: str, other: str) -> bool:
        """Whether a job comes before another one now, both in flight or in a line; who is not here comes last."""
        first, second, now = self._queued_jobs.get(one), self._queued_jobs.get(other), self._clock.now()
        if first is None or second is None or first.job_class is None or second.job_class is None:
            return first is not None and first.job_class is not None
        return first.job_class.order_of(first, now) < second.job_class.order_of(second, now)

    def rank(self, key: str) -> tuple[int, tuple[float, ...]] | None:
        """Its place by its own priority, then by age, however long it has waited: less comes first. Who may keep room
        from whom is asked of this. None: it is not here, or at a gate."""
        queued = self._queued_jobs.get(key)
        return None if queued is None or queued.job_class is None else (-queued.job_class.priority, queued.order)

    def activate(self, key: str) -> QueueState:
        """Have this very job tried now, whatever it waits for: its siblings are placed, say, or its victims gone."""
        queued = self._queued_jobs.get(key)
        if queued is None:
            return QueueState.GONE
        if queued.attempt_id:
            queued.activate_requested = True
        elif queued.gate_verdict is not None:
            self._enqueuer.recheck_gate(queued, FORCED, self._clock.now())
        elif queued.require_class.state is not QueueState.ACTIVE:
            job_class = queued.require_class
            self._job_classes.remove(queued)
            self._job_classes.split_off(
                queued, job_class, QueueState.ACTIVE, 0.0, FORCED, 0.0
            )  # the first of the retries
        return queued.state

    # --- time -----------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due: end backoffs, flush, see who has waited longer, ask those that an event may have helped. To
        be called once in each turn of the event loop, however often `pop` is: all calls between two ticks share one
        allowance. What is left over is due at once (`next_due`)."""
        self._work_allowance.renew()
        self._check_signature_context()
        self._due_work.run()

    def next_due(self) -> float | None:
        """When `tick` will have something to do; None if nothing but an event can change anything."""
        sub_queues, flush = self._job_classes.sub_queues, self.policy.flush_after
        times = [
            job_class.backoff_until
            for job_class in (sub_queues.backoff.first(), sub_queues.error_backoff.first())
            if job_class is not None
        ]
        times += [
            job_class.unschedulable_since + flush
            for job_class in (sub_queues.oldest_unschedulable,)
            if job_class is not None
        ]
        times += [queued.gate_checked_at + flush for queued in (self._enqueuer.gated_jobs.first,) if queued is not None]
        times += [self._clock.now()] if self._job_classes.any_to_ask or self._enqueuer.any_to_ask else []
        return min(times, default=None)

    @property
    def has_ready(self) -> bool:
        """Whether it is worth calling `pop` now."""
        sub_queues, due = self._job_classes.sub_queues, self.next_due()
        waits = bool(sub_queues.active) or (self.policy.pop_from_backoff and bool(sub_queues.backoff))
        return waits or (due is not None and due <= self._clock.now())

    # --- what can be read off it -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """All jobs, those in flight included."""
        return len(self._queued_jobs)

    def __contains__(self, key: str) -> bool:
        return key in self._queued_jobs

    def state(self, key: str) -> QueueState:
        queued = self._queued_jobs.get(key)
        return QueueState.GONE if queued is None else queued.state

    def job(self, key: str) -> Job | None:
        """The job as it is now; a turn has it as it was when it was popped."""
        queued = self._queued_jobs.get(key)
        return None if queued is None else queued.job

    def attempts(self, key: str) -> int:
        queued = self._queued_jobs.get(key)
        return 0 if queued is None else queued.attempts

    def gate_verdict(self, key: str) -> Verdict | None:
        """Why the job may not be tried, if it is at a gate."""
        queued = self._queued_jobs.get(key)
        return None if queued is None else queued.gate_verdict

    def hold(self, key: str) -> Verdict | None:
        """Returns why the job is held, as `add` was called with."""
        queued = self._queued_jobs.get(key)
        return None if queued is None else queued.hold

    def last_decision(self, key: str) -> Decision | None:
        """The last refusal of this job or of one like it: why it waits. It names the job that was tried."""
        queued = self._queued_jobs.get(key)
        return None if queued is None or queued.job_class is None else queued.job_class.decision

    def same_class(self, key: str) -> list[str]:
        """All that wait in the same line, this one included: what is decided for one has to be told to all."""
        queued = self._queued_jobs.get(key)
        return [] if queued is None or queued.job_class is None else [each.job.key for each in queued.job_class.members]

    def pending(self, state: QueueState) -> PendingCount:
        """How many jobs and pods are there: `pending_pods{queue}`."""
        return self._queue_metrics.waiting(state)

    def pending_gangs(self, state: QueueState) -> int:
        """How many of those jobs are gangs."""
        return self._queue_metrics.gangs(state)

    def drain_incoming(self) -> list[IncomingCount]:
        """How many came into each place by which event, since this was last asked: `queue_incoming_pods_total`."""
        return self._queue_metrics.drain()

    def unschedulable_counts(self) -> Iterator[UnschedulableCount]:
        """Why jobs wait, line by line: `unschedulable_pods`."""
        return unschedulable_counts(self._job_classes.sub_queues, self._enqueuer.gated_jobs)

    def in_flight_events(self) -> Counter[str]:
        """What happened since the oldest job in flight took off: `inflight_events`."""
        return self._attempts.in_flight_events.by_label()

    # --- how it is kept -------------------------------------------------------------------------------------------

    def _rests(self, job_class: JobClass, queued: QueuedJob, now: float) -> bool:
        """Whether the line whose turn it is has to wait, since its jobs take too long to decide."""
        until = self._postponed.is_postponed(
            job_class, queued, now, alone=len(self._job_classes.sub_queues.active) == 1
        )
        if until is not None:
            self._job_classes.postpone(job_class, until)
        return until is not None

    def _flying(self, attempt: SchedulingAttempt) -> QueuedJob | None:
        """The job whose turn it is, if it still is."""
        queued = self._queued_jobs.get(attempt.job.key)
        return queued if queued is not None and queued.attempt_id == attempt.id else None

    def _check_signature_context(self) -> None:
        """If signatures mean something else now, who is alike has to be found out again; if refusals rest on something
        else, who is still refused."""
        change = self._signature_context.take_change()
        if change.signatures:
            self._job_classes.sign_again()
        for profile in self._profiles if change.refusals else ():
            self._job_classes.happened(profile, WILDCARD_EVENT, event_cost(WILDCARD_EVENT))


def _related(old: Job, new: Job) -> bool:
    """Whether it is still the same job: a pod made again under its old name is another one."""
    before = {pod.metadata.uid for pod in old.pods}
    return any(pod.metadata.uid in before for pod in new.pods)
