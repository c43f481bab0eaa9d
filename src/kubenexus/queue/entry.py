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
    from kubenexus.queue.line import Line


class Place(enum.Enum):
    """Where a job is. The first four are values of the label `queue` in kube-scheduler's metrics."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"
    GONE = "gone"

    __hash__ = object.__hash__  # there is one of each, and they are keys of what is counted all the time


class Turn(msgspec.Struct, frozen=True, gc=False):
    """What `pop` hands out and `done` wants back. The number tells an old turn of a job that was deleted and made
    again from the new one's. `flushed`: it is tried only because it has waited for so long."""

    number: int
    job: Job
    attempt: int
    since: float
    flushed: bool = False


class Entry:
    """One for each job, however many members it has. It stands in a line, or at a gate, or is in flight.

    `since` is its age by the API server's timestamps, which orders jobs of one priority. `ready` is from when it may be
    tried, which is what aging counts: not the time behind a gate (`opened` is when the last one opened), nor that of a
    gang without all its members. `number` breaks ties: jobs made in the same second go in the order we heard of them,
    every time. `failures` counts binds that failed in a row; `recalled` is set when somebody wants the job tried again
    while it is in flight, and `changed` when its pods changed meanwhile.
    """

    __slots__ = (
        "asked_at",
        "attempts",
        "changed",
        "failures",
        "gate",
        "job",
        "line",
        "number",
        "opened",
        "order",
        "ready",
        "recalled",
        "since",
        "slot",
        "turn",
    )

    def __init__(self, job: Job, since: float, number: int) -> None:
        self.job = job
        self.since = self.ready = since
        self.opened = -math.inf
        self.number = number
        self.order: tuple[Any, ...] = ()
        self.attempts = 0
        self.failures = 0
        self.turn = 0
        self.changed = False
        self.recalled = False
        self.gate: Verdict | None = None
        self.asked_at = 0.0
        self.line: Line | None = None
        self.slot: Slot = []

    def may_be_tried_from(self, moment: float, now: float) -> None:
        """The API server's timestamps say so; `math.inf`: a gate has just opened. What they said before is forgotten: a
        gang that exchanges its members is as old as those it has, or an old gang could lend its age to new pods."""
        if moment > now:
            self.opened = now
        self.ready = max(self.opened, min(moment, now))

    @property
    def place(self) -> Place:
        if self.turn:
            return Place.IN_FLIGHT
        if self.gate is not None:
            return Place.GATED
        return Place.GONE if self.line is None else self.line.place

    @property
    def standing(self) -> "Line":
        """The line it stands in, or took off from."""
        if self.line is None:
            raise KubeNexusError(f"job {self.job.key} stands in no line")
        return self.line

    @property
    def pods(self) -> int:
        return len(self.job.pods)
