"""The work of the queue that is due at a certain time, as far as the allowance of this turn of the loop goes."""

from kubenexus.base.changed_groups import ChangedGroups
from kubenexus.base.clock import Clock
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.enqueuer import Enqueuer
from kubenexus.queue.fair.fair_order import FairOrder
from kubenexus.queue.job_classes import JobClasses
from kubenexus.queue.queued_job import QueuedJob, QueueState
from kubenexus.queue.work_allowance import WorkAllowance

FLUSHED = "UnschedulableTimeout"
# Jobs whose tenant changed, in one turn of the loop: 10 ms. Some tenants may change their queues as often as they like.
MAX_SIGNED = 100


class DueWork:
    """Ends backoffs, raises priorities by age, wakes what has waited for five minutes, signs jobs again whose tenant
    changed, and checks for events."""

    def __init__(
        self,
        job_classes: JobClasses,
        enqueuer: Enqueuer,
        policy: BackoffPolicy,
        clock: Clock,
        work_allowance: WorkAllowance,
        namespace_jobs: ChangedGroups[QueuedJob],
        *,
        fair: FairOrder,
    ) -> None:
        self._fair = fair
        self._namespace_jobs = namespace_jobs
        self._job_classes = job_classes
        self._enqueuer = enqueuer
        self._policy = policy
        self._clock = clock
        self._work_allowance = work_allowance

    def run(self) -> None:
        """Does what is due. What has its time comes before events: these may never end."""
        self._fair.settle(self._clock.now())
        self._job_classes.sub_queues.apply_aging(self._work_allowance)
        now = self._clock.now()
        for heap in (self._job_classes.sub_queues.backoff, self._job_classes.sub_queues.error_backoff):
            while self._work_allowance:
                job_class = heap.first()
                if job_class is None or job_class.backoff_until > now:
                    break
                self._work_allowance.spend()
                self._job_classes.activate(job_class, "BackoffComplete")
        self.flush()
        if self._namespace_jobs:
            self.apply_tenants()
        self.ask()

    def apply_tenants(self) -> None:
        """Signs and sorts jobs again whose tenant has changed, and wakes those that this may help."""
        now = self._clock.now()
        for _ in range(MAX_SIGNED):
            queued = self._namespace_jobs.next() if self._work_allowance else None
            if queued is None:
                return
            self._work_allowance.spend(1 + queued.pods)
            self._enqueuer.tenant_changed(queued, now)

    def ask(self) -> None:
        """Checks whether events help waiting jobs, and calls gates again that one may have opened."""
        now = self._clock.now()
        self._job_classes.ask(self._work_allowance, now)
        self._enqueuer.ask(self._work_allowance, now)

    def flush(self) -> None:
        """Wakes job classes that were refused five minutes ago, in case a hint was wrong. Calls gates that often."""
        now = self._clock.now()
        while self._work_allowance:
            job_class = self._job_classes.sub_queues.oldest_unschedulable
            if job_class is None or job_class.unschedulable_since + self._policy.flush_after > now:
                break
            self._job_classes.catch_up(job_class, now)
            if job_class.state is QueueState.UNSCHEDULABLE:
                self._job_classes.wake(job_class, FLUSHED, now)
                job_class.after_timeout = True
        while self._work_allowance:
            queued = self._enqueuer.gated_jobs.first
            if queued is None or queued.gate_checked_at + self._policy.flush_after > now:
                break
            self._work_allowance.spend(queued.pods)
            self._enqueuer.recheck_gate(queued, FLUSHED, now)

    def next_due(self) -> float | None:
        """Returns when `run` will have something to do; None: not before an event."""
        sub_queues, flush = self._job_classes.sub_queues, self._policy.flush_after
        heaps = (sub_queues.backoff.first(), sub_queues.error_backoff.first())
        times = [job_class.backoff_until for job_class in heaps if job_class is not None]
        oldest, gated = sub_queues.oldest_unschedulable, self._enqueuer.gated_jobs.first
        if oldest is not None:
            times.append(oldest.unschedulable_since + flush)
        if gated is not None:
            times.append(gated.gate_checked_at + flush)
        asks = self._job_classes.any_to_ask or self._enqueuer.any_to_ask
        if asks or self._namespace_jobs or self._fair.has_work:
            times.append(self._clock.now())
        return min(times, default=None)
