"""Gated jobs: a PreEnqueue plugin does not admit them to scheduling.

Most gates open when the pod itself is updated. Others wait for another object (a claim, the rest of a gang) and name
its events. Every five minutes each gate is called again, also without an event.
"""

from collections.abc import Iterable, Iterator

from kubenexus.framework.verdict import Verdict
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueuedJob


class GatedJobs:
    def __init__(self) -> None:
        self._shut: dict[QueuedJob, tuple[QueueProfile, str]] = {}  # the one checked the longest ago first
        self._by_plugin: dict[tuple[QueueProfile, str], dict[QueuedJob, None]] = {}

    def __len__(self) -> int:
        return len(self._shut)

    def __iter__(self) -> Iterator[QueuedJob]:
        return iter(self._shut)

    def add(self, queued: QueuedJob, profile: QueueProfile, verdict: Verdict, now: float) -> None:
        self.remove(queued)
        (plugin,) = profile.with_hints((verdict.plugin,))
        queued.gate_verdict, queued.gate_checked_at = verdict, now
        self._shut[queued] = (profile, plugin)
        self._by_plugin.setdefault((profile, plugin), {})[queued] = None

    def remove(self, queued: QueuedJob) -> None:
        queued.gate_verdict = None
        key = self._shut.pop(queued, None)
        if key is not None:
            bucket = self._by_plugin[key]
            del bucket[queued]
            if not bucket:
                del self._by_plugin[key]

    def gated_by(self, profile: QueueProfile, plugins: Iterable[str]) -> list[tuple[QueuedJob, str]]:
        """Returns the jobs that these plugins keep out, each with the plugin."""
        return [(queued, plugin) for plugin in plugins for queued in self._by_plugin.get((profile, plugin), ())]

    @property
    def first(self) -> QueuedJob | None:
        """The job whose gate was called the longest ago."""
        return next(iter(self._shut), None)
