"""Whether a preemption may begin now: the limits on how many are under way, and the record of evictions."""

import math
from collections.abc import Mapping
from itertools import islice
from typing import Final

import msgspec

from kubenexus.app.preemption.eviction_record import EvictionRecord
from kubenexus.base.clock import Clock
from kubenexus.framework.decision import Preemption
from kubenexus.framework.job import Job
from kubenexus.queue.gangs.waiting_pods import WaitingPods
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import CONTROLLER, PodRecord, controller_of
from kubenexus.state.preemptions import EndedPreemption, PendingPreemption, PreemptionEnd

MAX_WITHOUT_VICTIMS: Final = 1000  # jobs that are remembered until a budget allows more
JOBS_A_SECOND: Final = 64  # of them that are tried again then


class ProfileRules(msgspec.Struct, frozen=True):
    """How a profile executes preemptions. Capacity is kept for a job for `fence` seconds. `cooldown`: see
    `eviction_record`. `upstream`: as kube-scheduler; nothing is recorded, and nominations have no deadline. At most
    `limit` preemptions are under way, half of them of one namespace: every decision checks their nominated pods."""

    fence: float = 300.0
    cooldown: float = 30.0
    upstream: bool = False
    limit: int = 1024


UPSTREAM_RULES: Final = ProfileRules(math.inf, 0.0, upstream=True, limit=256)


