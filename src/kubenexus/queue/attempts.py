"""A job's turn: from the moment it is taken out of its line until it is placed, or stands somewhere again.

While it is in flight it belongs to its line (`line.flying`), which is not forgotten, but it is not in it: what befalls
the line meanwhile does not move it.
"""

import msgspec

from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.enqueuer import Enqueuer
from kubenexus.queue.in_flight_events import InFlightEvents
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.job_classes import FAILURE, JobClasses
from kubenexus.queue.queue_profile import ANY_PLUGIN
from kubenexus.queue.queued_job import QueuedJob, QueueState


class Attempts:
    def __init__(self, job_classes: JobClasses, enqueuer: Enqueuer, policy: BackoffPolicy) -> None:
        self.in_flight_events = InFlightEvents()
        self._job_classes = job_classes
        self._enqueuer = enqueuer
        self._policy = policy

    def begin(self, queued: QueuedJob, job_class: JobClass, now: float) -> bool:
        """Whether the head of a line takes off. If not it stands elsewhere afterwards, so looking for one that does
        comes to an end."""
        home = self._enqueuer.class_of(queued) if job_class.single_job else job_class
        home.in_flight += 1
        self._job_classes.remove(queued)
        verdict = self._enqueuer.pre_enqueue(queued, queued.job)
        if verdict is not None:  # it was let in, but its gate was shut behind it
            home.in_flight -= 1
            self._job_classes.drop_if_empty(home)
            self._enqueuer.add_gated(queued, verdict, FAILURE, now)
            return False
        queued.job_class, queued.attempt_id = home, self.in_flight_events.start()
        queued.attempts += 1
        return True

    def end(self, queued: QueuedJob, *, returns: bool = False) -> JobClass:
        """It has landed, and stands nowhere yet. Returns the line it took off from; unless the job returns there, the
        line may be forgotten."""
        self.in_flight_events.finish(queued.attempt_id)
        job_class, queued.job_class, queued.attempt_id = queued.require_class, None, 0
        job_class.in_flight -= 1
        if not returns and not job_class.members:
            self._job_classes.drop_if_empty(job_class)
        return job_class

    def succeeded(self, queued: QueuedJob, decision: Decision | None, now: float) -> QueueState:
        """The job leaves; members that found no place wait on, as a job."""
        rest = _rest(queued.job, decision)
        job_class = self.end(queued)
        if decision is not None and decision.placed:
            self._job_classes.moves(job_class)
        if rest is None:
            return QueueState.GONE
        queued.job = rest
        return self._enqueuer.enqueue(queued, FAILURE, now)

    def refused(self, queued: QueuedJob, decision: Decision, now: float) -> QueueState:
        """The job goes back, and its line is refused with it, unless something happened that may help."""
        job_class, events = queued.require_class, self.in_flight_events.events_since(queued.attempt_id)
        if (queued.changed or not self._job_classes.is_current(job_class)) and not self._enqueuer.is_same_class(
            queued, job_class
        ):
            self.end(queued)
            return self._enqueuer.enqueue(queued, FAILURE, now)  # of another kind by now: the decision is not about it
        woken = queued.activate_requested or events is None or self._helped(job_class, decision, events)
        queued.bind_failures, queued.changed, queued.activate_requested = 0, False, False
        self._job_classes.refuse(self.end(queued, returns=True), queued, decision, now, woken=woken)
        return queued.state

    def bind_failed(self, queued: QueuedJob, now: float) -> QueueState:
        """The job is tried again after a backoff of its own; those like it have nothing to do with it."""
        queued.bind_failures += 1
        if queued.attempts > 1:
            self._job_classes.retry_turns.retry_refused(queued.require_class)
        queued.order = self._enqueuer.order(queued, queued.job)
        queued.changed = queued.activate_requested = False
        until = self._policy.ends_at(now, queued.bind_failures, queued.pods)
        self._job_classes.split_off(queued, self.end(queued), QueueState.BACKOFF, until, FAILURE, now)
        return queued.state

    def _helped(self, job_class: JobClass, decision: Decision, events: list[ClusterEvent]) -> bool:
        """Whether anything that happened meanwhile may change the decision."""
        plugins = job_class.profile.with_hints(decision.diagnosis.refused_by)
        return plugins != (ANY_PLUGIN,) and self._job_classes.may_help(
            job_class, plugins, events, job_class.signature.sample_pods
        )


def _rest(job: Job, decision: Decision | None) -> Job | None:
    """The members that a placed job left behind. Its minimum is reached, so any of them may follow."""
    if decision is None or not decision.placed:
        return None
    seated = {placement.uid for placement in decision.placements}
    left = tuple(pod for pod in job.pods if pod.metadata.uid not in seated)
    return msgspec.structs.replace(job, pods=left, minimum=1) if left else None
