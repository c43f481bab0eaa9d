"""The order in which waiting jobs of a replay start: `first-fit`, `fifo`, or `backfill` by expected runtimes.

first-fit   a job that does not fit lets others pass, as in kube-scheduler
fifo        no job passes one that waits
backfill    the first job that does not fit has an expected start, and jobs that do not delay it pass
"""

import math
import random
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from kubenexus.api.runtimes import declared_runtime, workload_identity
from kubenexus.app.gangs.backfill import Backfill
from kubenexus.config.gang_settings import BackfillSettings
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.sim.replay.cluster import ReplayCluster
from kubenexus.sim.replay.traces.trace import Trace, TraceJob
from kubenexus.sim.replay.waiting_jobs import WaitingJob

Order = Literal["first-fit", "fifo", "backfill"]
FIRST_FIT: Final[Order] = "first-fit"
MAX_TRIED: Final = 200  # waiting jobs behind the first that are looked at whenever something ends or comes
DEPTH: Final = 2000  # of the queue
UNBOUNDED: Final = BackfillSettings(ahead=30 * 86_400.0, late=math.inf, longest=math.inf)


class Estimates(NamedTuple):
    """What jobs declare. `factor` 1: their true runtime; n: between an n-th of it and n times it, drawn for each; 0:
    nothing, so that runtimes are learned."""

    factor: float = 1.0
    seed: int = 42

    def apply(self, trace: Trace) -> Trace:
        """Returns the trace with declared runtimes."""
        rng = random.Random(self.seed)
        jobs = []
        for job in trace.jobs:
            wrong = math.exp(rng.uniform(-1, 1) * math.log(self.factor)) if self.factor > 1 else 1.0
            declared = None if job.duration is None or not self.factor else max(job.duration * wrong, 1.0)
            jobs.append(replace(job, declared=declared))
        return Trace(trace.name, trace.nodes, tuple(jobs))


class HeadRecord(NamedTuple):
    """A job that had an expected start: when that was, when it began, and the longest estimate it waited for."""

    job: str
    promised: float
    started: float
    longest: float


class BackfillOrder:
    """Jobs by arrival, with backfill around the first that does not fit. Jobs of a trace have one priority."""

    def __init__(self, cluster: ReplayCluster) -> None:
        self._cluster = cluster
        self._backfill = Backfill(cluster.ledger, UNBOUNDED)
        self._waiting: list[WaitingJob] = []
        self._head: Reservation | None = None
        self._first_promise = math.inf
        self._longest = 0.0
        self.heads: list[HeadRecord] = []

    @property
    def count(self) -> int:
        return len(self._waiting)

    @property
    def waiting(self) -> Sequence[WaitingJob]:
        """The jobs that wait, in their order."""
        return self._waiting

    def add(self, waiting: WaitingJob) -> None:
        self._waiting.append(waiting)

    def jobs(self) -> list[TraceJob]:
        return [each.job for each in self._waiting]

    def ended(self, job: TraceJob, now: float, since: float) -> None:
        """Learns from a job that has ended."""
        made = self._cluster.made(job)
        ends, pod = self._cluster.ledger.nodes.pods.expected_ends, made.pods[0]
        ends.memory.observe(workload_identity(pod), now - since, declared_runtime(pod))

    def start_jobs(self, now: float) -> list[tuple[WaitingJob, Decision]]:
        """Starts all jobs that may start now, and returns them."""
        started: list[tuple[WaitingJob, Decision]] = []
        left: list[WaitingJob] = []
        refused = set[object]()
        head_waits, tried = False, 0
        for place, waiting in enumerate(self._waiting):
            kind = waiting.job.shape, waiting.job.pods, waiting.job.tenant
            if place >= DEPTH or tried >= MAX_TRIED or kind in refused:
                left.append(waiting)
                continue
            made = self._cluster.made(waiting.job)
            ahead = self._ahead(made, now) if head_waits else None
            tried += head_waits
            decision = self._cluster.try_made(made, now, ahead)
            if decision.placed:
                started.append((waiting, decision))
                if not head_waits:
                    self._head_started(waiting.job, now)
                continue
            left.append(waiting)
            if not decision.diagnosis.held_back:
                refused.add(kind)
            if not head_waits:
                head_waits = True
                self._set_head(made, now)
        self._waiting = left
        return started

    def _ahead(self, made: Job, now: float) -> Reservation | None:
        head = self._head
        if head is None or self._backfill.goes_ahead(made, head, now):
            return None
        self._head = head = self._backfill.current(head, now)
        return head

    def _set_head(self, made: Job, now: float) -> None:
        held = self._head if self._head is not None and self._head.gang == made.key else None
        if held is None:
            self._first_promise, self._longest = math.inf, 0.0
        self._head = self._backfill.plan(
            made, held, self._cluster.planner, self._cluster.ledger.snapshot(), now, pause=0.0
        )
        if self._head is not None:
            if self._first_promise == math.inf:
                ends = self._cluster.ledger.nodes.pods.expected_ends
                runtimes = ends.runtime[ends.runtime < math.inf]
                self._longest = float(runtimes.max(initial=0.0))
            self._first_promise = min(self._first_promise, self._head.starts_at)

    def _head_started(self, job: TraceJob, now: float) -> None:
        if self._head is None or self._head.gang != self._cluster.made(job).key:
            return
        self.heads.append(HeadRecord(job.name, self._first_promise, now, self._longest))
        self._head = None
