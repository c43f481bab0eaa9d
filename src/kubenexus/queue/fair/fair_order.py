"""Connects the scheduling queue with the tree of queues: order by shares, and limits. Without queues it does nothing.

`settle` runs before each look at the active classes. It sorts queues again whose usage changed, and wakes classes that
fit within their limits again. Each change of the tree, of a limit, of a weight or of a namespace's queue wakes what
waits for a limit.
"""

from typing import Final

from kubenexus.api.keys.gang import KUEUE_WORKLOAD
from kubenexus.framework.aging import CRITICAL
from kubenexus.framework.decision import Decision
from kubenexus.framework.queue_limits import TIER_LIMIT, rejection
from kubenexus.queue.fair.fair_heap import FairHeap
from kubenexus.queue.fair.job_request import JobRequest, job_request
from kubenexus.queue.fair.limit_waiters import LimitWaiters
from kubenexus.queue.fair.namespace_turns import NamespaceTurns
from kubenexus.queue.fair.past_usage import PastUsage
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.job_classes import JobClasses
from kubenexus.queue.queued_job import QueuedJob, QueueState
from kubenexus.queue.work_allowance import WorkAllowance
from kubenexus.state.queues.queue_tree import QueueTree

FREED: Final = "QueueUsage"  # the event that wakes classes which waited for a limit


