"""Job classes that wait because a limit of their queue or namespace is reached.

Classes of one namespace that ask for the same are a bucket: a limit admits all of them or none. A bucket waits at the
queue or namespace whose limit it would exceed, by how much it asks of that resource. When less is used there, buckets
are checked from the smallest request on, and of each that fits the first class is woken. When that class has had its
turn, its bucket is checked again. So one pod that ends wakes one class of each bucket, however many wait.

A class whose pods name a Workload of Kueue waits for other pods of that Workload, too: it may go past the limit when
they use less. One that ends wakes one class.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from kubenexus.base.heap import Heap, Slot
from kubenexus.queue.fair.job_request import JobRequest
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.work_allowance import WorkAllowance
from kubenexus.state.queues.limits import ReachedLimit
from kubenexus.state.queues.queue_node import QueueNode
from kubenexus.state.queues.queue_tree import QueueTree

ANY_TIER: Final = "*"  # instead of a resource: each change of what is used is looked at


class _Place(NamedTuple):
    """Where a bucket waits."""

    node: QueueNode
    resource: str


class _Bucket:
    """Waiting classes with one request in one namespace, by order. `awake` is the one that was woken and has not had
    its turn."""

    __slots__ = ("awake", "classes", "namespace", "place", "request", "slot")

    def __init__(self, namespace: str, request: JobRequest) -> None:
        self.namespace, self.request = namespace, request
        self.classes: Heap[JobClass] = Heap()
        self.awake: JobClass | None = None
        self.place: _Place | None = None
        self.slot: Slot | None = None


class LimitWaiters:
    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        self._buckets: dict[tuple[str, JobRequest], _Bucket] = {}
        self._at: dict[QueueNode, dict[str, Heap[_Bucket]]] = {}
        self._waiting: dict[JobClass, tuple[_Bucket, Slot]] = {}
        self._awake: dict[JobClass, _Bucket] = {}
        self._to_check: dict[QueueNode, None] = {}
        self._workload_of: dict[JobClass, tuple[str, str]] = {}
        self._of_workload: dict[tuple[str, str], dict[JobClass, None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, job_class: JobClass) -> bool:
        return job_class in self._waiting

    @property
    def any_to_check(self) -> bool:
        """Whether a class may fit within its limits now."""
        return bool(self._to_check)

    # --- classes come and go --------------------------------------------------------------------------------------

    def add(self, job_class: JobClass, order: Any, namespace: str, request: JobRequest, limit: ReachedLimit) -> None:
        """Lets a class wait for a limit."""
        bucket = self._buckets.get((namespace, request))
        if bucket is None:
            bucket = self._buckets[namespace, request] = _Bucket(namespace, request)
        self._put(bucket, limit)
        self._waiting[job_class] = bucket, bucket.classes.push(order, job_class)

    def sort(self, job_class: JobClass, order: Any) -> None:
        """Sorts a class again that has another first job."""
        bucket, slot = self._waiting[job_class]
        if slot[0] != order:
            bucket.classes.remove(slot)
            self._waiting[job_class] = bucket, bucket.classes.push(order, job_class)

    def remove(self, job_class: JobClass) -> None:
        """Takes out a class that was woken, or has no more jobs. Does nothing if it does not wait here."""
        found = self._waiting.pop(job_class, None)
        if found is not None:
            found[0].classes.remove(found[1])
            self._drop_if_empty(found[0])
        workload = self._workload_of.pop(job_class, None)
        if workload is not None:
            del self._of_workload[workload][job_class]
            if not self._of_workload[workload]:
                del self._of_workload[workload]

    def also_wait(self, job_class: JobClass, workload: tuple[str, str]) -> None:
        """Lets a class that was added wait for the pods of a Workload of Kueue, too."""
        self._workload_of[job_class] = workload
        self._of_workload.setdefault(workload, {})[job_class] = None

    def had_turn(self, job_class: JobClass) -> None:
        """Notes that a class is tried now, or no longer active: if it was woken here, the next one may be."""
        bucket = self._awake.pop(job_class, None)
        if bucket is not None:
            bucket.awake = None
            if bucket.place is not None:
                self._to_check[bucket.place.node] = None

    # --- what is free ---------------------------------------------------------------------------------------------

    def freed(self, namespaces: Iterable[QueueNode]) -> None:
        """Notes that these namespaces, or all below these queues, use less than before."""
        if self._at:
            for namespace in namespaces:
                self._to_check.update(dict.fromkeys(node for node in namespace.path() if node in self._at))

    def all_freed(self) -> None:
        """Notes that any limit may have changed."""
        self._to_check.update(dict.fromkeys(self._at))

    def take_of_workloads(self, workloads: Iterable[tuple[str, str]]) -> list[JobClass]:
        """Returns a class of each of these Workloads, whose pods use less than before. The caller wakes each."""
        return [next(iter(self._of_workload[each])) for each in workloads if each in self._of_workload]

    def take_fitting(self, work_allowance: WorkAllowance) -> Iterator[JobClass]:
        """Yields classes that fit within their limits now, until the allowance is spent. The caller wakes each."""
        while self._to_check and work_allowance:
            node = next(iter(self._to_check))
            looked_at: list[_Bucket] = []
            done = True
            for resource in list(self._at.get(node, ())):
                while (bucket := self._next(node, resource)) is not None:
                    if not work_allowance:
                        done = False
                        break
                    work_allowance.spend()
                    self._take_out(bucket)
                    looked_at.append(bucket)
            if done:
                self._to_check.pop(node, None)
            for bucket in looked_at:
                yield from self._check(bucket)

    def _next(self, node: QueueNode, resource: str) -> _Bucket | None:
        """Returns the bucket with the smallest request at a node, if the limit itself leaves so much."""
        heap = self._at.get(node, {}).get(resource)
        bucket = None if heap is None else heap.first()
        if bucket is None:
            return None
        most = node.most.get(resource)
        if most is None:  # the limit is gone, or it is the cluster's
            return bucket
        return bucket if node.used.get(resource, 0) + bucket.request.of(resource) <= most else None

    def _check(self, bucket: _Bucket) -> Iterator[JobClass]:
        limit = self._tree.reached_limit(bucket.namespace, *bucket.request)
        first = bucket.classes.first()
        if first is None:
            return
        if limit is not None:
            self._put(bucket, limit)
            return
        self._put_at(bucket, _Place(self._tree.namespace(bucket.namespace), ""))
        if bucket.awake is None:
            bucket.awake = first
            self._awake[first] = bucket
            yield first

    # --- places ---------------------------------------------------------------------------------------------------

    def _put(self, bucket: _Bucket, limit: ReachedLimit) -> None:
        """Lets a bucket wait for a limit. If all tiers of hardware are closed, any of them may open first, or one come
        with a node: the bucket waits for any change below the topmost queue with such a limit."""
        if limit.tiers:
            topmost = min([each.node for each in limit.tiers], key=lambda node: len(list(node.path())))
            self._put_at(bucket, _Place(topmost, ANY_TIER))
        else:
            self._put_at(bucket, _Place(limit.node, limit.resource))

    def _put_at(self, bucket: _Bucket, place: _Place) -> None:
        if bucket.place == place:
            return
        self._take_out(bucket)
        heap = self._at.setdefault(place.node, {}).setdefault(place.resource, Heap())
        bucket.place, bucket.slot = place, heap.push(bucket.request.of(place.resource), bucket)

    def _take_out(self, bucket: _Bucket) -> None:
        if bucket.place is None or bucket.slot is None:
            return
        node, resource = bucket.place
        heaps = self._at[node]
        heaps[resource].remove(bucket.slot)
        if not heaps[resource]:
            del heaps[resource]
            if not heaps:
                del self._at[node]
        bucket.place = bucket.slot = None

    def _drop_if_empty(self, bucket: _Bucket) -> None:
        if not bucket.classes:
            self._take_out(bucket)
            self._buckets.pop((bucket.namespace, bucket.request), None)
