"""Moves job classes between the sub-queues.

                              refuse                          an event that helps, 5 minutes
               ┌───────────────────────────────▶ UNSCHEDULABLE ──────────────┐
               │                                                             ▼
    join ──▶ ACTIVE ◀──────────────────────────────────────── no ── still backing off?
               │  ▲                                                          │ yes
               │  └── the backoff ends, or nothing else is to do ─── BACKOFF ◀┘
               └────────────────────────────────────────────────────────▲
                  refused, but an event came meanwhile that helps; or no plugin refused

A class without waiting jobs is in no sub-queue, and is dropped once none of its jobs is in flight.
"""

from collections.abc import Iterable
from typing import Any, Final

from kubenexus.api.core import Pod
from kubenexus.base.clock import Clock
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Retry
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.job_signature import JobSignature
from kubenexus.queue.object_events import WILDCARD_EVENT
from kubenexus.queue.question_cost import MAX_PRICE, EventCost, QuestionCost, event_cost, question_cost
from kubenexus.queue.queue_metrics import JobCount, QueueMetrics, count_of_class, count_of_job
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueuedJob, QueueState
from kubenexus.queue.retry_turns import RetryTurns
from kubenexus.queue.sub_queues import SubQueues
from kubenexus.queue.work_allowance import WorkAllowance

FAILURE = "ScheduleAttemptFailure"
SLOW = "SlowDecision"
REJECTED = "QueueLimit"
# Units of work (`queue.work_allowance`). A class that is further behind is woken unchecked: an attempt for a pod at
# its limits takes 50 ms, longer than 2,000 units of questions about it.
MAX_BEHIND: Final = 2_000
MAX_VISIT: Final = 100  # for one class, before a class of another share is checked
MAX_AT_ONCE: Final = 500  # for a class that has to be checked for all events at once: 20 ms


