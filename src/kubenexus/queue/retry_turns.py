"""Whose turn it is: by order, and in turns where those that are refused again and again would take all there are.

By priority and age alone, jobs that were refused come before all that are younger whenever an event wakes them. A few
thousand kinds that never fit, at 10 ms a decision, would keep newcomers waiting for ever. So, when a job that had been
tried before was tried in vain once more,

- the next turn that such a job would have goes to the first job that has never been tried, if that counts with at least
  the priority of the other (without what the other gained by waiting);
- the next turn after a turn by order that such a job does have goes to the one that kube-scheduler would try: of those
  with the most priority the one that was refused the longest ago.

Hence a job that has never been tried waits for one vain turn of a job of no more priority than its own, and one for
each job before it that has never been tried, whatever was refused before. One that was refused waits for two vain turns
for each refused job of at least its priority, and as many of those that have never been tried. While retries succeed,
or none waits but those that are tried, the order is the only rule.
"""

from kubenexus.queue.job_class import JobClass
from kubenexus.queue.sub_queues import SubQueues


class RetryTurns:
    """`_passed`: a retry was in vain while a job waited that has never been tried. `_rotates`: one by order was, while
    other retries waited. `_rotated` is the line that was chosen for that."""

    def __init__(self, sub_queues: SubQueues) -> None:
        self._sub_queues = sub_queues
        self._passed = self._rotates = False
        self._rotated: JobClass | None = None

    def next_active(self, now: float) -> JobClass | None:
        """The active line to be tried now, if there is one. Takes O(log n)."""
        first, fresh = self._sub_queues.active.first(), self._sub_queues.fresh.first()
        if first is None or first is fresh:
            self._passed = False
            return first
        if fresh is not None and self._passed and fresh.urgency(now) >= first.priority:
            self._passed = False
            return fresh
        if not self._rotates:
            return first
        self._rotates, self._rotated = False, self._sub_queues.retries.first()
        return self._rotated

    def retry_refused(self, job_class: JobClass) -> None:
        """A job of this line had been tried before, and was again without being placed."""
        self._passed = bool(self._sub_queues.fresh)
        self._rotates = job_class is not self._rotated and bool(self._sub_queues.retries)
        self._rotated = None
