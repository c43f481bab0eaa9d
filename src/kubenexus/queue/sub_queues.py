"""The sub-queues of job classes: active, in backoff, or unschedulable. Only bookkeeping, no rules.

active         by the order of their first jobs: the least is tried next
fresh          the active classes whose first job was never tried, by the same order
retries        the other active ones, by share, then by the profile's order of when they were refused: kube-scheduler's
backoff        by the time when their backoff ends, then by order
error_backoff  the same for classes that no plugin refused: not tried before that time, also by an idle queue
unschedulable  in the order in which they were refused: the first is the first to be flushed
aside          the active ones that wait until their namespace is admitted again: by namespace, then as the active ones
aging          the active ones whose priority rises by waiting, by the time when it does
refused_by     those that an event may wake
limit_waiters  those that wait for a limit of their queue, while there are queues: then `active` and `fresh` are ordered
               along the tree (`queue.fair`)
"""

from collections.abc import Iterable, Iterator
from typing import Any

from kubenexus.base.clock import Clock
from kubenexus.base.heap import Heap
from kubenexus.queue.event_waiters import EventWaiters
from kubenexus.queue.fair.fair_heap import FairHeap
from kubenexus.queue.fair.limit_waiters import LimitWaiters
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.retry_shares import RetryShares
from kubenexus.queue.work_allowance import WorkAllowance
from kubenexus.state.queues.queue_tree import QueueTree


