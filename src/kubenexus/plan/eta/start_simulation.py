"""Plays a queue forward: pods end, the first job that does not fit gets a reservation, and others pass it.

    step:  the next end or arrival ─▶ jobs in their order start where they fit
                                   └▶ behind the first that does not: only jobs that are believed to end before it
                                      starts, or that take what is spare

What runs ends at the times that one draw has for it. The scheduler does not know these: it orders jobs by what it
believes (`ModelJob.believed`). A job beyond a limit of its queue is passed over until less is used: it has no
reservation. One run is a function of the model and the draw.
"""

import heapq
import math
from bisect import insort
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.plan.eta.head_start import BelievedEnds, HeadStart, head_start
from kubenexus.plan.eta.limit_account import LimitAccount
from kubenexus.plan.eta.queue_model import ModelJob, QueueModel, RunningJob, RunningPod
from kubenexus.plan.eta.row_capacity import RowCapacity
from kubenexus.plan.eta.row_choice import choose_rows
from kubenexus.plan.eta.simulation_work import PASS, ROW, START, SimulationWork

MAX_LOOKS: Final = 64  # jobs of one group that are looked at for one that ends before the first job starts
LAST: Final[tuple[float, ...]] = (math.inf,)  # the order of a group without jobs


class Draw(NamedTuple):
    """One draw: when each running job ends, how long each job of the model runs, and more jobs that arrive."""

    ends: Sequence[float]
    runtimes: Sequence[float]
    arrivals: Sequence[tuple[ModelJob, float]] = ()


class Result(NamedTuple):
    """When each job of the model starts, infinite if it never does, and how many steps and how much work that took.
    `until`: when the simulation ended before all had started, if it did."""

    starts: list[float]
    steps: int
    until: float = math.inf
    work: int = 0


class StartSimulation:
    """Simulates starts. What does not depend on the draw is computed once."""

    def __init__(self, model: QueueModel, now: float) -> None:
        self.model, self._now = model, now
        self.capacity = RowCapacity(model)

    def run(self, draw: Draw, most_steps: int, most_work: float = math.inf) -> Result:
        """Returns when jobs start under one draw. It ends after so many steps, or so much work."""
        return _Run(self.model, self._now, self.capacity.copy(), draw, SimulationWork(most_work)).play(most_steps)


