"""The jobs of each namespace, and those that have to be signed and sorted again because their tenant changed."""

from collections import OrderedDict

from kubenexus.queue.queued_job import QueuedJob


class NamespaceJobs:
    """All jobs by namespace. A change of a tenant concerns all jobs of its namespaces; `next` returns them one by one,
    so that a namespace with 100,000 of them does not stall the loop.

    Namespaces take turns, a job each, in the order of their changes. A namespace that changes again keeps its turn and
    goes on with its oldest job. So no tenant can keep the changes of others from being applied.

    Each job has the number of the change after which it was last returned, or came. Jobs are sorted by that number, so
    all methods take O(1).
    """

    def __init__(self) -> None:
        self._jobs: dict[str, OrderedDict[QueuedJob, int]] = {}
        self._changed: OrderedDict[str, int] = OrderedDict()  # by namespace: the number of its last change
        self._number = 0

    def add(self, queued: QueuedJob) -> None:
        jobs = self._jobs.get(queued.job.namespace)
        if jobs is None:
            jobs = self._jobs[queued.job.namespace] = OrderedDict()
        jobs[queued] = self._number

    def remove(self, queued: QueuedJob) -> None:
        jobs = self._jobs.get(queued.job.namespace)
        if jobs is not None:
            jobs.pop(queued, None)
            if not jobs:
                del self._jobs[queued.job.namespace]

    def changed(self, namespace: str) -> None:
        """Notes that the tenants of a namespace have changed."""
        if namespace in self._jobs:
            self._number += 1
            self._changed[namespace] = self._number

    def __bool__(self) -> bool:
        """Whether `next` may return a job."""
        return bool(self._changed)

    def next(self) -> QueuedJob | None:
        """Returns a job that has not been returned since its tenant changed, or None."""
        while self._changed:
            namespace, number = next(iter(self._changed.items()))
            jobs = self._jobs.get(namespace)
            first = None if jobs is None else next(iter(jobs))
            if jobs is None or first is None or jobs[first] >= number:
                del self._changed[namespace]
                continue
            jobs[first] = self._number
            jobs.move_to_end(first)
            self._changed.move_to_end(namespace)
            return first
        return None
