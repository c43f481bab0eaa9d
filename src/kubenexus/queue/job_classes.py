"""How lines move.

                              refuse                          an event that helps, 5 minutes
               ┌───────────────────────────────▶ UNSCHEDULABLE ──────────────┐
               │                                                             ▼
    join ──▶ ACTIVE ◀──────────────────────────────────────── no ── still backing off?
               │  ▲                                                          │ yes
               │  └── its time has come, or nothing else is to do ── BACKOFF ◀┘
               └────────────────────────────────────────────────────────▲
                  refused, but something happened meanwhile that helps; or nobody is to blame

A line without waiting jobs is nowhere, and forgotten once none of its jobs is in flight.
"""

from typing import Any

from kubenexus.base.clock import Clock
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Retry
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.job_signature import JobSignature
from kubenexus.queue.queue_metrics import JobCount, QueueMetrics, count_of_class, count_of_job
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueuedJob, QueueState
from kubenexus.queue.retry_turns import RetryTurns
from kubenexus.queue.sub_queues import SubQueues
from kubenexus.queue.work_allowance import WorkAllowance

FAILURE = "ScheduleAttemptFailure"
SLOW = "SlowDecision"


class JobClasses:
    def __init__(self, policy: BackoffPolicy, queue_metrics: QueueMetrics, clock: Clock) -> None:
        self.sub_queues = SubQueues(clock)
        self._policy = policy
        self._queue_metrics = queue_metrics
        self._by_kind: dict[bytes, JobClass] = {}
        self.woken = 0  # lines that events woke, so far
        self.retry_turns = RetryTurns(self.sub_queues)

    def __len__(self) -> int:
        return len(self._by_kind)

    def class_of(self, kind: JobSignature, profile: QueueProfile, priority: int) -> JobClass:
        """The line of jobs of this kind, made if there is none."""
        job_class = self._by_kind.get(kind.digest)
        if job_class is None or job_class.scope != profile.scope(kind.sample_pods[0]):
            job_class = self._by_kind[kind.digest] = JobClass(kind, profile, priority)
        return job_class

    def is_current(self, job_class: JobClass) -> bool:
        """Whether new jobs of its kind would join this line: it is not one for a single job, nor of old signatures."""
        return self._by_kind.get(job_class.signature.digest) is job_class

    def is_outdated(self, job_class: JobClass) -> bool:
        """Whether signatures have changed since its first job joined it."""
        return not job_class.single_job and not (self.is_current(job_class) and job_class.in_scope)

    # --- jobs come and go -----------------------------------------------------------------------------------------

    def add(self, queued: QueuedJob, job_class: JobClass, event: str) -> None:
        """A job without a refusal of its own. It shares the line's if that stands, and else has the line tried."""
        if not job_class.refusal_holds and job_class.state is not QueueState.ACTIVE:
            self.activate(job_class, event)
        self.insert(queued, job_class, event)

    def insert(self, queued: QueuedJob, job_class: JobClass, event: str) -> None:
        """A job takes its place in the line, wherever that is."""
        if job_class.refusal_holds and not job_class.concerns(queued):
            self.activate(job_class, event)
        job_class.push(queued)
        self._queue_metrics.enter(job_class.state, count_of_job(queued), event)
        if job_class.head is queued:  # else the line stays where it is
            self.sub_queues.update(job_class)

    def remove(self, queued: QueuedJob) -> None:
        job_class = queued.require_class
        self._queue_metrics.leave(job_class.state, count_of_job(queued))
        job_class.remove(queued)
        self.drop_if_empty(job_class)

    def replace_job(self, queued: QueuedJob, job: Job, order: tuple[Any, ...]) -> None:
        """The job changed, but not so that it has to move to another line."""
        job_class = queued.require_class
        self._queue_metrics.leave(job_class.state, JobCount(0, queued.pods - len(job.pods)))
        job_class.remove(queued)
        queued.job, queued.order = job, order
        job_class.push(queued)
        self.sub_queues.update(job_class)
        if job_class.refusal_holds and not job_class.concerns(queued):
            self.activate(job_class, "ForceActivate")

    def split_off(
        self, queued: QueuedJob, job_class: JobClass, state: QueueState, until: float, event: str, refused_at: float
    ) -> None:
        """A line for this job alone. Its kind is not concerned, and `job_class`, where it belongs, stays as it is."""
        apart = JobClass(job_class.signature, job_class.profile, job_class.priority, alone=True)
        apart.decision, apart.state, apart.backoff_until = job_class.decision, state, until
        apart.error_backoff, apart.unschedulable_since = state is QueueState.BACKOFF, refused_at
        self.insert(queued, apart, event)

    def drop_if_empty(self, job_class: JobClass) -> None:
        """After a job left: an empty line has no refusal that anybody would share."""
        if job_class.members:
            self.sub_queues.update(job_class)
            return
        self.sub_queues.remove(job_class)
        job_class.state, job_class.refusal_holds, job_class.error_backoff, job_class.after_timeout = (
            QueueState.ACTIVE,
            False,
            False,
            False,
        )
        if not job_class.in_flight and self.is_current(job_class):
            del self._by_kind[job_class.signature.digest]

    # --- lines move -----------------------------------------------------------------------------------------------

    def refuse(self, job_class: JobClass, queued: QueuedJob, decision: Decision, now: float, *, woken: bool) -> None:
        """The first of a line was refused, and with it all. `woken`: something happened meanwhile that may help."""
        if job_class.refusals or queued.attempts > 1:
            self.retry_turns.retry_refused(job_class)
        self.catch_up(job_class, now)
        if job_class.refusal_holds:  # another of them was refused while this one was in flight
            job_class.refused_order = min(job_class.refused_order, queued.order)
            self.insert(queued, job_class, FAILURE)
            return
        self.sub_queues.remove(job_class)
        self._queue_metrics.leave(job_class.state, count_of_class(job_class))
        job_class.push(queued)
        job_class.record_refusal(decision)
        job_class.refused_order = queued.order
        job_class.refusals, job_class.after_timeout = job_class.refusals + 1, False
        job_class.backoff_until = self._policy.ends_at(now, job_class.refusals, queued.pods)
        job_class.unschedulable_since, job_class.refusal_holds = now, not woken
        if job_class.error_backoff:
            job_class.state = QueueState.BACKOFF
        else:
            job_class.state = self._woken(job_class, now) if woken else QueueState.UNSCHEDULABLE
        self._queue_metrics.enter(job_class.state, count_of_class(job_class), FAILURE)
        self.sub_queues.update(job_class)

    def wake(self, job_class: JobClass, event: str, now: float) -> None:
        """What refused the line may no longer hold. If nobody was to blame it still waits for its time."""
        if job_class.state is QueueState.UNSCHEDULABLE:
            self._shift(job_class, self._woken(job_class, now), event)
        elif job_class.refusal_holds:
            job_class.refusal_holds = False
            self.sub_queues.update(job_class)

    def activate(self, job_class: JobClass, event: str) -> None:
        self._shift(job_class, QueueState.ACTIVE, event)

    def postpone(self, job_class: JobClass, until: float) -> None:
        """Not to be tried before then, however idle we are. What refused it need not be what still does."""
        self.sub_queues.remove(job_class)
        self._queue_metrics.leave(job_class.state, count_of_class(job_class))
        job_class.state, job_class.refusal_holds, job_class.error_backoff, job_class.backoff_until = (
            QueueState.BACKOFF,
            False,
            True,
            until,
        )
        self._queue_metrics.enter(QueueState.BACKOFF, count_of_class(job_class), SLOW)
        self.sub_queues.update(job_class)

    def inherit(self, job_class: JobClass, former: JobClass, now: float, *, woken: bool) -> None:
        """A job changed and is of another kind now. If nothing is known of that kind, what is known of the former one
        is the best guess; but it is no refusal that others of the new kind would share."""
        self.catch_up(job_class, now)
        if job_class.members or job_class.in_flight:
            if job_class.state is QueueState.UNSCHEDULABLE and not job_class.refusal_holds:
                self.sub_queues.set_unschedulable_plugins(
                    job_class, {*job_class.unschedulable_plugins, *former.unschedulable_plugins}
                )
            return
        job_class.decision, job_class.unschedulable_plugins, job_class.error_backoff = (
            former.decision,
            former.unschedulable_plugins,
            former.error_backoff,
        )
        job_class.refusals, job_class.backoff_until, job_class.unschedulable_since = (
            former.refusals,
            former.backoff_until,
            now,
        )
        job_class.state = (
            self._woken(job_class, now) if woken and former.state is QueueState.UNSCHEDULABLE else former.state
        )

    def moves(self, job_class: JobClass) -> None:
        """One of its jobs was placed: the next refusal is the first again."""
        job_class.refusals = 0
        self.sub_queues.update(job_class)

    # --- who is alike changes -------------------------------------------------------------------------------------

    def sign_again(self) -> None:
        """Signatures mean something else now. A refusal is about all that were alike when it was made, so every line
        stays where it is; but no job joins it any more, and when its turn comes its jobs find new lines, one by one
        (`SchedulingQueue.pop`). To sign all that wait would take 0.5 s for 10,000, and any tenant can bring this
        about."""
        self._by_kind = {}

    def continues(self, job_class: JobClass, former: JobClass) -> None:
        """The first job of a line of old signatures goes to this one. If it is the first there, its kind has been
        refused as often as before, and as long ago."""
        if not job_class.members and not job_class.in_flight:
            job_class.refusals, job_class.unschedulable_since, job_class.after_timeout = (
                former.refusals,
                former.unschedulable_since,
                former.after_timeout,
            )

    # --- what happens in the cluster ------------------------------------------------------------------------------

    def happened(self, profile: QueueProfile, event: ClusterEvent) -> None:
        """Lines of this profile are to be asked whether it helps them: `ask`."""
        self.sub_queues.refused_by.record(profile, event)

    def ask(self, work_allowance: WorkAllowance, now: float) -> None:
        """Wake the lines that something helps which happened since they were last asked; some now, the others when
        the allowance is renewed."""
        while work_allowance:
            job_class = self.sub_queues.refused_by.next_class()
            if job_class is None:
                return
            work_allowance.spend(self.catch_up(job_class, now))

    def catch_up(self, job_class: JobClass, now: float) -> int:
        """Ask one line about all that happened, which has to be done before anything else befalls it: then it makes
        no difference to its jobs how late it is asked. Returns how many questions that took, at least one."""
        asked, specimens = 0, job_class.signature.sample_pods
        for plugin, event in self.sub_queues.refused_by.events_for(job_class):
            asked += len(specimens)
            if job_class.profile.may_help((plugin,), event, specimens):
                self.wake(job_class, event.label, now)
                self.woken += 1
                break
        self.sub_queues.refused_by.mark_checked(job_class)
        return max(asked, 1)

    @property
    def any_to_ask(self) -> bool:
        return self.sub_queues.refused_by.has_unchecked

    # --- whose turn it is -----------------------------------------------------------------------------------------

    def next_active(self, now: float) -> JobClass | None:
        """The line whose first job is to be tried now."""
        job_class = self.retry_turns.next_active(now)
        if job_class is None and self._policy.pop_from_backoff:
            job_class = self.sub_queues.backoff.first()
            if job_class is not None:
                self.activate(job_class, "PopFromBackoffQ")
        return job_class

    def _woken(self, job_class: JobClass, now: float) -> QueueState:
        at_once = job_class.decision is not None and job_class.decision.code.retry is Retry.ON_EVENT_AT_ONCE
        return QueueState.ACTIVE if at_once or job_class.backoff_until <= now else QueueState.BACKOFF

    def _shift(self, job_class: JobClass, state: QueueState, event: str) -> None:
        """The whole line goes there, and its refusal no longer stands."""
        self.sub_queues.remove(job_class)
        self._queue_metrics.leave(job_class.state, count_of_class(job_class))
        job_class.state, job_class.refusal_holds, job_class.error_backoff = state, False, False
        self._queue_metrics.enter(state, count_of_class(job_class), event)
        self.sub_queues.update(job_class)