class PreemptionRules:
    """The rules of all profiles, by name, and what they remember. Only `PreemptionExecutor` uses it."""

    def __init__(
        self, profiles: Mapping[str, ProfileRules], ledger: Ledger, waiting: WaitingPods, clock: Clock
    ) -> None:
        self._profiles, self._ledger, self._waiting, self._clock = profiles, ledger, waiting, clock
        self.record = EvictionRecord()
        self._units: dict[int, dict[str, str]] = {}  # by the preemption's number and UID: the units of evicted pods
        self._without_victims: dict[str, None] = {}  # jobs, the first to be refused first
        self._relaxed, self._next_look = 0, 0.0
        self._declined: dict[str, dict[str, str]] = {}  # by namespace: jobs that wait for the end of another, profiles

    def of(self, profile: str) -> ProfileRules:
        return self._profiles.get(profile, UPSTREAM_RULES)

    def problem(self, job: Job, preemption: Preemption) -> str:
        """Returns why a preemption may not begin now, or ""."""
        now = self._clock.now()
        if self._ledger.preemptions.get(job.key) is None and self._is_full(job.namespace, self.of(job.profile).limit):
            self._declined.setdefault(job.namespace, {})[job.key] = job.profile
            return "too many preemptions are under way"
        if self.of(job.profile).upstream:
            return ""
        until = self.record.rests_until(job.key, now)
        if until > now:
            return "not so soon after the last evictions"
        forbidden = self._forbidden(job, preemption, now)
        if forbidden:
            self.record.spare(job.key, forbidden, now)
            return "the same pods were evicted before, and nothing has changed since"
        return ""

    def victims(self, preemption: Preemption) -> list[PodRecord]:
        """Returns the records of the victims that are still the pods of the decision."""
        found = [(self._ledger.pods.get(victim.pod), victim.uid) for victim in preemption.victims]
        return [record for record, uid in found if record is not None and record.uid == uid]

    def spared(self, job: str) -> frozenset[str]:
        """Returns the UIDs of pods that must not be victims of this job now."""
        return self.record.spared(job, self._clock.now())

    # --- events ---------------------------------------------------------------------------------------------------

    def restarted(self) -> None:
        """Records that an earlier process left preemptions behind."""
        self.record.restarted(self._clock.now(), max((each.cooldown for each in self._profiles.values()), default=0.0))

    def evicted(self, pending: PendingPreemption, victim: PodRecord, preemptor: str, profile: str) -> None:
        """Records an eviction. `preemptor` is the unit of the job (`unit_of_job`)."""
        pending.evicted.add(victim.uid)
        rules = self.of(profile)
        if rules.upstream:
            return
        unit = self._unit(victim)
        self._units.setdefault(pending.number, {})[victim.uid] = unit
        self.record.evicted(pending.job, preemptor, unit, self._state, self._clock.now(), rules.cooldown)

    def budget_refused(self, pending: PendingPreemption, victim: PodRecord) -> None:
        """Records that a disruption budget did not allow an eviction: the job is decided without this victim."""
        self.record.spare(pending.job, [victim.uid], self._clock.now())

    def ended(self, ended: EndedPreemption, profile: str) -> None:
        """Records the end of a preemption."""
        pending, rules = ended.preemption, self.of(profile)
        units = self._units.pop(pending.number, {})
        if ended.end is PreemptionEnd.LANDED:
            self.record.landed(pending.job, units.values())
        elif ended.end is PreemptionEnd.GONE:
            self.record.forget(pending.job)
        elif pending.evicted and ended.end is not PreemptionEnd.OUTRANKED and not rules.upstream:
            self.record.failed(pending.job, self._clock.now(), rules.cooldown)

    def refused(self, job: Job) -> None:
        """Records a job for which no victims were found. A disruption budget may be why."""
        if len(self._ledger.disruption_budgets) and not self.of(job.profile).upstream:
            self._without_victims[job.key] = None
            while len(self._without_victims) > MAX_WITHOUT_VICTIMS:
                del self._without_victims[next(iter(self._without_victims))]

    def take_helped(self) -> list[str]:
        """Returns some jobs without victims, once a second while budgets allow more than when they were refused."""
        relaxed, now = self._ledger.disruption_budgets.relaxed, self._clock.now()
        if relaxed == self._relaxed or now < self._next_look:
            return []
        keys = list(islice(self._without_victims, JOBS_A_SECOND))
        for key in keys:
            del self._without_victims[key]
        self._next_look = now + 1.0
        self.record.spare_none()
        if not self._without_victims:
            self._relaxed = relaxed
        return keys

    def is_declined(self, job: Job) -> bool:
        """Returns whether the job waits for the end of another preemption."""
        return job.key in self._declined.get(job.namespace, ())

    def take_declined(self) -> str:
        """Returns a job that waited for the end of another preemption and may begin now, or "". Namespaces take
        turns."""
        for namespace, jobs in self._declined.items():
            key, profile = next(iter(jobs.items()))
            if not self._is_full(namespace, self.of(profile).limit):
                del self._declined[namespace], jobs[key]
                if jobs:
                    self._declined[namespace] = jobs
                return key
        return ""

    # --- reading --------------------------------------------------------------------------------------------------

    def unit_of_job(self, job: Job) -> str:
        """Returns the unit of a preemptor, as the record names it."""
        if job.is_gang:
            return job.key
        controller = controller_of(job.pods[0])
        return job.key if controller is None or not controller.uid else controller.uid

    def _unit(self, record: PodRecord) -> str:
        job = self._waiting.job_key(record.key)
        return job if job != record.key else record.labels.get(CONTROLLER, record.key)

    def _forbidden(self, job: Job, preemption: Preemption, now: float) -> list[str]:
        """Returns the UIDs of victims that the record forbids."""
        spared, state, preemptor = self.record.spared(job.key, now), self._state, self.unit_of_job(job)
        found = []
        for victim in self.victims(preemption):
            outranks = victim.priority < job.priority
            again = self.record.forbids(job.key, preemptor, self._unit(victim), state, now, outranks=outranks)
            if again or victim.uid in spared:
                found.append(victim.uid)
        return found

    def _is_full(self, namespace: str, limit: int) -> bool:
        preemptions = self._ledger.preemptions
        if len(preemptions) < limit // 2:
            return False
        return len(preemptions) >= limit or preemptions.in_namespace(namespace) >= limit // 2

    @property
    def _state(self) -> int:
        """A number that grows when nodes change, or pods that are no victims leave their nodes."""
        return self._ledger.nodes.node_changes.mark + self._ledger.preemptions.departures
