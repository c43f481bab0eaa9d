"""Counts of jobs and pods by sub-queue, and of those that came in by event: the values of kube-scheduler's metrics.

Counted when job classes move, so that a read is cheap. Bounded, since there are few states and event labels.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kubenexus.queue.job_class import JobClass
from kubenexus.queue.queue_profile import ANY_PLUGIN
from kubenexus.queue.queued_job import QueuedJob, QueueState


class JobCount(NamedTuple):
    """A number of jobs, their pods, and how many of the jobs are gangs."""

    jobs: int
    pods: int
    gangs: int = 0


class PendingCount(NamedTuple):
    jobs: int
    pods: int


class IncomingCount(NamedTuple):
    """How many jobs and pods came into a queue by an event: `queue_incoming_pods_total{queue, event}`."""

    queue: str
    event: str
    jobs: int
    pods: int
    gangs: int


class QueueMetrics:
    def __init__(self) -> None:
        self._jobs: Counter[QueueState] = Counter()
        self._pods: Counter[QueueState] = Counter()
        self._gangs: Counter[QueueState] = Counter()
        self._incoming: dict[tuple[QueueState, str], JobCount] = {}

    def enter(self, state: QueueState, amount: JobCount, event: str) -> None:
        if not amount.jobs:
            return
        self._jobs[state] += amount.jobs
        self._pods[state] += amount.pods
        self._gangs[state] += amount.gangs
        # A gated job counts as incoming to the unschedulable ones, as in kube-scheduler, which has no queue for it.
        queue = QueueState.UNSCHEDULABLE if state is QueueState.GATED else state
        jobs, pods, gangs = self._incoming.get((queue, event), JobCount(0, 0))
        self._incoming[queue, event] = JobCount(jobs + amount.jobs, pods + amount.pods, gangs + amount.gangs)

    def leave(self, state: QueueState, amount: JobCount) -> None:
        self._jobs[state] -= amount.jobs
        self._pods[state] -= amount.pods
        self._gangs[state] -= amount.gangs

    def waiting(self, state: QueueState) -> PendingCount:
        """Returns how many jobs and pods have this state: `pending_pods{queue}`."""
        return PendingCount(self._jobs[state], self._pods[state])

    def gangs(self, state: QueueState) -> int:
        """Returns how many of those jobs are gangs: `queued_entities{queue, type}`."""
        return self._gangs[state]

    def drain(self) -> list[IncomingCount]:
        """Returns what came in since the last call."""
        found = [IncomingCount(state.value, event, *amount) for (state, event), amount in self._incoming.items()]
        self._incoming.clear()
        return found


def count_of_class(job_class: JobClass) -> JobCount:
    return JobCount(len(job_class.members), job_class.pods, job_class.gangs)


def count_of_job(queued: QueuedJob) -> JobCount:
    return JobCount(1, queued.pods, queued.job.is_gang)


class UnschedulableCount(NamedTuple):
    """How many pods these plugins refused. `short`: how many members of gangs found no capacity."""

    plugins: tuple[str, ...]
    profile: str
    pods: int
    short: int = 0


def unschedulable_counts(job_classes: Iterable[JobClass], gated: Iterable[QueuedJob]) -> Iterator[UnschedulableCount]:
    """Yields a count for each refused job class and for each gated job."""
    for job_class in job_classes:
        if job_class.refusals and job_class.decision is not None:
            gang_diagnosis = job_class.decision.gang_diagnosis
            short = 0 if gang_diagnosis is None else gang_diagnosis.missing * len(job_class.members)
            plugins = tuple(each for each in job_class.unschedulable_plugins if each != ANY_PLUGIN)
            yield UnschedulableCount(
                plugins, job_class.signature.sample_pods[0].spec.scheduler_name, job_class.pods, short
            )
    for queued in gated:
        if queued.gate_verdict is not None:
            yield UnschedulableCount((queued.gate_verdict.plugin,), queued.job.profile, queued.pods)