class FairOrder:
    """`tree` is the ledger's. `half_life`: in so many seconds half of what queues used in the past is forgotten; 0: the
    past does not count. Called by the scheduling queue only."""

    def __init__(
        self,
        tree: QueueTree | None,
        job_classes: JobClasses,
        work_allowance: WorkAllowance,
        half_life: float = 0.0,
    ) -> None:
        self._past = PastUsage(tree, half_life) if tree is not None and half_life else None
        self._tree, self._job_classes, self._work_allowance = tree, job_classes, work_allowance
        self._turns = NamespaceTurns()
        self._heaps: tuple[FairHeap, ...] = ()
        self._version = self._totals_version = -1
        self._rejected: dict[str, None] = {}
        self.waiters: LimitWaiters | None = None

    @property
    def is_active(self) -> bool:
        """Whether there are queues, and the order of jobs follows them."""
        return self.waiters is not None

    @property
    def has_work(self) -> bool:
        """Whether classes that wait for a limit have to be looked at."""
        tree, waiters = self._tree, self.waiters
        if tree is None or waiters is None or not waiters:
            return False
        return waiters.any_to_check or bool(tree.freed) or tree.is_outdated or tree.version != self._version

    def settle(self, now: float) -> None:
        """Brings order and limits up to date with the tree. Mostly some comparisons."""
        tree = self._tree
        if tree is None or not (tree.is_active or self.is_active):
            return
        if tree.is_active != self.is_active:
            self._switch(tree, now)
        waiters = self.waiters
        if waiters is None:
            return
        tree.settle()
        if tree.version != self._version or tree.totals_version != self._totals_version:
            self._tree_changed(tree, waiters, now)
        if self._past is not None:
            self._count_past(tree, self._past, now)
        if tree.changed:
            tree.refresh_shares(tree.changed)
            for heap in self._heaps:
                heap.shares_changed(tree.changed)
            tree.changed.clear()
        if tree.freed:
            waiters.freed(tree.freed)
            tree.freed.clear()
        if tree.freed_workloads:
            for job_class in waiters.take_of_workloads(tree.freed_workloads):
                self._job_classes.wake(job_class, FREED, now)
            tree.freed_workloads.clear()
        for job_class in waiters.take_fitting(self._work_allowance) if waiters.any_to_check else ():
            self._job_classes.wake(job_class, FREED, now)

    def _count_past(self, tree: QueueTree, past: PastUsage, now: float) -> None:
        """Takes in what queues use from now on, and sorts all of them when a step has passed."""
        past.changed(tree.changed, now)
        if past.step(now):
            tree.refresh_all_shares()
            for heap in self._heaps:
                heap.all_shares_changed()

    def _tree_changed(self, tree: QueueTree, waiters: LimitWaiters, now: float) -> None:
        """Follows a change of queues, of the queues of namespaces, or of what the cluster has."""
        if self._past is not None:
            self._past.rebuilt(now)
        tree.refresh_all_shares()
        for heap in self._heaps:
            if tree.version != self._version:
                heap.build()
            else:
                heap.all_shares_changed()
        self._version, self._totals_version = tree.version, tree.totals_version
        waiters.all_freed()

    def rejects(self, job_class: JobClass, queued: QueuedJob, now: float) -> bool:
        """Whether the first job of a class would exceed a limit. The class then waits until less is used."""
        tree, namespace, waiters = self._tree, queued.job.namespace, self.waiters
        if tree is None or waiters is None or (queued.job.priority >= CRITICAL and not tree.is_mapped(namespace)):
            return False
        pod, whole = queued.job.pods[0], _request(job_class, queued)
        request = JobRequest(*tree.beyond_admitted(pod, *whole))
        limit = tree.reached_limit(namespace, *request) if request.amounts or request.pods else None
        if limit is None:
            return False
        self._job_classes.reject(job_class, rejection(queued.job, limit, now), now)
        waiters.add(job_class, job_class.order(now), namespace, request, limit)
        workload = pod.metadata.annotations.get(KUEUE_WORKLOAD.key)
        if workload is not None:
            waiters.also_wait(job_class, (namespace, workload))
        self._rejected[queued.job.key] = None
        return True

    def refused(self, job_class: JobClass, queued: QueuedJob, decision: Decision, now: float) -> None:
        """Lets a class that was tried and refused wait for the limits of hardware tiers, too, if these were among the
        reasons."""
        tree, waiters, namespace = self._tree, self.waiters, queued.job.namespace
        if tree is None or waiters is None or TIER_LIMIT not in decision.diagnosis.refused_by:
            return
        if job_class.state is not QueueState.UNSCHEDULABLE or job_class in waiters:
            return
        request = JobRequest(*tree.beyond_admitted(queued.job.pods[0], *_request(job_class, queued)))
        limits = tuple(tree.closed_tiers(namespace, *request).values())
        if limits:
            limit = limits[0]._replace(tiers=limits if len(limits) > 1 else ())
            waiters.add(job_class, job_class.order(now), namespace, request, limit)

    def take_rejected(self) -> list[str]:
        """Returns a job of each class that was rejected since the last call."""
        found = list(self._rejected)
        self._rejected.clear()
        return found

    def turn_taken(self, job_class: JobClass, namespace: str) -> None:
        """Notes that a job is tried now."""
        if self.waiters is not None:
            self._turns.take(namespace)
            for heap in self._heaps:
                heap.turn_taken(namespace)
            self.waiters.had_turn(job_class)

    def _switch(self, tree: QueueTree, now: float) -> None:
        """Goes over to the order by queues, or back: there are queues now, or none any more."""
        sub_queues = self._job_classes.sub_queues
        if tree.is_active:
            self.waiters = LimitWaiters(tree)
            active, fresh = FairHeap(tree, self._turns), FairHeap(tree, self._turns)
            self._heaps, self._version = (active, fresh), tree.version
            sub_queues.use_queues(active, fresh, self.waiters, tree)
            return
        waiting = [each for each in sub_queues if each.state is QueueState.UNSCHEDULABLE]
        rejected = [each for each in waiting if self.waiters is not None and each in self.waiters]
        self.waiters, self._heaps = None, ()
        sub_queues.use_no_queues()
        for job_class in rejected:
            self._job_classes.wake(job_class, FREED, now)


def _request(job_class: JobClass, queued: QueuedJob) -> JobRequest:
    """Returns what the job asks for: the same for all jobs of a class, if requests are part of its signature."""
    if job_class.profile.signs_requests:
        if job_class.request is None:
            job_class.request = job_request(queued.job)
        return job_class.request
    known = queued.request
    if known is None or known[0] is not queued.job:
        known = queued.request = (queued.job, job_request(queued.job))
    return known[1]
