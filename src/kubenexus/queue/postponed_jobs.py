"""Postponed jobs: they are tried after all others, since a decision about them took so long that it delayed others.

`SchedulingQueue.pop` checks this before it returns a job. Each way to an attempt leads through `pop`: a new job of the
same signature, an event, the end of a backoff, a bind that failed. Jobs with one signature cost the same to decide, so
those of one namespace are postponed together. A job class may have jobs of several namespaces, and one tenant must not
postpone the pods of another. So the jobs of the namespace get a class of their own, to which `pop` moves them. The same
is done with all jobs of a namespace that has to wait as a whole (`set_apart`).
"""

from typing import Final

from kubenexus.queue.job_class import JobClass
from kubenexus.queue.job_signature import JobSignature
from kubenexus.queue.member_signatures import SIZE
from kubenexus.queue.queued_job import QueuedJob

MIN_POSTPONE: Final = 1.0  # seconds until the next check whether other jobs are ready
MAX_SET_APART: Final = 4096  # namespaces with job classes of their own
MAX_POSTPONE: Final = 600.0  # seconds for which others go first after the pause


class PostponedJobs:
    """The end of the pause by job key, and by signature and namespace. Callers pass the time in."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._kinds: dict[bytes, float] = {}
        self._namespaces: set[str] = set()

    def __len__(self) -> int:
        return len(self._until) + len(self._kinds)

    def add(self, key: str, until: float, now: float) -> None:
        """Postpones a job by key, and drops entries that ended long ago. Each entry took a decision of seconds, so
        there are never many."""
        self._until = {each: end for each, end in self._until.items() if end + MAX_POSTPONE > now}
        self._kinds = {each: end for each, end in self._kinds.items() if end + MAX_POSTPONE > now}
        self._until[key] = until

    def mark(self, queued: QueuedJob) -> None:
        """Postpones all jobs of the same signature and namespace, if this job is postponed."""
        until = self._until.get(queued.job.key)
        if until is not None and queued.job_class is not None:
            apart = _apart(queued.job_class.signature, queued)
            self._kinds[apart] = max(self._kinds.get(apart, 0.0), until)

    def forget(self, key: str, queued: QueuedJob | None) -> None:
        """The job was decided in time; so will those like it be."""
        self._until.pop(key, None)
        if queued is not None and queued.job_class is not None:
            self._kinds.pop(_apart(queued.job_class.signature, queued), None)

    def set_apart(self, namespace: str) -> None:
        """Gives the jobs of a namespace classes of their own from now on. Undoing it would move them all again."""
        if len(self._namespaces) == MAX_SET_APART:
            self._namespaces.clear()
        self._namespaces.add(namespace)

    def kind(self, kind: JobSignature, queued: QueuedJob) -> JobSignature:
        """Returns the signature of the job; one for its namespace alone if the job is postponed or set apart."""
        if not self._kinds and not self._namespaces:
            return kind
        apart = _apart(kind, queued)
        separate = apart in self._kinds or queued.job.namespace in self._namespaces
        return JobSignature(apart, kind.sample_pods) if separate else kind

    def is_postponed(self, job_class: JobClass, queued: QueuedJob, now: float, *, alone: bool) -> float | None:
        """Returns until when the class with this first job has to wait; None: it may be tried. `alone`: no other class
        is ready."""
        late = max(self._kinds.get(_apart(job_class.signature, queued), 0.0), self._until.get(queued.job.key, 0.0))
        if now < late:
            return late
        if not late or alone or now >= late + MAX_POSTPONE:
            return None
        return now + MIN_POSTPONE


def _apart(kind: JobSignature, queued: QueuedJob) -> bytes:
    """Returns the signature for jobs of the job's namespace alone; the same if it is one already."""
    return kind.digest[:SIZE] + queued.job.namespace.encode()
