"""The scheduling queue: each job has exactly one state here, from when it is first seen until it is placed or gone.

                    ┌───────────── GATED ◀──────────────┐
                    │ the gate opens                    │ a gate is shut
         add        ▼               pop                 │
       ───────▶ in a job class ───────────────────▶ IN FLIGHT ── done: placed ──▶ GONE
                   ▲     ▲                           │     │
                   │     └────── done: refused ──────┘     │ bind_failed
                   │                                       ▼
                   └────────── backoff over ───── a class of its own

A job class is ACTIVE, in BACKOFF or UNSCHEDULABLE with all its jobs (`queue.job_classes`). `delete` leads to GONE from
each state.

Single-threaded, without I/O; the clock is passed in. The scheduling loop begins each turn with `tick`, at `next_due` at
the latest, then calls `pop`, decides, and calls `done`. The watches call `add`, `delete` and `on_event`. Each change of
the ledger that may help a waiting job (also a bind that failed) needs an event (`queue.object_events`). Without it the
job waits for the flush.
"""

from collections.abc import Callable, Iterable, Mapping

from kubenexus.base.changed_groups import ChangedGroups
from kubenexus.base.clock import Clock
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Retry, Verdict
from kubenexus.queue.attempts import Attempts
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.due_work import DueWork
from kubenexus.queue.enqueuer import FORCED, Enqueuer
from kubenexus.queue.fair.fair_order import FairOrder
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.job_classes import JobClasses
from kubenexus.queue.job_rebuilder import JobRebuilder
from kubenexus.queue.object_events import WILDCARD_EVENT
from kubenexus.queue.postponed_jobs import PostponedJobs
from kubenexus.queue.question_cost import event_cost
from kubenexus.queue.queue_metrics import (
    QueueMetrics,
)
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queue_readings import QueueReadings
from kubenexus.queue.queued_job import QueuedJob, QueueState, SchedulingAttempt
from kubenexus.queue.signature_context import SignatureContext
from kubenexus.queue.work_allowance import WorkAllowance
from kubenexus.state.queues.queue_tree import QueueTree

ADDED = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD).label


def _any(job: Job) -> bool:
    """Admits every job."""
    return True


