"""Gated jobs: a PreEnqueue plugin does not admit them to scheduling.

Most gates open when the pod itself is updated. Others wait for another object (a claim, the rest of a gang) and name
its events. Every five minutes each gate is called again, also without an event.

A `GateBucket` is a profile and a plugin: the jobs of this profile whose gate is this plugin.
"""

from collections.abc import Iterable, Iterator
from itertools import count

from kubenexus.framework.verdict import Verdict
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueuedJob

GateBucket = tuple[QueueProfile, str]


class GatedJobs:
    """`_shut` and each bucket have the job first whose gate was called the longest ago. Each call of a gate has a
    number."""

    def __init__(self) -> None:
        self._shut: dict[QueuedJob, GateBucket] = {}
        self._buckets: dict[GateBucket, dict[QueuedJob, int]] = {}  # with the number of the last call
        self._numbers = count(1)

    def __len__(self) -> int:
        return len(self._shut)

    def __iter__(self) -> Iterator[QueuedJob]:
        return iter(self._shut)

    def add(self, queued: QueuedJob, profile: QueueProfile, verdict: Verdict, now: float) -> None:
        self.remove(queued)
        (plugin,) = profile.with_hints((verdict.plugin,))
        queued.gate_verdict, queued.gate_checked_at = verdict, now
        self._shut[queued] = (profile, plugin)
        self._buckets.setdefault((profile, plugin), {})[queued] = self.next_number()

    def remove(self, queued: QueuedJob) -> None:
        queued.gate_verdict = None
        key = self._shut.pop(queued, None)
        if key is not None:
            bucket = self._buckets[key]
            del bucket[queued]
            if not bucket:
                del self._buckets[key]

    def next_number(self) -> int:
        """Returns a number that is larger than those of all calls of gates so far."""
        return next(self._numbers)

    def buckets(self, profile: QueueProfile, plugins: Iterable[str] | None) -> list[GateBucket]:
        """Returns the buckets with jobs of this profile; those of these plugins, or all if `plugins` is None."""
        if plugins is None:
            return [key for key in self._buckets if key[0] is profile]
        return [(profile, plugin) for plugin in plugins if (profile, plugin) in self._buckets]

    def jobs(self, bucket: GateBucket) -> Iterator[QueuedJob]:
        return iter(self._buckets.get(bucket, ()))

    def first_before(self, bucket: GateBucket, number: int) -> QueuedJob | None:
        """Returns the first job of the bucket if its gate was last called before this number."""
        for queued, called in self._buckets.get(bucket, {}).items():
            return queued if called < number else None
        return None

    @property
    def first(self) -> QueuedJob | None:
        """The job whose gate was called the longest ago."""
        return next(iter(self._shut), None)
