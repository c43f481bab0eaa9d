"""What waiting costs: the queue's own part in a job's path, with a hundred thousand jobs waiting beside it.

Nothing is decided here: placements and refusals are made up beforehand, so a figure is the queue's alone. The pods are
of ten workloads, which are refused for want of room.
"""

import itertools
from collections.abc import Callable

from bench import objects
from bench.cluster import BenchError, mixture
from bench.measure import Round, clock
from kubenexus.api.codec import decode_pod
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.framework.decision import Decision, Diagnosis, PodPlacement
from kubenexus.framework.job import Job
from kubenexus.framework.pod_signature import PodSigner
from kubenexus.framework.verdict import Code
from kubenexus.plugins import profile_plugins
from kubenexus.queue.object_events import pod_gone
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueueState, SchedulingAttempt
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.footprint import Footprint

WAITING = 100_000
WORKLOADS = 10
_PAUSE = 60.0  # longer than any backoff


class Crowd:
    """So many jobs of ten workloads, all refused; and as many workloads whose jobs find a place."""

    def __init__(self, waiting: int = WAITING) -> None:
        plugins = profile_plugins()
        self.clock = VirtualClock(0.0)
        self.queue = SchedulingQueue({"": QueueProfile.of(plugins, PodSigner(plugins.reads).sign)}, self.clock)
        self._numbers = itertools.count()
        templates = mixture(2 * WORKLOADS)
        self._refused, self._welcome = templates[:WORKLOADS], templates[WORKLOADS:]
        self.left: ClusterEvent = pod_gone(
            decode_pod(objects.pod(templates[0], next(self._numbers), "worker").encode())
        )
        for job in self.jobs(waiting):
            self.queue.add(job)
        self.refuse_all()

    def jobs(self, count: int, welcome: bool = False) -> list[Job]:
        templates = self._welcome if welcome else self._refused
        texts = (objects.pod(templates[i % WORKLOADS], next(self._numbers)) for i in range(count))
        return [Job.of(decode_pod(text.encode())) for text in texts]

    def refuse_all(self) -> int:
        """Whoever may be tried is refused. Returns how many were."""
        tried, queue = 0, self.queue
        queue.tick()
        while (attempt := queue.pop()) is not None:
            queue.done(attempt, _refusal(attempt))
            tried += 1
        return tried


def churn(calls: int, waiting: int = WAITING) -> Round:
    """A job comes, has its turn, is placed and leaves; per job."""
    crowd = Crowd(waiting)

    def round_() -> float:
        queue, jobs = crowd.queue, crowd.jobs(calls, welcome=True)
        placements = {job.key: placement(job) for job in jobs}
        start = clock()
        for job in jobs:
            queue.add(job)
        queue.tick()
        while (attempt := queue.pop()) is not None:
            queue.done(attempt, placements[attempt.job.key])
        spent = clock() - start
        if len(queue) != waiting:
            raise BenchError(f"{len(queue)} jobs are left of {waiting}")
        return spent / calls

    return round_


def newcomer(calls: int, waiting: int = WAITING) -> Round:
    """A job comes whose kind is refused: it waits with the others and is not tried; per job."""
    crowd = Crowd(waiting)

    def round_() -> float:
        queue, jobs = crowd.queue, crowd.jobs(calls)
        start = clock()
        for job in jobs:
            queue.add(job)
        attempt = queue.pop()
        spent = clock() - start
        if attempt is not None or queue.pending(QueueState.UNSCHEDULABLE).jobs != waiting + calls:
            raise BenchError("a job was tried whose kind is refused")
        for job in jobs:
            queue.delete(job.key)
        return spent / calls

    return round_


def event(calls: int, waiting: int = WAITING) -> Round:
    """A pod leaves its node: everybody is woken, one of each kind is tried, everybody is refused; per event."""
    crowd = Crowd(waiting)

    def round_() -> float:
        spent = 0.0
        for _ in range(calls):
            crowd.clock.advance(_PAUSE)
            start = clock()
            crowd.queue.on_event(crowd.left)
            tried = crowd.refuse_all()
            spent += clock() - start
            if tried != WORKLOADS:
                raise BenchError(f"{tried} jobs were tried, of {WORKLOADS} kinds")
        return spent / calls

    return round_


def each(calls: int, waiting: int = WAITING) -> Round:
    """What a job costs whose kind was just refused: a thousand are woken and all are refused again; per job."""
    jobs = min(waiting, 1_000)
    per_event = event(calls, jobs)
    return lambda: per_event() / jobs


# By bench and case: made with the calls of a round and the number of waiting jobs.
Make = Callable[[int, int], Round]
CASES: dict[tuple[str, str], tuple[int, Make]] = {
    ("queue.churn", "100,000 waiting"): (100, churn),
    ("queue.refused", "one more of 100,000"): (100, newcomer),
    ("queue.refused", "event for 100,000"): (5, event),
    ("queue.refused", "each of 1,000"): (5, each),
}


def _refusal(attempt: SchedulingAttempt) -> Decision:
    diagnosis = Diagnosis(nodes=5_000, counts=(("Insufficient cpu", 5_000),), refused_by=("NodeResourcesFit",))
    return Decision(attempt.job.key, Code.UNSCHEDULABLE, 0, 0.0, diagnosis=diagnosis)


def placement(job: Job) -> Decision:
    seats = tuple(PodPlacement(pod.key, pod.metadata.uid, "worker", Footprint()) for pod in job.pods)
    return Decision(job.key, Code.SUCCESS, 0, 0.0, placements=seats)
