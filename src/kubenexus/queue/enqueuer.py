"""Puts jobs into the queue, and moves jobs that change while they wait.

A new job passes the gates and then joins the job class of its signature. A job that changes may have to move to another
class. Whether it is also tried again depends on the hints of the plugins that refused it, as in kube-scheduler.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.gangs.gang_jobs import COSCHEDULING
from kubenexus.queue.gated_jobs import GateBucket, GatedJobs
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.job_classes import JobClasses
from kubenexus.queue.job_signature import JobSignature
from kubenexus.queue.member_signatures import MemberSignatures
from kubenexus.queue.object_events import pod_changed
from kubenexus.queue.postponed_jobs import PostponedJobs
from kubenexus.queue.question_cost import MAX_PRICE, question_cost
from kubenexus.queue.queue_metrics import JobCount, QueueMetrics, count_of_job
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueuedJob, QueueState
from kubenexus.queue.work_allowance import WorkAllowance

FORCED = "ForceActivate"
OTHERS = ""  # the key of the rules for jobs of all other profiles
UPDATED = EventResource.TARGET_POD.value + ActionType.UPDATE.label
# A gang has other members, or another minimum or topology: the refusal was about another job.
REGROUPED = ClusterEvent(EventResource.ANYTHING, ActionType.ALL, name="PodGroupUpdate")
# The namespace of a job, or the queue that its pods name, has another tier: for plugins that refuse by tier.
TENANT_CHANGED = ClusterEvent(EventResource.NAMESPACE, ActionType.UPDATE)


class Enqueuer:
    """PreEnqueue, and the way of a job to its gate or its job class."""

    def __init__(
        self,
        profile: Mapping[str, QueueProfile],
        job_classes: JobClasses,
        queue_metrics: QueueMetrics,
        postponed: PostponedJobs,
    ) -> None:
        self._profile = profile
        self._job_classes = job_classes
        self._queue_metrics = queue_metrics
        self._postponed = postponed
        self.gated_jobs = GatedJobs()
        self._to_ask: dict[QueuedJob, str] = {}
        # All jobs of these buckets whose gates were last called before this number; with the event.
        self._buckets_to_ask: dict[GateBucket, tuple[int, str]] = {}

    def profiles(self) -> list[QueueProfile]:
        return list(dict.fromkeys(self._profile.values()))

    def rules(self, job: Job) -> QueueProfile:
        found = self._profile.get(job.profile)
        return self._profile[OTHERS] if found is None else found

    def enqueue(self, queued: QueuedJob, event: str, now: float) -> QueueState:
        """Puts a job that is in no sub-queue among the gated jobs, or into its job class."""
        job = queued.job
        profile, priority = self.rules(job), job.priority
        queued.changed = queued.activate_requested = False
        queued.order = self.order(queued, job)
        verdict = self.pre_enqueue(queued, job)
        if verdict is not None:
            self.add_gated(queued, verdict, event, now)
            return QueueState.GATED
        job_class = self._job_classes.class_of(self._kind(queued, job), profile, priority)
        self._job_classes.add(queued, job_class, event, now)
        return job_class.state

    def sign_again(self, queued: QueuedJob, now: float) -> None:
        """Moves the first job of an active class with an outdated signature to the class of its present signature."""
        verdict = self.pre_enqueue(queued, queued.job)
        if verdict is not None:
            self._job_classes.remove(queued)
            self.add_gated(queued, verdict, FORCED, now)
            return
        job_class = self.class_of(queued)
        self._job_classes.continues(job_class, queued.require_class)
        self._job_classes.remove(queued)
        queued.order = self.order(queued, queued.job)
        self._job_classes.add(queued, job_class, FORCED, now)

    def pre_enqueue(self, queued: QueuedJob, job: Job) -> Verdict | None:
        """Returns why the job may not be tried: its hold, or the verdict of a PreEnqueue plugin; None if it may."""
        return queued.hold or self.rules(job).pre_enqueue(job)

    def class_of(self, queued: QueuedJob) -> JobClass:
        """Returns the job class of the job's signature; makes it if there is none."""
        return self._job_classes.class_of(self._kind(queued, queued.job), self.rules(queued.job), queued.job.priority)

    def stands_with_others(self, queued: QueuedJob, job_class: JobClass) -> bool:
        """Whether the job has to move to a class for postponed jobs, or for its namespace alone, before its attempt."""
        return (
            not job_class.single_job
            and self._postponed.kind(job_class.signature, queued).digest != job_class.signature.digest
        )

    def _kind(self, queued: QueuedJob, job: Job) -> JobSignature:
        """Returns the signature of the job. Signatures of the members of a gang are kept with the job."""
        if len(job.pods) == 1:
            queued.members = None
        elif queued.members is None:
            queued.members = MemberSignatures()
        return self._postponed.kind(self.rules(job).sign_job(job, queued.members), queued)

    def is_same_class(self, queued: QueuedJob, job_class: JobClass) -> bool:
        """Whether the job still has the signature of the class."""
        return (
            self._job_classes.is_current(job_class)
            and self._kind(queued, queued.job).digest == job_class.signature.digest
        )

    def add_gated(self, queued: QueuedJob, verdict: Verdict, event: str, now: float) -> None:
        queued.job_class = None
        self.gated_jobs.add(queued, self.rules(queued.job), verdict, now)
        self._queue_metrics.enter(QueueState.GATED, count_of_job(queued), event)

    def remove(self, queued: QueuedJob) -> None:
        """Takes the job out of its sub-queue."""
        if queued.gate_verdict is not None:
            self.gated_jobs.remove(queued)
            self._queue_metrics.leave(QueueState.GATED, count_of_job(queued))
        elif queued.job_class is not None:  # else an error ended its way in
            self._job_classes.remove(queued)

    def recheck_gate(self, queued: QueuedJob, event: str, now: float) -> None:
        """Calls the gates of a gated job again. It leaves the gated jobs, or stays there with the latest verdict."""
        verdict = self.pre_enqueue(queued, queued.job)
        if verdict is None:
            # When a gang was complete is known from the timestamps of its members, also after a restart. When a gate
            # opened is not.
            if queued.gate_verdict is not None and queued.gate_verdict.plugin != COSCHEDULING:
                queued.may_be_tried_from(math.inf, now)
            self.remove(queued)
            self.enqueue(queued, event, now)
        else:
            self.gated_jobs.add(queued, self.rules(queued.job), verdict, now)

    def happened(self, profile: QueueProfile, event: ClusterEvent, work_allowance: WorkAllowance) -> None:
        """Notes the gated jobs whose gates this event may open; `ask` calls those gates again.

        Hints are called as far as the allowance goes. After that all jobs of the bucket are noted, without a question
        and in one step, as for an event for all.
        """
        if event.backoffs:  # a backoff keeps no job behind a gate
            return
        plugins = None if event.is_wildcard else profile.plugins_for(event)
        for bucket in self.gated_jobs.buckets(profile, plugins):
            if event.is_wildcard or bucket in self._buckets_to_ask or not self._hinted(bucket, event, work_allowance):
                label = self._buckets_to_ask.get(bucket, (0, event.label))[1]
                self._buckets_to_ask[bucket] = (self.gated_jobs.next_number(), label)

    def _hinted(self, bucket: GateBucket, event: ClusterEvent, work_allowance: WorkAllowance) -> bool:
        """Notes the jobs of the bucket that the event may help, by their hints. Returns False if that is too much work:
        some jobs were not looked at."""
        profile, plugin = bucket
        for queued in self.gated_jobs.jobs(bucket):
            if not work_allowance:
                return False
            if queued in self._to_ask:
                work_allowance.spend()
                continue
            cost = question_cost(queued.job.pods)
            work_allowance.spend(cost.first + cost.each)
            if cost.first + cost.each > MAX_PRICE or profile.may_help((plugin,), event, queued.job.pods):
                self._to_ask[queued] = event.label
        return True

    def ask(self, work_allowance: WorkAllowance, now: float) -> None:
        """Calls gates again that an event may have opened; some now, the others when the allowance is renewed."""
        while work_allowance and self._to_ask:
            queued = next(iter(self._to_ask))
            event = self._to_ask.pop(queued)
            if queued.gate_verdict is not None:
                work_allowance.spend(queued.pods)
                self.recheck_gate(queued, event, now)
        while work_allowance and self._buckets_to_ask:
            bucket, (number, event) = next(iter(self._buckets_to_ask.items()))
            first = self.gated_jobs.first_before(bucket, number)
            if first is None:
                del self._buckets_to_ask[bucket]
            else:
                work_allowance.spend(first.pods)
                self.recheck_gate(first, event, now)

    @property
    def any_to_ask(self) -> bool:
        return bool(self._to_ask or self._buckets_to_ask)

    # --- a job changes --------------------------------------------------------------------------------------------

    def update(self, queued: QueuedJob, job: Job, now: float) -> QueueState:
        if queued.attempt_id:
            queued.job, queued.changed = job, True
        elif queued.gate_verdict is not None:
            event = next((each.label for each in _events(queued.job, job)), UPDATED)
            self._queue_metrics.leave(QueueState.GATED, JobCount(0, queued.pods - len(job.pods)))
            queued.job = job
            self.recheck_gate(queued, event, now)
        else:
            self._change_in_line(queued, job, _events(queued.job, job), now)
        return queued.state

    def tenant_changed(self, queued: QueuedJob, now: float) -> None:
        """Signs a job again whose tenant may have another tier. A gate does not depend on it."""
        queued.members = None
        if queued.attempt_id:
            queued.changed = True
        elif queued.gate_verdict is None:
            self._change_in_line(queued, queued.job, (TENANT_CHANGED,), now)

    def _change_in_line(self, queued: QueuedJob, job: Job, events: Iterable[ClusterEvent], now: float) -> None:
        job_class, verdict = queued.require_class, self.pre_enqueue(queued, job)
        self._job_classes.catch_up(job_class, now)
        helpful = next(
            (
                e
                for e in events
                if self._job_classes.may_help(job_class, job_class.unschedulable_plugins, (e,), job.pods)
            ),
            None,
        )
        kind = self._kind(queued, job)
        if verdict is not None:
            self._job_classes.remove(queued)
            queued.job = job
            self.add_gated(queued, verdict, UPDATED, now)
        elif not job_class.single_job and (
            kind.digest != job_class.signature.digest or not self._job_classes.is_current(job_class)
        ):
            self._move(queued, job, kind, helpful, now)
        else:
            self._job_classes.replace_job(queued, job, self.order(queued, job))
            if helpful is not None and job_class.state is QueueState.UNSCHEDULABLE:
                self._job_classes.remove(queued)
                state = QueueState.BACKOFF if now < job_class.backoff_until else QueueState.ACTIVE
                self._job_classes.split_off(
                    queued, job_class, state, job_class.backoff_until, helpful.label, job_class.unschedulable_since
                )

    def _move(self, queued: QueuedJob, job: Job, kind: JobSignature, helpful: ClusterEvent | None, now: float) -> None:
        """Moves the job to the class of its new signature, with the refusal and the backoff of the former class."""
        former, job_class = queued.require_class, self._job_classes.class_of(kind, self.rules(job), job.priority)
        self._job_classes.inherit(job_class, former, now, woken=helpful is not None)
        job_class.in_flight += 1  # not to be dropped before the job is in it
        active = former.state is QueueState.ACTIVE or (
            helpful is not None and job_class.state is QueueState.UNSCHEDULABLE
        )
        self._job_classes.remove(queued)
        job_class.in_flight -= 1
        queued.job, queued.order = job, self.order(queued, job)
        event = UPDATED if helpful is None else helpful.label
        if active:
            self._job_classes.add(queued, job_class, event, now)
        else:
            self._job_classes.insert(queued, job_class, event)

    def order(self, queued: QueuedJob, job: Job) -> tuple[Any, ...]:
        """Returns the sort key of the job: by the profile's rule, then by the order in which jobs were added. Sets its
        boost."""
        rules = self.rules(job)
        queued.boost = rules.boost(job)
        return (*rules.order(job.priority, queued.added_at, queued.boost), queued.number)


def _events(old: Job, new: Job) -> Iterator[ClusterEvent]:
    """Yields an event for each pod of the job that changed, is new or is gone."""
    if (old.minimum, old.topology, old.bound_nodes) != (new.minimum, new.topology, new.bound_nodes):
        yield REGROUPED
    before = {pod.metadata.uid: pod for pod in old.pods}
    for pod in new.pods:
        known = before.pop(pod.metadata.uid, None)
        if known is pod:
            continue
        if known is None:
            yield REGROUPED
            yield ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD, new=pod)
        elif known != pod:
            yield from pod_changed(known, pod, target=True)
    for pod in before.values():
        yield ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.DELETE, old=pod)
