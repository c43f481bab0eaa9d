"""What waiting costs: the queue's own part in a job's path, with a hundred thousand jobs waiting beside it.

Nothing is decided here: placements and refusals are made up beforehand, so a figure is the queue's alone. The pods are
of ten workloads, which are refused for want of room.
"""

import itertools
import time
from collections.abc import Callable

from bench import objects
from bench.cluster import BenchError, mixture
from bench.measure import Round
from kubenexus.api.codec import decode_pod
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.decision import Decision, Diagnosis, Placement
from kubenexus.framework.events import Event
from kubenexus.framework.job import Job
from kubenexus.framework.signature import Signer
from kubenexus.framework.verdict import Code
from kubenexus.plugins import lineup
from kubenexus.queue.changes import pod_gone
from kubenexus.queue.entry import Place, Turn
from kubenexus.queue.room import WaitingRoom
from kubenexus.queue.rules import Rules
from kubenexus.state.footprint import Footprint

WAITING = 100_000
WORKLOADS = 10
_PAUSE = 60.0  # longer than any backoff


class Crowd:
    """So many jobs of ten workloads, all refused; and as many workloads whose jobs find a place."""

    def __init__(self, waiting: int = WAITING) -> None:
        plugins = lineup()
        self.clock = VirtualClock(0.0)
        self.room = WaitingRoom({"": Rules.of(plugins, Signer(plugins.reads).sign)}, self.clock)
        self._numbers = itertools.count()
        templates = mixture(2 * WORKLOADS)
        self._refused, self._welcome = templates[:WORKLOADS], templates[WORKLOADS:]
        self.left: Event = pod_gone(decode_pod(objects.pod(templates[0], next(self._numbers), "worker").encode()))
        for job in self.jobs(waiting):
            self.room.add(job)
        self.refuse_all()

    def jobs(self, count: int, welcome: bool = False) -> list[Job]:
        templates = self._welcome if welcome else self._refused
        texts = (objects.pod(templates[i % WORKLOADS], next(self._numbers)) for i in range(count))
        return [Job.of(decode_pod(text.encode())) for text in texts]

    def refuse_all(self) -> int:
        """Whoever may be tried is refused. Returns how many were."""
        tried, room = 0, self.room
        room.tick()
        while (turn := room.pop()) is not None:
            room.done(turn, _refusal(turn))
            tried += 1
        return tried


def churn(calls: int, waiting: int = WAITING) -> Round:
    """A job comes, has its turn, is placed and leaves; per job."""
    crowd = Crowd(waiting)

    def round_() -> float:
        room, jobs = crowd.room, crowd.jobs(calls, welcome=True)
        placements = {job.key: _placement(job) for job in jobs}
        start = time.perf_counter()
        for job in jobs:
            room.add(job)
        room.tick()
        while (turn := room.pop()) is not None:
            room.done(turn, placements[turn.job.key])
        spent = time.perf_counter() - start
        if len(room) != waiting:
            raise BenchError(f"{len(room)} jobs are left of {waiting}")
        return spent / calls

    return round_


def newcomer(calls: int, waiting: int = WAITING) -> Round:
    """A job comes whose kind is refused: it waits with the others and is not tried; per job."""
    crowd = Crowd(waiting)

    def round_() -> float:
        room, jobs = crowd.room, crowd.jobs(calls)
        start = time.perf_counter()
        for job in jobs:
            room.add(job)
        turn = room.pop()
        spent = time.perf_counter() - start
        if turn is not None or room.waiting(Place.UNSCHEDULABLE).jobs != waiting + calls:
            raise BenchError("a job was tried whose kind is refused")
        for job in jobs:
            room.delete(job.key)
        return spent / calls

    return round_


def event(calls: int, waiting: int = WAITING) -> Round:
    """A pod leaves its node: everybody is woken, one of each kind is tried, everybody is refused; per event."""
    crowd = Crowd(waiting)

    def round_() -> float:
        spent = 0.0
        for _ in range(calls):
            crowd.clock.advance(_PAUSE)
            start = time.perf_counter()
            crowd.room.on_event(crowd.left)
            tried = crowd.refuse_all()
            spent += time.perf_counter() - start
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


def _refusal(turn: Turn) -> Decision:
    diagnosis = Diagnosis(nodes=5_000, counts=(("Insufficient cpu", 5_000),), refused_by=("NodeResourcesFit",))
    return Decision(turn.job.key, Code.UNSCHEDULABLE, 0, 0.0, diagnosis=diagnosis)


def _placement(job: Job) -> Decision:
    seats = tuple(Placement(pod.key, pod.metadata.uid, "worker", Footprint()) for pod in job.pods)
    return Decision(job.key, Code.SUCCESS, 0, 0.0, placements=seats)
