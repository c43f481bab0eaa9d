"""Scheduling attempts: from when a job is taken out of its job class until it is placed or back in the queue.

A job in flight is counted by its job class (`JobClass.in_flight`), so the class is kept. The job is not among the
members of the class: when the class moves to another sub-queue the job does not.
"""

import msgspec

from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.queue.backoff_policy import MAX_COUNT, BackoffPolicy
from kubenexus.queue.enqueuer import Enqueuer
from kubenexus.queue.fair.fair_order import FairOrder
from kubenexus.queue.in_flight_events import InFlightEvents
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.job_classes import FAILURE, JobClasses
from kubenexus.queue.queue_profile import ANY_PLUGIN
from kubenexus.queue.queued_job import QueuedJob, QueueState, SchedulingAttempt


class Attempts:
    def __init__(self, job_classes: JobClasses, enqueuer: Enqueuer, policy: BackoffPolicy, fair: FairOrder) -> None:
        self.in_flight_events = InFlightEvents()
        self._fair = fair
        self._job_classes = job_classes
        self._enqueuer = enqueuer
        self._policy = policy

    def begin(self, queued: QueuedJob, job_class: JobClass, now: float) -> SchedulingAttempt | None:
        """Takes the first job out of its class and starts its attempt. Returns None if a limit of its queue is reached,
        or a gate is shut by now: the job waits for that, so a caller that tries the next job comes to an end."""
        if self._fair.is_active and self._fair.rejects(job_class, queued, now):
            return None
        flushed = job_class.after_timeout
        home = self._enqueuer.class_of(queued) if job_class.single_job else job_class
        home.in_flight += 1
        self._job_classes.remove(queued)
        verdict = self._enqueuer.pre_enqueue(queued, queued.job)
        if verdict is not None:  # the gate was shut after the job had passed it
            home.in_flight -= 1
            self._job_classes.drop_if_empty(home)
            self._enqueuer.add_gated(queued, verdict, FAILURE, now)
            return None
        queued.job_class, queued.attempt_id = home, self.in_flight_events.start()
        queued.attempts += 1
        self._fair.turn_taken(job_class, queued.job.namespace)
        return SchedulingAttempt(queued.attempt_id, queued.job, queued.attempts, queued.added_at, flushed)

    def end(self, queued: QueuedJob, *, returns: bool = False) -> JobClass:
        """Ends the attempt; the job is in no sub-queue yet. Returns the job class that it came from. `returns`: the
        caller puts the job back there, so the class is kept even if it is empty."""
        self.in_flight_events.finish(queued.attempt_id)
        job_class, queued.job_class, queued.attempt_id = queued.require_class, None, 0
        job_class.in_flight -= 1
        if not returns and not job_class.members:
            self._job_classes.drop_if_empty(job_class)
        return job_class

    def succeeded(self, queued: QueuedJob, decision: Decision | None, now: float) -> QueueState:
        """Ends an attempt that placed the job. Members without a node stay in the queue, as a job."""
        rest = _rest(queued.job, decision)
        job_class = self.end(queued)
        if decision is not None and decision.placed:
            self._job_classes.moves(job_class)
        if rest is None:
            return QueueState.GONE
        queued.job = rest
        return self._enqueuer.enqueue(queued, FAILURE, now)

    def refused(self, queued: QueuedJob, decision: Decision, now: float) -> QueueState:
        """Puts a refused job back. Its class is refused with it, unless an event since the start may help."""
        job_class, events = queued.require_class, self.in_flight_events.events_since(queued.attempt_id)
        outdated = not self._job_classes.is_current(job_class) or not job_class.covers(queued)
        if (queued.changed or outdated) and not self._enqueuer.is_same_class(queued, job_class):
            self.end(queued)
            return self._enqueuer.enqueue(queued, FAILURE, now)  # its signature changed: the decision is not about it
        woken = queued.activate_requested or events is None or self._helped(job_class, decision, events)
        queued.bind_failures, queued.changed, queued.activate_requested = 0, False, False
        self._job_classes.refuse(self.end(queued, returns=True), queued, decision, now, woken=woken)
        if self._fair.is_active:
            self._fair.refused(queued.require_class, queued, decision, now)
        return queued.state

    def bind_failed(self, queued: QueuedJob, now: float, *, longest: bool = False) -> QueueState:
        """Puts the job into backoff by itself, into the longest one if the caller says so. The other jobs of its class
        are not affected."""
        queued.bind_failures += 1
        if queued.attempts > 1:
            self._job_classes.retry_turns.retry_refused(queued.require_class)
        self._job_classes.sub_queues.retries.charge(queued.require_class, queued.pods, now)
        queued.order = self._enqueuer.order(queued, queued.job)
        queued.changed = queued.activate_requested = False
        until = self._policy.ends_at(now, MAX_COUNT if longest else queued.bind_failures, queued.pods)
        self._job_classes.split_off(queued, self.end(queued), QueueState.BACKOFF, until, FAILURE, now)
        return queued.state

    def end_wait(self, queued: QueuedJob, now: float) -> None:
        """Ends the longest backoff of a job: its own one begins."""
        job_class = queued.require_class
        self._job_classes.remove(queued)
        until = self._policy.ends_at(now, queued.bind_failures, queued.pods)
        self._job_classes.split_off(queued, job_class, QueueState.BACKOFF, until, FAILURE, now)

    def _helped(self, job_class: JobClass, decision: Decision, events: list[ClusterEvent]) -> bool:
        """Whether one of these events, which came during the attempt, may change the decision."""
        plugins = job_class.profile.with_hints(decision.diagnosis.refused_by)
        events = [e for e in events if not e.backoffs or not decision.backoffs.isdisjoint(e.backoffs)]
        return plugins != (ANY_PLUGIN,) and self._job_classes.may_help(
            job_class, plugins, events, job_class.signature.sample_pods
        )


def _rest(job: Job, decision: Decision | None) -> Job | None:
    """Returns the members without a node as a job; its minimum is 1, since the gang has reached its own."""
    if decision is None or not decision.placed:
        return None
    seated = {placement.uid for placement in decision.placements}
    left = tuple(pod for pod in job.pods if pod.metadata.uid not in seated)
    return msgspec.structs.replace(job, pods=left, minimum=1) if left else None
