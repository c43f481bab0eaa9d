"""A job in the scheduling queue, and the scheduling attempt that `pop` returns for it."""

import enum
import math
from typing import TYPE_CHECKING, Any

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.base.heap import Slot
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.member_signatures import MemberSignatures

if TYPE_CHECKING:
    from kubenexus.queue.fair.job_request import JobRequest
    from kubenexus.queue.job_class import JobClass


class QueueState(enum.Enum):
    """The state of a job. The first four are values of the label `queue` in kube-scheduler's metrics."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"
    GONE = "gone"

    __hash__ = object.__hash__  # each is one object, and a key of counters in hot code


class SchedulingAttempt(msgspec.Struct, frozen=True, gc=False):
    """Returned by `pop`, and passed to `done`. The id distinguishes it from an attempt for a deleted job of the same
    key. `after_timeout`: the job is tried only because it waited for so long."""

    id: int
    job: Job
    attempt_number: int
    since: float
    after_timeout: bool = False


class QueuedJob:
    """One job, with any number of members. It is in a job class, gated, or in flight.

    added_at            its age by the API server's timestamps, which orders jobs of one priority
    ready               from when it may be tried, for aging: without the time at a gate, and of an incomplete gang
    opened              when its last gate opened
    boost               what its tenant adds within its priority (`QueueProfile.boost`)
    number              breaks ties: jobs created in the same second go in the order in which they were added
    bind_failures       binds that failed in a row
    activate_requested  `activate` was called while it was in flight
    changed             its pods changed while it was in flight
    members             the signatures of the members of a gang, as far as they were signed
    request             what it asks for in sum, with the version of the job; None if that of its class counts
    hold                why it may not be tried although its gates are open: a gang lacks members, say
    """

    __slots__ = (
        "activate_requested",
        "added_at",
        "attempt_id",
        "attempts",
        "bind_failures",
        "boost",
        "changed",
        "gate_checked_at",
        "gate_verdict",
        "hold",
        "job",
        "job_class",
        "members",
        "number",
        "opened",
        "order",
        "ready",
        "request",
        "slot",
    )

    def __init__(self, job: Job, since: float, number: int, hold: Verdict | None = None) -> None:
        self.job, self.hold = job, hold
        self.added_at = self.ready = since
        self.opened = -math.inf
        self.number = number
        self.boost = 0
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
        self.members: MemberSignatures | None = None
        self.request: tuple[Job, JobRequest] | None = None

    def may_be_tried_from(self, moment: float, now: float) -> None:
        """Sets from when the job may be tried; `math.inf`: a gate has just opened. Earlier values do not count: a gang
        is as old as the members it has now, or an old gang could give its age to new pods."""
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
        """The class that the job is in, or was in before its attempt."""
        if self.job_class is None:
            raise KubeNexusError(f"job {self.job.key} stands in no line")
        return self.job_class

    @property
    def pods(self) -> int:
        return len(self.job.pods)