class SubQueues:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.active: Heap[JobClass] | FairHeap = Heap()
        self.fresh: Heap[JobClass] | FairHeap = Heap()
        self.retries = RetryShares()
        self.backoff: Heap[JobClass] = Heap()
        self.error_backoff: Heap[JobClass] = Heap()
        self.aging: Heap[JobClass] = Heap()
        self.unschedulable: dict[JobClass, None] = {}
        self.aside: dict[str, Heap[JobClass]] = {}
        self.refused_by = EventWaiters()
        self._limit_waiters: LimitWaiters | None = None
        self._tree: QueueTree | None = None

    # --- queues ---------------------------------------------------------------------------------------------------

    def use_queues(self, active: FairHeap, fresh: FairHeap, waiters: LimitWaiters, tree: QueueTree) -> None:
        """Orders the active classes along the tree of queues from now on."""
        self._order_by(active, fresh)
        self._limit_waiters, self._tree = waiters, tree

    def use_no_queues(self) -> None:
        self._limit_waiters = self._tree = None
        self._order_by(Heap(), Heap())

    def in_other_queue(self, one: JobClass, other: JobClass) -> bool:
        """Whether there are queues, and the two classes are not in the same one."""
        if self._tree is None or one.head is None or other.head is None:
            return False
        first, second = one.head.job.namespace, other.head.job.namespace
        return self._tree.queue_of(first) is not self._tree.queue_of(second)

    def _order_by(self, active: Heap[JobClass] | FairHeap, fresh: Heap[JobClass] | FairHeap) -> None:
        job_classes = list(self.active)
        for each in job_classes:
            self._enlist(each, None)
            if each.slot is not None:
                self.active.remove(each.slot)
                each.slot = None
        self.active, self.fresh = active, fresh
        self.retries.sort_by_priority(not isinstance(active, FairHeap))
        for each in job_classes:
            self._heaped(each)

    # --- classes --------------------------------------------------------------------------------------------------

    def update(self, job_class: JobClass) -> None:
        """Puts the class into the sub-queue of its state, by its present order. Called after each change of the class.
        An empty class is in no sub-queue."""
        if job_class.set_aside_for and (job_class.state is not QueueState.ACTIVE or not job_class.members):
            self._readmit(job_class)
        self._heaped(job_class)
        if job_class.state is not QueueState.UNSCHEDULABLE or not job_class.members:
            self.unschedulable.pop(job_class, None)
        elif job_class not in self.unschedulable:
            self.unschedulable[job_class] = None
        self._watch(job_class)
        waiters = self._limit_waiters
        if waiters is not None and job_class in waiters:
            if job_class.members:
                waiters.sort(job_class, job_class.order(self._clock.now()))
            else:
                waiters.remove(job_class)

    def remove(self, job_class: JobClass) -> None:
        """Takes the class out of all sub-queues, before its state or its plugins change."""
        self._readmit(job_class)
        if job_class.slot is not None:
            self._heap(job_class).remove(job_class.slot)
            job_class.slot = None
        self._enlist(job_class, None)
        self.unschedulable.pop(job_class, None)
        self.refused_by.remove(job_class)
        if self._limit_waiters is not None:
            self._limit_waiters.remove(job_class)
            self._limit_waiters.had_turn(job_class)

    def set_aside(self, job_class: JobClass, namespace: str) -> None:
        """Keeps an active class from being tried until it is released."""
        job_class.set_aside_for = namespace
        self._heaped(job_class)

    def release(self, namespace: str, lines: int) -> None:
        """Returns so many classes of this namespace to the active ones, in their order."""
        for _ in range(lines):
            heap = self.aside.get(namespace)
            job_class = None if heap is None else heap.first()
            if job_class is None:
                return
            self._readmit(job_class)
            self._heaped(job_class)

    def _readmit(self, job_class: JobClass) -> None:
        if job_class.set_aside_for:
            self._stand_aside(job_class, None)
            job_class.set_aside_for = ""

    def _stand_aside(self, job_class: JobClass, order: tuple[Any, ...] | None) -> None:
        """Puts the class aside in this order among those of its namespace; None: takes it out."""
        heap = self.aside.setdefault(job_class.set_aside_for, Heap())
        if job_class.aside_slot is not None and job_class.aside_slot[0] != order:
            heap.remove(job_class.aside_slot)
            job_class.aside_slot = None
        if order is not None and job_class.aside_slot is None:
            job_class.aside_slot = heap.push(order, job_class)
        if not heap:
            del self.aside[job_class.set_aside_for]

    def set_unschedulable_plugins(self, job_class: JobClass, plugins: Iterable[str]) -> None:
        """Sets the plugins that refused the class; its sub-queue does not change."""
        self.refused_by.remove(job_class)
        job_class.unschedulable_plugins = tuple(sorted(plugins))
        self._watch(job_class)

    @property
    def oldest_unschedulable(self) -> JobClass | None:
        """The class that was refused the longest ago."""
        return next(iter(self.unschedulable), None)

    def __iter__(self) -> Iterator[JobClass]:
        """Yields each class that has waiting jobs."""
        yield from self.active
        for job_classes in self.aside.values():
            yield from job_classes
        yield from self.backoff
        yield from self.error_backoff
        yield from self.unschedulable

    def apply_aging(self, work_allowance: WorkAllowance) -> None:
        """Sorts classes again whose priority has risen by age."""
        now = self._clock.now()
        while work_allowance:
            job_class = self.aging.first()
            if job_class is None or job_class.aging_slot is None or job_class.aging_slot[0] > now:
                return
            work_allowance.spend()
            self.aging.remove(job_class.aging_slot)
            job_class.aging_slot = None
            self._heaped(job_class)

    def _heaped(self, job_class: JobClass) -> None:
        now = self._clock.now()
        order: tuple[Any, ...] | None = None
        if job_class.set_aside_for:
            self._stand_aside(job_class, job_class.order(now))
        elif job_class.members and job_class.state is not QueueState.UNSCHEDULABLE:
            order = (
                job_class.order(now)
                if job_class.state is QueueState.ACTIVE
                else (job_class.backoff_until, job_class.order(now))
            )
            self._watch_age(job_class, now)
        self._enlist(job_class, order if job_class.state is QueueState.ACTIVE else None)
        if job_class.slot is not None:
            if job_class.slot[0] == order:
                return
            self._heap(job_class).remove(job_class.slot)
        job_class.slot = None if order is None else self._heap(job_class).push(order, job_class)

    def _enlist(self, job_class: JobClass, order: tuple[Any, ...] | None) -> None:
        """Puts the class into `retries` or `fresh`. None: it is not active."""
        heap: RetryShares | Heap[JobClass] | FairHeap = self.retries if job_class.tried else self.fresh
        if order is not None and heap is self.retries:
            order = job_class.profile.order(job_class.priority, job_class.unschedulable_since)
        if job_class.tried_slot is not None:
            if job_class.tried_slot[0] == order and job_class.tried_slot[3] is heap:
                return
            job_class.tried_slot[3].remove(job_class.tried_slot)
        job_class.tried_slot = None
        if order is not None:
            job_class.tried_slot = heap.push(order, job_class)
            job_class.tried_slot.append(heap)

    def _watch_age(self, job_class: JobClass, now: float) -> None:
        """Notes when the priority rises. A class that is checked too early is only checked again, so an early slot is
        kept."""
        grows = job_class.next_priority_increase(now) if job_class.state is QueueState.ACTIVE else None
        if grows is None or (job_class.aging_slot is not None and job_class.aging_slot[0] <= grows):
            return
        if job_class.aging_slot is not None:
            self.aging.remove(job_class.aging_slot)
        job_class.aging_slot = self.aging.push(grows, job_class)

    def _heap(self, job_class: JobClass) -> Heap[JobClass] | FairHeap:
        if job_class.state is QueueState.ACTIVE:
            return self.active
        return self.error_backoff if job_class.error_backoff else self.backoff

    def _watch(self, job_class: JobClass) -> None:
        if job_class.waits_for_event:
            self.refused_by.add(job_class)
        else:
            self.refused_by.remove(job_class)