class SchedulingQueue(QueueReadings):
    """The queue of all profiles. `profile` has their rules by name (`spec.schedulerName`); "" for all other names.
    `queues` is the tree of queues that orders jobs, where there are any, and `half_life` how fast it forgets what they
    used (`queue.fair.fair_order`)."""

    def __init__(
        self,
        profile: Mapping[str, QueueProfile],
        clock: Clock,
        policy: BackoffPolicy | None = None,
        queues: QueueTree | None = None,
        half_life: float = 0.0,
    ) -> None:
        self._queued_jobs: dict[str, QueuedJob] = {}
        self._queue_metrics = QueueMetrics()
        self.policy = policy or BackoffPolicy()
        self._clock = clock
        allowance = self._work_allowance = WorkAllowance(self.policy.portion)
        classes = self._job_classes = JobClasses(self.policy, self._queue_metrics, clock, allowance)
        self._postponed, self._namespace_jobs = PostponedJobs(), ChangedGroups[QueuedJob]()
        enqueuer = self._enqueuer = Enqueuer(profile, classes, self._queue_metrics, self._postponed)
        fair = self._fair = FairOrder(queues, classes, allowance, half_life)
        self._attempts = Attempts(classes, enqueuer, self.policy, fair)
        self._profiles = self._enqueuer.profiles()
        self._numbers = 0
        self._signature_context = SignatureContext(self._profiles)
        self._due_work = DueWork(classes, enqueuer, self.policy, clock, allowance, self._namespace_jobs, fair=fair)

    def now(self) -> float:
        """Returns the time of the queue's clock."""
        return self._clock.now()

    # --- jobs and events come in ----------------------------------------------------------------------------------

    def add(
        self, job: Job, since: float | None = None, ready: float | None = None, hold: Verdict | None = None
    ) -> QueueState:
        """Adds a job, or replaces it after a change. `since`: its age by the API server's timestamp. `ready`: from when
        it may be tried, if that is later (`math.inf`: a gate has just opened). `hold`: why it may not be tried, however
        its gates are. If this raises the job is removed."""
        try:
            return self._add(job, since, ready, hold)
        except BaseException:
            self.delete(job.key)
            raise

    def _add(self, job: Job, since: float | None, ready: float | None, hold: Verdict | None) -> QueueState:
        self._check_signature_context()
        now, queued = self._clock.now(), self._queued_jobs.get(job.key)
        if not job.pods:
            self.delete(job.key)
            return QueueState.GONE
        if queued is not None and _related(queued.job, job):
            queued.hold = hold
            if since is not None and not queued.attempt_id:
                queued.added_at = since  # a gang is as old as the oldest of the members it has now
            if ready is not None:
                queued.may_be_tried_from(ready, now)
            return self._enqueuer.update(queued, job, now)
        if queued is not None:
            self.delete(job.key)  # created again under the same name, and the delete was not seen
        self._numbers += 1
        queued = self._queued_jobs[job.key] = QueuedJob(job, now if since is None else since, self._numbers, hold)
        self._namespace_jobs.add(queued.job.namespace, queued)
        if ready is not None:
            queued.may_be_tried_from(ready, now)
        state = self._enqueuer.enqueue(queued, ADDED, now)
        self._postponed.mark(queued)
        return state

    def delete(self, key: str) -> bool:
        """Removes a job that was deleted, or bound by another scheduler. Returns whether it was here."""
        queued = self._queued_jobs.pop(key, None)
        if queued is None:
            return False
        self._namespace_jobs.remove(queued.job.namespace, queued)
        if queued.attempt_id:
            self._attempts.end(queued)
        else:
            self._enqueuer.remove(queued)
        return True

    def on_event(self, event: ClusterEvent) -> int:
        """Records an event and checks job classes for it, as far as the allowance of this turn goes; the others are
        checked in the next turns (`tick`). Returns how many classes were woken at once."""
        in_flight_events, before = self._attempts.in_flight_events, self._job_classes.woken
        recorded = bool(in_flight_events) and (
            event.is_wildcard or any(profile.plugins_for(event) for profile in self._profiles)
        )
        waited_for = self._job_classes.sub_queues.refused_by or self._enqueuer.gated_jobs
        if not recorded and not waited_for:
            return 0
        cost = event_cost(event)
        if waited_for:
            self._check_signature_context()
            for profile in self._profiles:
                self._job_classes.happened(profile, event, cost)
                self._enqueuer.happened(profile, event, self._work_allowance)
            self._due_work.ask()
        if recorded:
            in_flight_events.record(event, cost.size)
        return self._job_classes.woken - before

    def has_jobs_of(self, namespace: str) -> bool:
        """Whether a job of this namespace is queued."""
        return namespace in self._namespace_jobs

    def jobs_by_namespace(self) -> Iterable[tuple[str, int]]:
        return self._namespace_jobs.counts()

    def on_tenant_change(self, namespace: str) -> None:
        """Signs and sorts the jobs of a namespace again whose tenants have changed, and wakes those that this may help:
        some at once, the others in the next turns (`tick`)."""
        self._namespace_jobs.changed(namespace)
        if self._namespace_jobs:
            self._due_work.apply_tenants()

    # --- attempts -------------------------------------------------------------------------------------------------

    def pop(
        self, admits: Callable[[Job], bool] = _any, rebuilder: JobRebuilder | None = None
    ) -> SchedulingAttempt | None:
        """Starts an attempt for the next job, which is in flight until `done`, `bind_failed` or `delete`. None: no job
        is ready, or this call looked at as many as it may (`has_ready` is still true then). A job that `admits` rejects
        is set aside, with all of its class in its namespace, until `release`. An outdated job is built again first."""
        self._check_signature_context()
        self._due_work.run()
        now, signed = self._clock.now(), 0
        for _ in range(self.policy.batch):
            job_class = self._job_classes.next_active(now)
            queued = None if job_class is None else job_class.head
            if job_class is None or queued is None:
                break
            if rebuilder is not None and rebuilder.is_outdated(queued.job):
                if not rebuilder.rebuild(queued.job):
                    break
                continue
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
            attempt = self._attempts.begin(queued, job_class, now)
            if attempt is not None:
                return attempt
        return None

    def release(self, namespace: str, kinds: int) -> bool:
        """Makes so many job classes of this namespace active that were set aside. Returns whether some are left."""
        self._job_classes.sub_queues.release(namespace, kinds)
        return namespace in self._job_classes.sub_queues.aside

    def done(self, attempt: SchedulingAttempt, decision: Decision | None = None) -> QueueState:
        """Ends an attempt. A job that was placed is removed, except for members without a node, which stay as a job.
        Without a decision there was nothing to decide (the pod terminates, or has a node): the job is removed."""
        queued, now = self._flying(attempt), self._clock.now()
        if queued is None:
            return QueueState.GONE
        self._check_signature_context()
        if decision is not None and decision.code.retry is not Retry.NEVER:
            return self._attempts.refused(queued, decision, now)
        state = self._attempts.succeeded(queued, decision, now)
        if state is QueueState.GONE:
            del self._queued_jobs[queued.job.key]
            self._namespace_jobs.remove(queued.job.namespace, queued)
        return state

    def bind_failed(self, attempt: SchedulingAttempt) -> QueueState:
        """Ends an attempt whose bind failed. No plugin refused, and others of its class are not affected: this job
        alone is tried again, after a backoff of its own."""
        queued = self._flying(attempt)
        return QueueState.GONE if queued is None else self._attempts.bind_failed(queued, self._clock.now())

    def wait_for_victims(self, attempt: SchedulingAttempt) -> QueueState:
        """Ends an attempt of a job that waits for the end of other pods. The job is tried after the longest backoff, or
        when `activate` or `victims_given_up` is called before."""
        queued = self._flying(attempt)
        if queued is None:
            return QueueState.GONE
        return self._attempts.bind_failed(queued, self._clock.now(), longest=True)

    def victims_given_up(self, key: str) -> None:
        """Ends that wait: the job is tried after a backoff of its own."""
        queued = self._queued_jobs.get(key)
        if queued is None or queued.attempt_id or queued.job_class is None:
            return
        if queued.job_class.error_backoff:
            self._attempts.end_wait(queued, self._clock.now())

    def take_rejected(self) -> list[str]:
        """Returns the key of a job of each class that `pop` rejected since the last call, for a limit of its queue."""
        return self._fair.take_rejected()

    def postpone(self, key: str, until: float) -> None:
        """Postpones a job whose decision took too long, in this process or one before it. The job and those of its
        class in its namespace are not tried before `until`, and then after all others. It need not be here yet."""
        self._postponed.add(key, until, self._clock.now())
        queued = self._queued_jobs.get(key)
        if queued is not None:
            self._postponed.mark(queued)

    def in_time(self, key: str) -> None:
        """Ends the postponement of a job whose decision took no longer than it should."""
        self._postponed.forget(key, self._queued_jobs.get(key))

    @property
    def any_late(self) -> bool:
        return bool(self._postponed)

    def is_before(self, one: str, other: str) -> bool:
        """Whether a job comes before another one now. A job that is gated or not here comes last."""
        first, second, now = self._queued_jobs.get(one), self._queued_jobs.get(other), self._clock.now()
        if first is None or second is None or first.job_class is None or second.job_class is None:
            return first is not None and first.job_class is not None
        return first.job_class.order_of(first, now) < second.job_class.order_of(second, now)

    def rank(self, key: str) -> tuple[int, tuple[float, ...]] | None:
        """Returns the position of a job by its own priority, then by age, without aging: less comes first. It decides
        which gang may reserve capacity before which. None: the job is gated or not here."""
        queued = self._queued_jobs.get(key)
        return None if queued is None or queued.job_class is None else (-queued.job_class.priority, queued.order)

    def activate(self, key: str) -> QueueState:
        """Makes this job active by itself, also without an event: its siblings are placed, say, or its victims gone."""
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
            # The first of the retries.
            self._job_classes.split_off(queued, job_class, QueueState.ACTIVE, 0.0, FORCED, 0.0)
        return queued.state

    # --- time -----------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Renews the allowance and does what is due (`queue.due_work`). Called once in each turn of the event loop: all
        calls of `pop` between two ticks share one allowance. Work that is left over is due at once (`next_due`)."""
        self._work_allowance.renew()
        self._check_signature_context()
        self._due_work.run()

    def next_due(self) -> float | None:
        """Returns when `tick` will have something to do; None: not before an event."""
        return self._due_work.next_due()

    @property
    def has_ready(self) -> bool:
        """Whether it is worth calling `pop` now."""
        sub_queues, due = self._job_classes.sub_queues, self._due_work.next_due()
        waits = bool(sub_queues.active) or (self.policy.pop_from_backoff and bool(sub_queues.backoff))
        return waits or (due is not None and due <= self._clock.now())

    # --- inside ---------------------------------------------------------------------------------------------------

    def _rests(self, job_class: JobClass, queued: QueuedJob, now: float) -> bool:
        """Postpones the class if its jobs take too long to decide. Returns whether it did."""
        until = self._postponed.is_postponed(
            job_class, queued, now, alone=len(self._job_classes.sub_queues.active) == 1
        )
        if until is not None:
            self._job_classes.postpone(job_class, until)
        return until is not None

    def _flying(self, attempt: SchedulingAttempt) -> QueuedJob | None:
        """Returns the job of the attempt, or None if the attempt is not under way any more."""
        queued = self._queued_jobs.get(attempt.job.key)
        return queued if queued is not None and queued.attempt_id == attempt.id else None

    def _check_signature_context(self) -> None:
        """Makes job classes outdated if signatures mean something else now, and wakes all if refusals do."""
        change = self._signature_context.take_change()
        if change.signatures:
            self._job_classes.sign_again()
        for profile in self._profiles if change.refusals else ():
            self._job_classes.happened(profile, WILDCARD_EVENT, event_cost(WILDCARD_EVENT))


def _related(old: Job, new: Job) -> bool:
    """Whether both are the same job: a pod that was created again under its old name is another one."""
    before = {pod.metadata.uid for pod in old.pods}
    return any(pod.metadata.uid in before for pod in new.pods)
