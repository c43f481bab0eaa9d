"""The jobs of a replay that wait, in the order in which they are tried."""

import heapq
from collections import deque
from typing import NamedTuple

from kubenexus.sim.replay.traces.trace import JobShape, TraceJob

_Kind = tuple[JobShape, int, str]


class WaitingJob(NamedTuple):
    """A job with its place in the order of arrival."""

    order: int
    job: TraceJob


class WaitingJobs:
    """Jobs by priority, then by arrival. A job that does not fit lets others pass, as in kube-scheduler.

    Jobs of one kind ask for the same: if one does not fit, none does until a job ends. So a departure costs a decision
    for each kind, however many jobs wait. `passing` False: no job passes one that waits.
    """

    def __init__(self, *, passing: bool = True) -> None:
        self._passing = passing
        self._by_kind: dict[_Kind, deque[WaitingJob]] = {}
        self._heap: list[tuple[int, int, _Kind]] = []
        self._refused: set[_Kind] = set()
        self.count = 0

    def add(self, waiting: WaitingJob) -> None:
        kind = _kind(waiting.job)
        queue = self._by_kind.setdefault(kind, deque())
        queue.append(waiting)
        self.count += 1
        if len(queue) == 1 and kind not in self._refused and (self._passing or not self._refused):
            self._push(kind)
        elif not self._passing:
            self._refused.add(kind)

    def pop(self) -> WaitingJob | None:
        """Returns the next job to try; None if each of the others was refused."""
        if not self._heap:
            return None
        kind = heapq.heappop(self._heap)[2]
        waiting = self._by_kind[kind].popleft()
        self.count -= 1
        if self._by_kind[kind]:
            self._push(kind)
        else:
            del self._by_kind[kind]
        return waiting

    def refuse(self, waiting: WaitingJob) -> None:
        """Puts a job back, and holds its kind back until `retry_all`."""
        kind = _kind(waiting.job)
        self._refused.add(kind)
        self._by_kind.setdefault(kind, deque()).appendleft(waiting)
        self.count += 1
        if not self._passing:
            self._refused.update(entry[2] for entry in self._heap)
            self._heap = []
        self._heap = [entry for entry in self._heap if entry[2] != kind]
        heapq.heapify(self._heap)

    def retry_all(self) -> None:
        """Called when a job ended: each kind may fit again."""
        if self._refused:
            for kind in self._refused:
                if kind in self._by_kind:
                    self._push(kind)
            self._refused.clear()

    def jobs(self) -> list[TraceJob]:
        """Returns all jobs that wait."""
        return [waiting.job for queue in self._by_kind.values() for waiting in queue]

    def _push(self, kind: _Kind) -> None:
        heapq.heappush(self._heap, (-kind[0].priority, self._by_kind[kind][0].order, kind))


def _kind(job: TraceJob) -> _Kind:
    return job.shape, job.pods, job.tenant
