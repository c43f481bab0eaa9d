"""Chooses the next job class: by order, and alternating where retries in vain would take all attempts.

By priority and age alone, a refused job comes before all younger ones whenever an event wakes it. A few thousand
classes that never fit, at 10 ms a decision, would keep new jobs waiting for ever. So, after a retry in vain,

- the next attempt of a retry goes to the first job that was never tried, if its effective priority is at least the
  other's priority without aging;
- after a retry by order, the next retry is one of the highest priority in the namespace whose refused attempts cost the
  least of late (`queue.retry_shares`). Of several there it is the one that kube-scheduler would try: the class refused
  the longest ago.

Hence a job that was never tried waits for one vain retry of a job of no more priority, and for one more for each job
before it that was never tried. A refused job whose namespace cost the least waits for two vain attempts, however many
classes and namespaces other tenants have. Any other namespace lets others go first for at most a minute after a
refusal, and then waits for two vain attempts for each other namespace with retries of its priority. New jobs at most
double that. While retries succeed, or only one kind of jobs waits, the order is the only rule.

With queues (`queue.fair`) the order is that of the tree. Priorities of different queues are not compared, so a job that
was never tried goes next, with any priority, if it is of another queue, and retries take turns by cost alone.
"""

from kubenexus.queue.job_class import JobClass
from kubenexus.queue.sub_queues import SubQueues


class RetryTurns:
    """`_passed`: a retry was in vain while a job waited that was never tried. `_rotates`: a retry by order was in vain
    while other retries waited. `_rotated`: the class that was chosen for that."""

    def __init__(self, sub_queues: SubQueues) -> None:
        self._sub_queues = sub_queues
        self._passed = self._rotates = False
        self._rotated: JobClass | None = None

    def next_active(self, now: float) -> JobClass | None:
        """Returns the active class to be tried now, or None. Takes O(log n)."""
        first = self._sub_queues.active.first()
        if first is None or not first.tried:  # then it is the first of those that were never tried, too
            self._passed = False
            return first
        fresh = self._sub_queues.fresh.first()
        if fresh is not None and self._passed and self._may_pass(fresh, first, now):
            self._passed = False
            return fresh
        if not self._rotates:
            return first
        self._rotates, self._rotated = False, self._sub_queues.retries.first()
        return self._rotated

    def _may_pass(self, fresh: JobClass, first: JobClass, now: float) -> bool:
        """Whether a class that was never tried may go before a retry. Priorities of different queues do not count."""
        return fresh.urgency(now) >= first.priority or self._sub_queues.in_other_queue(fresh, first)

    def retry_refused(self, job_class: JobClass) -> None:
        """Notes that a retry of this class was in vain."""
        self._passed = bool(self._sub_queues.fresh)
        self._rotates = job_class is not self._rotated and bool(self._sub_queues.retries)
        self._rotated = None