class JobClasses:
    def __init__(
        self, policy: BackoffPolicy, queue_metrics: QueueMetrics, clock: Clock, work_allowance: WorkAllowance
    ) -> None:
        self._work_allowance = work_allowance
        self.sub_queues = SubQueues(clock)
        self._policy = policy
        self._queue_metrics = queue_metrics
        self._by_kind: dict[bytes, JobClass] = {}
        self.woken = 0  # classes that events woke, so far
        self.retry_turns = RetryTurns(self.sub_queues)

    def __len__(self) -> int:
        return len(self._by_kind)

    def class_of(self, kind: JobSignature, profile: QueueProfile, priority: int) -> JobClass:
        """Returns the class of this signature; makes it if there is none."""
        job_class = self._by_kind.get(kind.digest)
        if job_class is None or job_class.scope != profile.scope(kind.sample_pods[0]):
            job_class = self._by_kind[kind.digest] = JobClass(kind, profile, priority)
        return job_class

    def is_current(self, job_class: JobClass) -> bool:
        """Whether new jobs of its signature would join this class: it is not for a single job, nor outdated."""
        return self._by_kind.get(job_class.signature.digest) is job_class

    def is_outdated(self, job_class: JobClass) -> bool:
        """Whether signatures have changed since its first job joined."""
        return not job_class.single_job and not (self.is_current(job_class) and job_class.in_scope)

    # --- jobs come and go -----------------------------------------------------------------------------------------

    def add(self, queued: QueuedJob, job_class: JobClass, event: str, now: float) -> None:
        """Adds a job that was not refused itself. It shares the refusal of its class if that holds; else the class
        becomes active."""
        self.catch_up(job_class, now)
        if not job_class.refusal_holds and job_class.state is not QueueState.ACTIVE:
            self.activate(job_class, event)
        self.insert(queued, job_class, event)

    def insert(self, queued: QueuedJob, job_class: JobClass, event: str) -> None:
        """Adds a job to the class, in the sub-queue where the class is."""
        if job_class.refusal_holds and not job_class.concerns(queued):
            self.activate(job_class, event)
        job_class.push(queued)
        self._queue_metrics.enter(job_class.state, count_of_job(queued), event)
        if job_class.head is queued:  # else the order of the class does not change
            self.sub_queues.update(job_class)

    def remove(self, queued: QueuedJob) -> None:
        job_class = queued.require_class
        self._queue_metrics.leave(job_class.state, count_of_job(queued))
        job_class.remove(queued)
        self.drop_if_empty(job_class)

    def replace_job(self, queued: QueuedJob, job: Job, order: tuple[Any, ...]) -> None:
        """Replaces a job that changed and stays in its class."""
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
        """Makes a class for this job alone. `job_class`, the class of its signature, is not changed."""
        apart = JobClass(job_class.signature, job_class.profile, job_class.priority, alone=True)
        apart.decision, apart.state, apart.backoff_until = job_class.decision, state, until
        apart.error_backoff, apart.unschedulable_since = state is QueueState.BACKOFF, refused_at
        self.insert(queued, apart, event)

    def drop_if_empty(self, job_class: JobClass) -> None:
        """Drops or resets the class after a job left: an empty class has no refusal to share."""
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

    # --- classes move ---------------------------------------------------------------------------------------------

    def refuse(self, job_class: JobClass, queued: QueuedJob, decision: Decision, now: float, *, woken: bool) -> None:
        """Puts back the refused job and parks its class. `woken`: an event came during the attempt that may help."""
        if job_class.refusals or queued.attempts > 1:
            self.retry_turns.retry_refused(job_class)
        self.sub_queues.retries.charge(job_class, queued.pods, now)
        self.catch_up(job_class, now)
        if job_class.refusal_holds:  # another job was refused while this one was in flight
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

    def reject(self, job_class: JobClass, decision: Decision, now: float) -> None:
        """Lets an active class wait for a limit of its queue. It was not tried, so its backoff does not grow."""
        self.sub_queues.remove(job_class)
        self._queue_metrics.leave(job_class.state, count_of_class(job_class))
        job_class.decision, job_class.unschedulable_plugins = decision, decision.diagnosis.refused_by
        job_class.state, job_class.unschedulable_since = QueueState.UNSCHEDULABLE, now
        job_class.refusal_holds, job_class.error_backoff, job_class.after_timeout = True, False, False
        self._queue_metrics.enter(job_class.state, count_of_class(job_class), REJECTED)
        self.sub_queues.update(job_class)

    def wake(self, job_class: JobClass, event: str, now: float) -> None:
        """Ends the refusal of the class. In backoff after an error the class stays there until its time."""
        if job_class.state is QueueState.UNSCHEDULABLE:
            self._shift(job_class, self._woken(job_class, now), event)
        elif job_class.refusal_holds:
            job_class.refusal_holds = False
            self.sub_queues.update(job_class)

    def activate(self, job_class: JobClass, event: str) -> None:
        self._shift(job_class, QueueState.ACTIVE, event)

    def postpone(self, job_class: JobClass, until: float) -> None:
        """Puts the class into backoff until then, also while the queue is idle. Its refusal no longer holds."""
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
        """Gives a new class the decision and backoff of the class that its first job came from, which is the best
        guess. It is no refusal that other jobs of the new signature would share."""
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
        """Resets the backoff after one of its jobs was placed."""
        job_class.refusals = 0
        self.sub_queues.update(job_class)

    # --- signatures change ----------------------------------------------------------------------------------------

    def sign_again(self) -> None:
        """Makes all classes outdated. A refusal is about all jobs that were alike when it was made, so each class stays
        where it is. No job joins it any more, and `SchedulingQueue.pop` moves its jobs to new classes one by one. To
        sign 10,000 waiting jobs at once would take 0.5 s, and any tenant can cause it."""
        self._by_kind = {}

    def continues(self, job_class: JobClass, former: JobClass) -> None:
        """Copies refusals and times from an outdated class whose first job moves here, if this class is empty."""
        if not job_class.members and not job_class.in_flight:
            job_class.refusals, job_class.unschedulable_since, job_class.after_timeout = (
                former.refusals,
                former.unschedulable_since,
                former.after_timeout,
            )

    # --- events ---------------------------------------------------------------------------------------------------

    def happened(self, profile: QueueProfile, event: ClusterEvent, cost: EventCost) -> None:
        """Records an event; `ask` checks the classes of this profile for it later."""
        self.sub_queues.refused_by.record(profile, event, cost)

    def ask(self, work_allowance: WorkAllowance, now: float) -> None:
        """Checks classes for the events that they have not been checked for, and wakes those that one may help.

        Ends when the allowance is spent, also in the middle of the events of one class. The next call goes on there.
        """
        while work_allowance:
            job_class = self.sub_queues.refused_by.next_class()
            if job_class is None:
                return
            behind = self.sub_queues.refused_by.unchecked(job_class) * job_class.question_cost.each
            if behind > MAX_BEHIND:
                self._wake_unasked(job_class, now)
            else:
                self._ask_some(job_class, min(MAX_VISIT, work_allowance.left), now)

    def catch_up(self, job_class: JobClass, now: float) -> None:
        """Checks a class for all events. Called before anything else is done with the class: then it makes no
        difference to its jobs how late it is checked. If that is too much work the class is woken unchecked."""
        if not job_class.waits_for_event:
            return
        too_much = self._work_allowance.overdrawn and self.sub_queues.refused_by.unchecked(job_class)
        if too_much or not self._ask_some(job_class, MAX_AT_ONCE, now):
            self._wake_unasked(job_class, now)

    def _ask_some(self, job_class: JobClass, most: int, now: float) -> bool:
        """Checks events, oldest first, until one helps or so many units are spent. Returns False if some are left. At
        least one event is checked."""
        refused_by, pods, cost = self.sub_queues.refused_by, job_class.signature.sample_pods, job_class.question_cost
        spent, done = cost.again if job_class.was_asked else cost.first, job_class.last_event
        for number, plugin, event, own in refused_by.events_for(job_class):
            if spent > most and number > done > job_class.last_event:
                self._work_allowance.spend(spent)
                refused_by.mark_partly(job_class, done)
                return False
            spent, done = spent + cost.each + own.price, number
            job_class.was_asked = True
            too_many = cost.each > MAX_PRICE  # about one event: the class is woken instead
            if too_many or job_class.profile.may_help((plugin,), event, pods):
                self._work_allowance.spend(1 if too_many else spent)
                self._wake_for(job_class, event.label, now)
                return True
        self._work_allowance.spend(max(spent, 1))
        refused_by.mark_checked(job_class)
        return True

    def _wake_unasked(self, job_class: JobClass, now: float) -> None:
        self._work_allowance.spend()
        self._wake_for(job_class, WILDCARD_EVENT.label, now)

    def _wake_for(self, job_class: JobClass, event: str, now: float) -> None:
        self.wake(job_class, event, now)
        self.woken += 1
        self.sub_queues.refused_by.mark_checked(job_class)

    def may_help(
        self, job_class: JobClass, plugins: tuple[str, ...], events: Iterable[ClusterEvent], pods: tuple[Pod, ...]
    ) -> bool:
        """Whether one of the events may help one of these pods, which these plugins refused. True without calling hints
        if these would be too much work."""
        profile, spent = job_class.profile, 0
        cost: QuestionCost | None = None  # counted for the first event that concerns the plugins: mostly there is none
        most = 0 if self._work_allowance.overdrawn else MAX_AT_ONCE
        for event in events:
            if not profile.concerns(plugins, event):
                continue
            if cost is None:
                sampled = pods is job_class.signature.sample_pods
                cost = job_class.question_cost if sampled else question_cost(pods)
            price = cost.each + event_cost(event).price + (0 if spent else cost.again)
            if spent + price > most:
                self._work_allowance.spend(spent + 1)
                return True
            spent += price
            if profile.may_help(plugins, event, pods):
                self._work_allowance.spend(spent)
                return True
        self._work_allowance.spend(spent)
        return False

    @property
    def any_to_ask(self) -> bool:
        return self.sub_queues.refused_by.has_unchecked

    # --- the next class -------------------------------------------------------------------------------------------

    def next_active(self, now: float) -> JobClass | None:
        """Returns the class whose first job is to be tried now, or None."""
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
        """Moves the class to another sub-queue and ends its refusal."""
        self.sub_queues.remove(job_class)
        self._queue_metrics.leave(job_class.state, count_of_class(job_class))
        job_class.state, job_class.refusal_holds, job_class.error_backoff = state, False, False
        self._queue_metrics.enter(state, count_of_class(job_class), event)
        self.sub_queues.update(job_class)
