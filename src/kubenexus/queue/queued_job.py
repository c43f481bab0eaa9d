"""A job in the waiting room, and the ticket it gets when its turn comes."""

import enum
import math
from typing import TYPE_CHECKING, Any

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.base.heap import Slot
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict

if TYPE_CHECKING:
    from kubenexus.queue.job_class import JobClass


class QueueState(enum.Enum):
    """Where a job is. The first four are values of the label `queue` in kube-scheduler's metrics."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"
    GONE = "gone"

    __hash__ = object.__hash__  # there is one of each, and they are keys of what is counted all the time


class SchedulingAttempt(msgspec.Struct, frozen=True, gc=False):
    """What `pop` hands out and `done` wants back. The number tells an old turn of a job that was deleted and made
    again from the new one's. `after_timeout`: it is tried only because it has waited for so long."""

    id: int
    job: Job
    attempt_number: int
    since: float
    after_timeout: bool = False


class QueuedJob:
    """One for each job, however many members it has. It stands in a line, or at a gate, or is in flight.

    `added_at` is its age by the API server's timestamps, which orders jobs of one priority. `ready` is from when it may
    be tried, which is what aging counts: not the time behind a gate (`opened` is when the last one opened), nor that of
    a gang without all its members. `number` breaks ties: jobs made in the same second go in the order we heard of them,
    every time. `bind_failures` counts binds that failed in a row; `activate_requested` is set when somebody wants the
    job tried again while it is in flight, and `changed` when its pods changed meanwhile. `hold` is
    why the job may not be tried although its gates are open: a gang waits for members.
    """

    __slots__ = (
        "activate_requested",
        "added_at",
        "attempt_id",
        "attempts",
        "bind_failures",
        "changed",
        "gate_checked_at",
        "gate_verdict",
        "hold",
        "job",
        "job_class",
        "number",
        "opened",
        "order",
        "ready",
        "slot",
    )

    def __init__(self, job: Job, since: float, number: int, hold: Verdict | None = None) -> None:
        self.job, self.hold = job, hold
        self.added_at = self.ready = since
        self.opened = -math.inf
        self.number = number
        self.order: tuple[Any, ...] = ()
        self.attempts = 0
        self.bind_failures = 0
        self.attempt_id = 0
        self.changed = False
        self.activate_requested = False
        self.gate_verdict: Verdict | None = None
        self.gate_checked_at = 0.0
        self.job_class: JobClass | None = None
        self.slot: Slot = []

    def may_be_tried_from(self, moment: float, now: float) -> None:
        """The API server's timestamps say so; `math.inf`: a gate has just opened. What they said before is forgotten: a
        gang that exchanges its members is as old as those it has, or an old gang could lend its age to new pods."""
        if moment > now:
            self.opened = now
        self.ready = max(self.opened, min(moment, now))

    @property
    def state(self) -> QueueState:
        if self.attempt_id:
            return QueueState.IN_FLIGHT
        if self.gate_verdict is not None:
            return QueueState.GATED
        return QueueState.GONE if self.job_class is None else self.job_class.state

    @property
    def require_class(self) -> "JobClass":
        """The line it stands in, or took off from."""
        if self.job_class is None:
            raise KubeNexusError(f"job {self.job.key} stands in no line")
        return self.job_class

    @property
    def pods(self) -> int:
        return len(self.job.pods)