class _Run:
    def __init__(self, model: QueueModel, now: float, capacity: RowCapacity, draw: Draw, work: SimulationWork) -> None:
        self._model, self._now, self._room, self._work = model, now, capacity, work
        self._jobs = [*model.jobs, *(job for job, _ in draw.arrivals)]
        self._runtimes = [*draw.runtimes, *(seconds for _, seconds in draw.arrivals)]
        self._starts = [math.inf] * len(self._jobs)
        self._left = len(model.jobs)
        self._running: dict[int, RunningJob] = {}
        self._events: list[tuple[float, int, int]] = []  # time, 0: an end, 1: an arrival; number
        self._numbers = 0
        self._believed = BelievedEnds(self._running)
        work.spend(len(model.running), capacity.capacity.size // 4)
        for running, end in zip(model.running, draw.ends, strict=True):
            self._holds(running, end)
        self._groups: dict[tuple[Any, ...], int] = {}
        self._waiting: list[list[tuple[tuple[float, ...], int]]] = []
        self._kinds, self._needs = list[int](), list[int]()
        self._limits = LimitAccount(model)
        for number, job in enumerate(self._jobs):
            if job.at <= now:
                self._arrives(number)
            else:
                heapq.heappush(self._events, (job.at, 1, number))

    def play(self, most_steps: int) -> Result:
        self._start_jobs()
        steps = 0
        while self._events and self._left and steps < most_steps and not self._work.is_done:
            steps += 1
            self._now = max(self._events[0][0], self._now)
            while self._events and self._events[0][0] <= self._now:
                _, arrives, number = heapq.heappop(self._events)
                if arrives:
                    self._arrives(number)
                else:
                    self._ends(number)
            self._start_jobs()
        until = self._now if self._left and (steps >= most_steps or self._work.is_done) else math.inf
        return Result(self._starts[: len(self._model.jobs)], steps, until, self._work.spent)

    # --- events ------------------------------------------------------------------------------------------------------

    def _holds(self, job: RunningJob, end: float) -> None:
        number = self._numbers
        self._numbers += 1
        self._running[number] = job
        self._believed.add(number, self._now)
        if end < math.inf:
            heapq.heappush(self._events, (end, 0, number))

    def _ends(self, number: int) -> None:
        job = self._running.pop(number)
        self._limits.give(job.uses)
        for pod in job.pods:
            self._work.spend(ROW + len(self._model.demand) // 8)
            self._room.give(pod.row, pod.amounts, pod.cards)

    def _arrives(self, number: int) -> None:
        job = self._jobs[number]
        key = (job.members, job.level, job.uses, job.tiers)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = len(self._waiting)
            self._waiting.append([])
            self._kinds.append(job.members[0].kind)
            self._needs.append(job.members[0].need)
        insort(self._waiting[group], (job.order, number))

    # --- starts ------------------------------------------------------------------------------------------------------

    def _start_jobs(self) -> None:
        """Starts all jobs that may start now."""
        refused, held = set[int](), set[int]()
        head: HeadStart | None = None
        head_of = -1
        kinds, needs = np.array(self._kinds, np.int64), np.array(self._needs, np.int64)
        while not self._work.is_done:
            self._work.spend(PASS + len(self._waiting) // (1 if self._limits.any else 8))
            fits = (self._room.total[kinds] >= needs).tolist() if self._kinds else []
            first, group = LAST, -1
            blocked, blocking = LAST, -1
            for each, order, can_start in self._firsts(fits, refused):
                if can_start:
                    if each not in held and order < first:
                        first, group = order, each
                elif order < blocked:
                    blocked, blocking = order, each
            if group < 0:
                return
            if first < blocked:
                if not self._start(group, 0):
                    refused.add(group)
                continue
            number = self._waiting[blocking][0][1]
            if head_of != number:
                head, head_of = self._head_start(number), number
            if not self._pass(group, head):
                (refused if head is None else held).add(group)

    def _firsts(self, fits: list[bool], refused: set[int]) -> Iterator[tuple[int, tuple[float, ...], bool]]:
        """Yields the groups with jobs that wait within their limits, the order of the first, and whether it may fit."""
        for group, waiting in enumerate(self._waiting):
            if waiting:
                order, number = waiting[0]
                may_fit = fits[group] and group not in refused
                if not self._limits.any or not self._limits.skips(self._jobs[number], fits=may_fit):
                    yield group, order, may_fit

    def _head_start(self, number: int) -> HeadStart | None:
        return head_start(self._model, self._jobs[number], self._believed(self._now), self._room, self._work)

    def _pass(self, group: int, head: HeadStart | None) -> bool:
        """Starts a job of the group that may pass the first one that waits. Returns whether there was one."""
        if head is None:
            return self._start(group, 0)
        for place, (_, number) in enumerate(self._waiting[group][:MAX_LOOKS]):
            if self._now + self._jobs[number].believed <= head.at:
                return self._start(group, place)
        return self._start(group, 0, head)

    def _start(self, group: int, place: int, beside: HeadStart | None = None) -> bool:
        """Starts a job if it fits; `beside`: on what the first job leaves. Returns whether it did."""
        number = self._waiting[group][place][1]
        self._work.spend(START, self._room.capacity.shape[1])
        job, taken = self._jobs[number], list[RunningPod]()
        codes = self._model.levels[job.level] if job.level >= 0 else None
        for members in job.members:
            capacity = self._limits.open_rows(job, self._room.capacity[members.kind])
            if beside is not None:
                capacity = beside.limited(capacity, members.kind, self._room)
            rows = choose_rows(capacity, members, codes)
            if not rows:
                for pod in taken:
                    self._room.give(pod.row, pod.amounts, pod.cards)
                return False
            if codes is not None and len(job.members) > 1:
                codes = np.where(codes == codes[rows[0][0]], codes, 0)
            self._work.spend((ROW + len(self._model.demand) // 8) * len(rows))
            for row, count in rows:
                cards = tuple(self._room.take(row, members.kind, count))
                taken.append(RunningPod(row, self._model.demand[members.kind] * count, cards))
        if beside is not None:
            beside.took(taken)
        del self._waiting[group][place]
        self._starts[number] = self._now
        self._left -= number < len(self._model.jobs)
        uses = self._limits.take(job, taken)
        self._holds(RunningJob(tuple(taken), self._now, job.believed, uses), self._now + self._runtimes[number])
        return True
