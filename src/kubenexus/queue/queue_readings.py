"""What can be read of the scheduling queue: states of jobs, and counts for metrics."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.attempts import Attempts
from kubenexus.queue.enqueuer import Enqueuer
from kubenexus.queue.job_classes import JobClasses
from kubenexus.queue.queue_metrics import (
    IncomingCount,
    PendingCount,
    QueueMetrics,
    UnschedulableCount,
    unschedulable_counts,
)
from kubenexus.queue.queued_job import QueuedJob, QueueState


class QueueReadings:
    """The part of `SchedulingQueue` that changes nothing."""

    _queued_jobs: dict[str, QueuedJob]
    _queue_metrics: QueueMetrics
    _job_classes: JobClasses
    _enqueuer: Enqueuer
    _attempts: Attempts

    def __len__(self) -> int:
        """The number of jobs, with those in flight."""
        return len(self._queued_jobs)

    def __contains__(self, key: str) -> bool:
        return key in self._queued_jobs

    def jobs(self) -> Iterable[QueuedJob]:
        """Returns all jobs, with those in flight. The caller must not change them."""
        return self._queued_jobs.values()

    def in_order(self, now: float) -> list[QueuedJob]:
        """Returns the jobs that may be tried, the first one first: by effective priority, boost and age. Shares of
        queues do not count. Those that are gated come last."""
        tried, others = list[tuple[tuple[Any, ...], QueuedJob]](), list[QueuedJob]()
        for queued in self._queued_jobs.values():
            if queued.job_class is None or queued.gate_verdict is not None:
                others.append(queued)
            else:
                tried.append((queued.job_class.order_of(queued, now), queued))
        return [queued for _, queued in sorted(tried, key=lambda each: each[0])] + others

    def state(self, key: str) -> QueueState:
        queued = self._queued_jobs.get(key)
        return QueueState.GONE if queued is None else queued.state

    def job(self, key: str) -> Job | None:
        """Returns the job as it is now; an attempt has it as it was when it was popped."""
        queued = self._queued_jobs.get(key)
        return None if queued is None else queued.job

    def attempts(self, key: str) -> int:
        queued = self._queued_jobs.get(key)
        return 0 if queued is None else queued.attempts

    def gate_verdict(self, key: str) -> Verdict | None:
        """Returns why the job is gated, or None."""
        queued = self._queued_jobs.get(key)
        return None if queued is None else queued.gate_verdict

    def hold(self, key: str) -> Verdict | None:
        """Returns why the job is held, as `add` was called with."""
        queued = self._queued_jobs.get(key)
        return None if queued is None else queued.hold

    def last_decision(self, key: str) -> Decision | None:
        """Returns the last refusal of the job's class, which names the job that was tried; or None."""
        queued = self._queued_jobs.get(key)
        return None if queued is None or queued.job_class is None else queued.job_class.decision

    def same_class(self, key: str) -> list[str]:
        """Returns the keys of all jobs that wait in the same class, this one included: a decision is about all."""
        queued = self._queued_jobs.get(key)
        return [] if queued is None or queued.job_class is None else [each.job.key for each in queued.job_class.members]

    def pending(self, state: QueueState) -> PendingCount:
        """Returns how many jobs and pods have this state: `pending_pods{queue}`."""
        return self._queue_metrics.waiting(state)

    def pending_gangs(self, state: QueueState) -> int:
        """Returns how many of those jobs are gangs."""
        return self._queue_metrics.gangs(state)

    def drain_incoming(self) -> list[IncomingCount]:
        """Returns how many came into each queue by which event since the last call: `queue_incoming_pods_total`."""
        return self._queue_metrics.drain()

    def unschedulable_counts(self) -> Iterator[UnschedulableCount]:
        """Yields why jobs wait, by job class: `unschedulable_pods`."""
        return unschedulable_counts(self._job_classes.sub_queues, self._enqueuer.gated_jobs)

    def in_flight_events(self) -> Counter[str]:
        """Returns the events since the oldest attempt under way began, by label: `inflight_events`."""
        return self._attempts.in_flight_events.by_label()
