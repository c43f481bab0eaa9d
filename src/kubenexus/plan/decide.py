"""`decide(job, snapshot, now) -> Decision`: pure, deterministic, all or nothing.

A single pod is a job of one and gets the best node; a gang is planned as one thing (`plan.gang`), on a private attempt
that is taken back. Committing a decision is another step (`commit`).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from kubenexus.api.gangs.claim import UNSAID
from kubenexus.api.gangs.levels import LEVELS, Level
from kubenexus.base.errors import Malformed
from kubenexus.cycle.bench import Bench
from kubenexus.framework.contract import PluginFailedError
from kubenexus.framework.decision import Certificate, Decision, Diagnosis
from kubenexus.framework.job import ALONE, Job, JobView
from kubenexus.framework.profile import Lineup
from kubenexus.framework.verdict import Code
from kubenexus.plan.gang.planner import GangPlanner
from kubenexus.plan.gang.quest import Outcome
from kubenexus.plan.gang.stake import RESERVED, Reservation, Stake, reserve
from kubenexus.plan.seat import Seat, Usher
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord, of_daemon_set
from kubenexus.state.snapshot import Snapshot, StaleSnapshot


class Planner:
    """One for each profile. Its only memory are caches, the bench's and what was counted of the last reservation, which
    change no answer."""

    def __init__(self, lineup: Lineup, bench: Bench | None = None, levels: Sequence[Level] = LEVELS) -> None:
        self.lineup = lineup
        self.bench = Bench(lineup) if bench is None else bench  # one without classes is false
        self._usher = Usher(self.bench)
        self._levels = levels
        self._gangs = GangPlanner(self.bench, self._usher, levels)
        self._stake: Stake | None = None

    def decide(self, job: Job, snapshot: Snapshot, now: float, reserved: Reservation | None = None) -> Decision:
        """As many members as fit if they are at least `job.minimum`; else none, with the first refusal's reasons.
        `reserved` is what a gang before this job waits for: it is not to be pushed back.

        Called by the loop, the simulator, `explain` and tests. Changes nothing; `now` is the only clock it has.
        """
        decision = self._decide(job, snapshot, now)
        if reserved is None or not decision.placed or self._pinned(job, snapshot):
            return decision
        stake = self._stake
        if stake is None or not stake.still(reserved, snapshot):
            stake = self._stake = Stake(reserved, self.bench, snapshot, self._levels)
        if not stake.hurt_by(decision, job):
            return decision
        for within in stake.elsewhere(decision, job):
            other = self._decide(job, snapshot, now, within)
            if other.placed and not stake.hurt_by(other, job):
                return other
        if job.minimum <= len(job.holes) < len(job.pods):  # those that the gang can do without wait by themselves
            needed = msgspec.structs.replace(job, pods=job.pods[: len(job.holes)])
            other = self._decide(needed, snapshot, now, stake.own(job))
            if other.placed and not stake.hurt_by(other, job):
                return other
        diagnosis = Diagnosis(
            snapshot.nodes.count,
            refused_by=(RESERVED,),
            message=reserved.sentence(),
            detail=reserved.detail(),
            detail_for=reserved.namespace,
            held_back=True,
        )
        return Decision(job.key, Code.UNSCHEDULABLE, snapshot.generation, now, diagnosis=diagnosis)

    def reserve(self, job: Job, certificate: Certificate, snapshot: Snapshot) -> Reservation:
        """What a gang waits for that was just refused."""
        return reserve(job, certificate, self.bench, snapshot, self._levels)

    def _pinned(self, job: Job, snapshot: Snapshot) -> bool:
        """A daemon has no other node to go to, and its node is not the same without it. Any pod may name a node, so
        that alone does not count. An owner reference can be forged, too, where no admission rule forbids it: such a pod
        takes what it asks for on the one node that it names, and the tenant has to delete and make pods to go on."""
        only = len(job.pods) == 1 and of_daemon_set(job.pods[0])
        return only and self.bench.look(job.pods[0], snapshot.nodes).only is not None

    def _decide(self, job: Job, snapshot: Snapshot, now: float, within: Any = None) -> Decision:
        if len(job.pods) < job.minimum:
            missing = f"{len(job.pods)} of at least {job.minimum} members exist"
            diagnosis = Diagnosis(snapshot.nodes.count, message=missing)
            return Decision(job.key, Code.PENDING, snapshot.generation, now, diagnosis=diagnosis)
        if len(job.pods) > 1 or job.topology != UNSAID:
            return self._gang(job, snapshot, now, within)
        view = JobView(seated=frozenset(job.holes)) if job.holes else ALONE
        seat = self._usher.seat(job.pods[0], snapshot, view, within)  # nobody after it has to see it: no need to write
        placements = () if seat.placement is None else (seat.placement,)
        return Decision(job.key, seat.code, snapshot.generation, now, placements, seat.diagnosis, seat.error)

    def _gang(self, job: Job, snapshot: Snapshot, now: float, within: Any) -> Decision:
        try:
            outcome = self._gangs.plan(job, snapshot, within)
        except Malformed as problem:
            outcome = Outcome(refusal=Seat(Code.UNRESOLVABLE, Diagnosis(snapshot.nodes.count, message=str(problem))))
        except PluginFailedError as failure:
            outcome = Outcome(refusal=self._usher.failed(failure, snapshot.nodes))
        refusal, certificate, diagnosis = outcome.refusal, outcome.certificate, Diagnosis(snapshot.nodes.count)
        if certificate is not None:
            blamed = tuple(sorted(outcome.blamed))
            diagnosis = Diagnosis(snapshot.nodes.count, refused_by=blamed, message=certificate.sentence())
        elif refusal is not None:
            diagnosis = refusal.diagnosis
        code = Code.SUCCESS if outcome.placements else refusal.code if refusal is not None else Code.UNSCHEDULABLE
        error = "" if refusal is None else refusal.error
        return Decision(
            job.key, code, snapshot.generation, now, outcome.placements, diagnosis, error, certificate=certificate
        )


def commit(decision: Decision, job: Job, ledger: Ledger, now: float) -> list[PodRecord]:
    """Every placement of the decision becomes Assumed, in one step. Called right after `decide`, before any other
    transition of the ledger: a decision on an older state is refused."""
    if decision.generation != ledger.generation:
        raise StaleSnapshot(f"decision of generation {decision.generation}, ledger at {ledger.generation}")
    pods = {pod.key: pod for pod in job.pods}
    with ledger.attempt() as attempt:
        for placement in decision.placements:
            given = placement.assignment
            attempt.place(pods[placement.pod], placement.node, placement.footprint, given.takes, given.volumes)
        return attempt.keep(now)
