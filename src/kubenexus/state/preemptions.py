"""Preemptions under way: jobs that wait for the end of their victims, and then for their nodes."""

import enum
import math
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from kubenexus.api.gangs.job_key import namespace_of


class PreemptionEnd(enum.Enum):
    """How a preemption ended."""

    LANDED = "landed"  # the job has nodes, those of the plan or others
    GONE = "gone"  # too few members are left
    FAILED = "failed"  # a victim could not be evicted, or the job did not fit after all
    EXPIRED = "expired"  # the deadline passed
    OUTRANKED = "outranked"  # a job of higher priority took the capacity


class PendingPreemption(msgspec.Struct):
    """The preemption of a job: the node that each member will get (by UID), and the victims (by UID) that still count.

    `minimum` is how many members have to be left for the plan to make sense. After `deadline` the capacity is no longer
    kept. `evicted` are the victims that the API server was asked to end. `adopted`: this process did not begin it; it
    found nominations at the API server. `number` distinguishes it from later preemptions of the same job.
    """

    job: str
    nodes: dict[str, str]
    victims: set[str]
    priority: int = 0
    minimum: int = 1
    began: float = 0.0
    deadline: float = math.inf
    evicted: set[str] = msgspec.field(default_factory=set)
    adopted: bool = False
    number: int = 0

    @property
    def ready(self) -> bool:
        """Whether all victims are gone."""
        return not self.victims


class EndedPreemption(msgspec.Struct, frozen=True):
    """A preemption that ended, and how."""

    preemption: PendingPreemption
    end: PreemptionEnd


class Preemptions:
    """Preemptions by the key of the job. Only the ledger and the executor (`app.preemption`) write here.

        begin ──▶ waiting ──all victims gone──▶ ready ──the job has nodes──▶ landed
                     │                            │
                     └────────────────────────────┴──▶ gone, failed, expired, outranked

    Until its end a preemption keeps the capacity: the ledger nominates the members to their nodes. This is the memory
    of one process. After a restart the API server shows the same: `status.nominatedNodeName` of the members, and the
    victims that terminate.
    """

    def __init__(self) -> None:
        self._pending: dict[str, PendingPreemption] = {}
        self._by_namespace: Counter[str] = Counter()
        self._job_of: dict[str, str] = {}  # by the UID of a member
        self._waiting_for: dict[str, set[str]] = {}  # the jobs that wait for a victim, by its UID
        self._ready: list[str] = []
        self._ended: list[EndedPreemption] = []
        self._numbers = 0
        self.departures = 0  # pods that left their nodes, and were no victims

    # --- reading --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, uid: str) -> bool:
        """Returns whether the pod with this UID waits for victims."""
        pending = self.of_member(uid)
        return pending is not None and not pending.ready

    @property
    def jobs(self) -> Iterable[str]:
        """The keys of the jobs."""
        return self._pending.keys()

    def in_namespace(self, namespace: str) -> int:
        """Returns how many jobs of a namespace have one."""
        return self._by_namespace[namespace]

    def get(self, job: str) -> PendingPreemption | None:
        """Returns the preemption of a job, or None."""
        return self._pending.get(job)

    def of_member(self, uid: str) -> PendingPreemption | None:
        """Returns the preemption of the job that this pod is a member of, or None."""
        job = self._job_of.get(uid)
        return None if job is None else self._pending[job]

    def node_of(self, uid: str) -> str:
        """Returns the node that a pod waits for, or ""."""
        pending = self.of_member(uid)
        return "" if pending is None else pending.nodes[uid]

    def is_victim(self, uid: str) -> bool:
        """Returns whether a job waits for the end of this pod."""
        return uid in self._waiting_for

    @property
    def victims(self) -> Iterable[str]:
        """The UIDs of all pods that jobs wait for."""
        return self._waiting_for.keys()

    def is_current(self, pending: PendingPreemption) -> bool:
        """Returns whether this preemption is still under way."""
        found = self._pending.get(pending.job)
        return found is not None and found.number == pending.number

    def past_deadline(self, now: float) -> list[PendingPreemption]:
        return [each for each in self._pending.values() if each.deadline <= now]

    @property
    def next_deadline(self) -> float:
        """The earliest deadline, or infinity."""
        return min((each.deadline for each in self._pending.values()), default=math.inf)

    @property
    def any_news(self) -> bool:
        """Whether a preemption became ready, or ended, since the last call of `take_ready` or `take_ended`."""
        return bool(self._ready or self._ended)

    def take_ready(self) -> list[str]:
        """Returns the keys of jobs whose victims are all gone since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def take_ended(self) -> list[EndedPreemption]:
        """Returns the preemptions that ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    # --- transitions ----------------------------------------------------------------------------------------------

    def begin(
        self,
        job: str,
        nodes: Mapping[str, str],
        victims: set[str],
        *,
        priority: int = 0,
        minimum: int = 1,
        began: float = 0.0,
        deadline: float = math.inf,
    ) -> PendingPreemption:
        """Enters a preemption that was decided. One of this job that is under way is replaced, and has failed."""
        self.end(job, PreemptionEnd.FAILED)
        self._numbers += 1
        pending = PendingPreemption(
            job, dict(nodes), set(victims), priority, minimum, began, deadline, number=self._numbers
        )
        for uid in nodes:
            self.member_gone(uid)  # it may have moved from another job
        self._pending[job] = pending
        self._by_namespace[namespace_of(job)] += 1
        self._job_of.update(dict.fromkeys(nodes, job))
        for victim in victims:
            self._waiting_for.setdefault(victim, set()).add(job)
        if not victims:
            self._ready.append(job)
        return pending

    def end(self, job: str, how: PreemptionEnd) -> PendingPreemption | None:
        """Ends a preemption. Returns it, or None if there was none."""
        pending = self._pending.pop(job, None)
        if pending is None:
            return None
        namespace = namespace_of(job)
        self._by_namespace[namespace] -= 1
        if not self._by_namespace[namespace]:
            del self._by_namespace[namespace]
        for uid in pending.nodes:
            self._job_of.pop(uid, None)
        for victim in pending.victims:
            self._stop_waiting(victim, job)
        self._ended.append(EndedPreemption(pending, how))
        return pending

    def member_placed(self, uid: str) -> None:
        """Ends the preemption of a job of which a member has a node: the job was decided again."""
        job = self._job_of.get(uid)
        if job is not None:
            self.end(job, PreemptionEnd.LANDED)

    def member_gone(self, uid: str) -> None:
        """Removes a member that no longer exists, and ends the preemption if too few are left."""
        job = self._job_of.get(uid)
        if job is None:
            return
        if len(self._pending[job].nodes) <= max(self._pending[job].minimum, 1):
            self.end(job, PreemptionEnd.GONE)
        else:
            self._forget_member(uid)

    def victim_gone(self, uid: str) -> None:
        """Removes a pod that no longer counts on its node from the victims. Any pod may be one."""
        if uid not in self._waiting_for:
            self.departures += 1
            return
        for job in self._waiting_for.pop(uid):
            pending = self._pending[job]
            pending.victims.discard(uid)
            if pending.ready:
                self._ready.append(job)

    def _forget_member(self, uid: str) -> None:
        job = self._job_of.pop(uid, None)
        if job is not None:
            del self._pending[job].nodes[uid]

    def _stop_waiting(self, victim: str, job: str) -> None:
        jobs = self._waiting_for[victim]
        jobs.discard(job)
        if not jobs:
            del self._waiting_for[victim]
