"""Jobs that are tried after all others: a decision about them took so long that it held up all others.

The room looks here when it is about to hand a job out, which is the one place that every way into a turn leads through:
a newcomer of the same kind, an event, a backoff that ends, a bind that failed. Jobs that are alike cost the same to
decide and are late together, those of one namespace: a line may have jobs of several, and what one tenant does must not
postpone the pods of another. So those of the namespace stand in a line apart, to which they move when their turn comes.
The same is done with all jobs of a namespace that has to wait as a whole for a while (`set_apart`).
"""

from typing import Final

from kubenexus.queue.job_class import JobClass
from kubenexus.queue.job_signature import SIZE, JobSignature
from kubenexus.queue.queued_job import QueuedJob

MIN_POSTPONE: Final = 1.0  # seconds until it is looked again whether others are still ready
MAX_SET_APART: Final = 4096  # namespaces that are remembered as standing apart
MAX_POSTPONE: Final = 600.0  # seconds that a job whose pause is over lets others go first


class PostponedJobs:
    """Until when jobs rest, by key, and their kinds, by signature and namespace. Times are handed in."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._kinds: dict[bytes, float] = {}
        self._namespaces: set[str] = set()

    def __len__(self) -> int:
        return len(self._until) + len(self._kinds)

    def add(self, key: str, until: float, now: float) -> None:
        """Forgets those whose time is long over: each costs seconds to come by, so there are never many."""
        self._until = {each: end for each, end in self._until.items() if end + MAX_POSTPONE > now}
        self._kinds = {each: end for each, end in self._kinds.items() if end + MAX_POSTPONE > now}
        self._until[key] = until

    def mark(self, queued: QueuedJob) -> None:
        """If the job is late, those like it in its namespace are, too."""
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
        """From now on its jobs are like none in other namespaces. That is not taken back: it would move them again."""
        if len(self._namespaces) == MAX_SET_APART:
            self._namespaces.clear()
        self._namespaces.add(namespace)

    def kind(self, kind: JobSignature, queued: QueuedJob) -> JobSignature:
        """What the job is like: nothing in other namespaces while it is late, or where its namespace stands apart."""
        if not self._kinds and not self._namespaces:
            return kind
        apart = _apart(kind, queued)
        separate = apart in self._kinds or queued.job.namespace in self._namespaces
        return JobSignature(apart, kind.sample_pods) if separate else kind

    def is_postponed(self, job_class: JobClass, queued: QueuedJob, now: float, *, alone: bool) -> float | None:
        """Until when the line is to wait, whose first job this is; None: it may be tried. `single_job`: no other line
        is ready."""
        late = max(self._kinds.get(_apart(job_class.signature, queued), 0.0), self._until.get(queued.job.key, 0.0))
        if now < late:
            return late
        if not late or alone or now >= late + MAX_POSTPONE:
            return None
        return now + MIN_POSTPONE


def _apart(kind: JobSignature, queued: QueuedJob) -> bytes:
    """The signature of those of the kind that are of the job's namespace; also of those that stand apart already."""
    return kind.digest[:SIZE] + queued.job.namespace.encode()
