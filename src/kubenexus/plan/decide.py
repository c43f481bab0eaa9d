"""`decide(job, snapshot, now) -> Decision`: pure, deterministic, all or nothing.

`PodPlacer` finds the best node for a single pod. `GangPlanner` plans a gang as a whole, in a transaction that is rolled
back. `commit` writes a decision into the ledger.
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST
from kubenexus.api.gangs.levels import DEFAULT_LEVELS, TopologyLevel
from kubenexus.base.errors import Malformed
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.cycle.nominated_pods import filter_with_nominated_pods
from kubenexus.framework.decision import Decision, Diagnosis, GangDiagnosis, Nomination, Preemption, Victim
from kubenexus.framework.job import SINGLE_POD_VIEW, Job, JobView
from kubenexus.framework.plugin_results import PluginError
from kubenexus.framework.pod_limits import POD_LIMITS
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.framework.verdict import Code
from kubenexus.plan.backfill.backfill_check import BackfillCheck
from kubenexus.plan.backfill.expected_start import reserve_at_start
from kubenexus.plan.gang.planner import GangPlanner
from kubenexus.plan.gang.reservation import RESERVED, Reservation, ReservationCheck, reserve
from kubenexus.plan.gang.solver import GangResult
from kubenexus.plan.place_pod import PodPlacer, PodResult
from kubenexus.plan.preemption.default_preemption import CandidateLimits, DefaultPreemption
from kubenexus.plan.preemption.gang_preemption import GangPreemption
from kubenexus.plan.preemption.group_victims import with_their_groups
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plan.reserved_capacity import (
    decide_over_others,
    decide_with_own,
    lifted,
    own_capacity,
    own_reservations,
    without_covered,
)
from kubenexus.plan.tier_limits import both, open_rows
from kubenexus.plugins.workload.signed import workload_of
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord, of_daemon_set
from kubenexus.state.reservations.table import ReservedCapacity
from kubenexus.state.snapshot import Snapshot, StaleSnapshot

CLASSIFIER = "ProfileClassifier"  # the plugin by which a profile classifies pods


class Planner:
    """Decides for one profile.

    It keeps only caches, which change no result: the class cache, and what it counted for the last reservation.
    """

    def __init__(
        self,
        profile_plugins: ProfilePlugins,
        class_cache: ClassCache | None = None,
        levels: Sequence[TopologyLevel] = DEFAULT_LEVELS,
        preemption: CandidateLimits | None = None,
        gang_preemption: PreemptionPolicy | None = None,
        *,
        upstream_reasons: bool = True,
    ) -> None:
        self.profile_plugins = profile_plugins
        # Not `or`: an empty cache is false.
        self.class_cache = ClassCache(profile_plugins) if class_cache is None else class_cache
        self._pod_placer = PodPlacer(self.class_cache, upstream_reasons=upstream_reasons)
        self.levels = levels
        self._gangs = GangPlanner(self.class_cache, self._pod_placer, levels)
        self._reservation_check: ReservationCheck | BackfillCheck | None = None
        self._preemption = None if preemption is None else DefaultPreemption(self.class_cache, preemption)
        self._gang_preemption = (
            None
            if gang_preemption is None
            else GangPreemption(self.class_cache, self._pod_placer, self._gangs, levels, gang_preemption)
        )
        self._classifies = CLASSIFIER in profile_plugins.signing

    def decide(
        self,
        job: Job,
        snapshot: Snapshot,
        now: float,
        reserved: Reservation | None = None,
        *,
        spared: Collection[str] = frozenset(),
    ) -> Decision:
        """Returns placements for as many members as fit, if these are at least `job.minimum`; else the reasons, and
        perhaps pods that would have to go first (`Decision.preemption`). `spared` are UIDs of pods that may not go.

        `reserved` is the reservation of a gang before this job. If the best placements would delay that gang, `decide`
        looks for others that do not, and refuses the job if there are none.

        Called by the scheduling loop, the simulator, `explain` and tests. Changes nothing, and reads no clock but
        `now`.
        """
        allowed = open_rows(job, snapshot)
        if allowed is None:
            return self._decide_within(None, job, snapshot, now, reserved, spared)
        return allowed.explained(self._decide_within(allowed.rows, job, snapshot, now, reserved, spared))

    def _decide_within(
        self,
        rows: Any,
        job: Job,
        snapshot: Snapshot,
        now: float,
        reserved: Reservation | None,
        spared: Collection[str],
    ) -> Decision:
        """Returns the decision on these rows, or on all (None)."""
        own = own_capacity(job, snapshot.reservations) if snapshot.reservations else []
        decision = self._decide_with(own, job, snapshot, now, rows)
        if not decision.placed and snapshot.reservations:
            decision = decide_over_others(own, job, snapshot, decision, partial(self._decide, job, snapshot, now), rows)
            if decision.placed:
                return decision
        if not decision.placed and self._gang_preemption is not None:
            if snapshot.reservations:
                owned = own_reservations(job, snapshot.reservations)
                spared = {*spared, *snapshot.reservation_users(owned, job.priority)}
            return self._with_preemption(decision, own, job, snapshot, spared, rows)
        if reserved is None or not decision.placed or self._pinned(job, snapshot):
            return decision
        return self._beside_reservation(reserved, decision, own, job, snapshot, rows)

    def _beside_reservation(
        self,
        reserved: Reservation,
        decision: Decision,
        own: list[ReservedCapacity],
        job: Job,
        snapshot: Snapshot,
        rows: Any,
    ) -> Decision:
        """Returns the decision, or another, that does not delay the gang for which capacity is reserved; a refusal if
        there is none."""
        now, reservation_check = decision.decided_at, self._reservation_check
        if reservation_check is None or not reservation_check.still(reserved, snapshot):
            reservation_check = self._reservation_check = (
                BackfillCheck(reserved, snapshot)
                if reserved.is_timed
                else ReservationCheck(reserved, self.class_cache, snapshot, self.levels)
            )
        if not reservation_check.is_delayed_by(without_covered(decision, own) if own else decision, job):
            return decision
        for within in reservation_check.alternative_rows(decision, job):
            other = self._decide_with(own, job, snapshot, now, both(within, rows))
            if other.placed and not reservation_check.is_delayed_by(without_covered(other, own) if own else other, job):
                return other
        if job.minimum <= len(job.hold_keys) < len(job.pods):  # members beyond the minimum may wait by themselves
            needed = msgspec.structs.replace(job, pods=job.pods[: len(job.hold_keys)])
            other = self._decide(needed, snapshot, now, both(reservation_check.own(job), rows))
            if other.placed and not reservation_check.is_delayed_by(other, job):
                return other
        diagnosis = Diagnosis(
            snapshot.nodes.count,
            refused_by=(RESERVED,),
            message=reserved.sentence(),
            detail=reserved.detail(),
            detail_for=reserved.namespace,
            held_back=True,
        )
        return Decision(
            job.key, Code.UNSCHEDULABLE, snapshot.generation, now, diagnosis=diagnosis, workload=decision.workload
        )

    def reserve(self, job: Job, gang_diagnosis: GangDiagnosis, snapshot: Snapshot) -> Reservation:
        """Returns the reservation for a gang that `decide` just refused. What is reserved for it already counts as
        free."""
        own = own_capacity(job, snapshot.reservations) if snapshot.reservations else []
        with lifted(own, snapshot):
            return reserve(job, gang_diagnosis, self.class_cache, snapshot, self.levels)

    def reserve_at_start(self, job: Job, snapshot: Snapshot, now: float, ahead: float) -> Reservation | None:
        """Returns the reservation for a job that `decide` just refused, at the time within `ahead` seconds when it is
        expected to fit; None if the expected ends of other pods do not tell."""
        own = own_capacity(job, snapshot.reservations) if snapshot.reservations else []
        with lifted(own, snapshot):
            return reserve_at_start(job, self.class_cache, snapshot, self.levels, now, ahead)

    def _pinned(self, job: Job, snapshot: Snapshot) -> bool:
        """Whether the job is a DaemonSet's pod on its node: a reservation does not hold it back.

        Such a pod has no other node, and the node is incomplete without it. Any pod may name a node, so that alone is
        not enough. An owner reference can be forged where no admission rule forbids it. Such a pod takes its requests
        on the one node that it names, and the tenant has to delete and create pods to go on.
        """
        only = len(job.pods) == 1 and of_daemon_set(job.pods[0])
        return only and self.class_cache.lookup(job.pods[0], snapshot.nodes).node_names is not None

    def plan_entries(self, job: Job, snapshot: Snapshot, now: float) -> Decision:
        """Returns nodes for the entries of a reservation, which `job` has as pods. No capacity that is reserved already
        counts as free, also not that of the same owner, and nothing is preempted."""
        return self._decide(job, snapshot, now)

    def _decide_with(
        self, own: list[ReservedCapacity], job: Job, snapshot: Snapshot, now: float, within: Any = None
    ) -> Decision:
        """Decides for a job that may use these entries of reserved capacity."""
        if not own:
            return self._decide(job, snapshot, now, within)
        return decide_with_own(own, job, snapshot, partial(self._decide, job, snapshot, now), within)

    def _decide(self, job: Job, snapshot: Snapshot, now: float, within: Any = None) -> Decision:
        if len(job.pods) < job.minimum:
            missing = f"{len(job.pods)} of at least {job.minimum} members exist"
            diagnosis = Diagnosis(snapshot.nodes.count, message=missing)
            return Decision(
                job.key, Code.PENDING, snapshot.generation, now, diagnosis=diagnosis, workload=self._workload(job)
            )
        if len(job.pods) > 1 or job.topology != NO_TOPOLOGY_REQUEST:
            return self._gang(job, snapshot, now, within)
        view = SINGLE_POD_VIEW
        if job.hold_keys or job.bound_nodes:
            placed = job.bound_rows(snapshot.nodes.row_of)
            view = JobView(1 + len(placed), placed, frozenset(job.hold_keys))
        # Without a transaction: no other member follows that would have to see the placement.
        result = self._pod_placer.place(job.pods[0], snapshot, view, within)
        placements = () if result.placement is None else (result.placement,)
        decision = Decision(
            job.key,
            result.code,
            snapshot.generation,
            now,
            placements,
            result.diagnosis,
            result.error,
            workload=result.workload or self._workload(job),
        )
        may_preempt = self._preemption is not None and not job.is_gang and within is None
        return self._post_filter(decision, job.pods[0], snapshot) if may_preempt else decision

    def _post_filter(self, decision: Decision, pod: Pod, snapshot: Snapshot) -> Decision:
        """Returns the decision about a pod that no node fits, with what preemption finds."""
        if decision.code not in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE) or not snapshot.nodes.count:
            return decision
        try:
            classified = self.class_cache.lookup(pod, snapshot.nodes)
        except Malformed:
            return decision
        if self._preemption is None or (classified.rejection is not None and classified.rejection.plugin == POD_LIMITS):
            return decision
        yielding = filter_with_nominated_pods(pod, classified.table, snapshot)
        found = self._preemption.preempt(classified, snapshot, decision.decided_at, yielding)
        chosen = found.chosen
        preemption = None
        if chosen is not None:
            grouped = pod.spec.scheduling_group is not None
            records = with_their_groups(chosen.victims, snapshot) if grouped else chosen.victims
            victims = tuple(Victim(each.key, each.uid) for each in records)
            preemption = Preemption((Nomination(pod.key, chosen.node),), victims, chosen.pdb_violations)
        return msgspec.structs.replace(
            decision,
            diagnosis=msgspec.structs.replace(decision.diagnosis, post_filter=found.message),
            preemption=preemption,
            alone=found.alone or preemption is not None,
            clears_nomination=found.clears_nomination and bool(pod.status.nominated_node_name),
        )

    def _with_preemption(
        self,
        decision: Decision,
        own: Sequence[ReservedCapacity],
        job: Job,
        snapshot: Snapshot,
        spared: Collection[str],
        rows: Any,
    ) -> Decision:
        """Returns the decision about a job that does not fit, with what GangPreemption finds."""
        if self._gang_preemption is None or decision.code is not Code.UNSCHEDULABLE or not snapshot.nodes.count:
            return decision
        with lifted(own, snapshot):
            found = self._gang_preemption.preempt(job, snapshot, decision.decided_at, spared, rows)
        if found is None:
            return decision
        return msgspec.structs.replace(
            decision,
            diagnosis=msgspec.structs.replace(decision.diagnosis, post_filter=found.message),
            preemption=found.preemption,
            alone=found.alone,
            clears_nomination=found.clears_nomination and any(pod.status.nominated_node_name for pod in job.pods),
        )

    def _gang(self, job: Job, snapshot: Snapshot, now: float, within: Any) -> Decision:
        try:
            outcome = self._gangs.plan(job, snapshot, within)
        except Malformed as problem:
            outcome = GangResult(
                refusal=PodResult(Code.UNRESOLVABLE, Diagnosis(snapshot.nodes.count, message=str(problem)))
            )
        except PluginError as failure:
            outcome = GangResult(refusal=self._pod_placer.failed(failure, snapshot.nodes))
        refusal, gang_diagnosis, diagnosis = outcome.refusal, outcome.gang_diagnosis, Diagnosis(snapshot.nodes.count)
        if gang_diagnosis is not None:
            blamed = tuple(sorted(outcome.unschedulable_plugins))
            diagnosis = Diagnosis(snapshot.nodes.count, refused_by=blamed, message=gang_diagnosis.sentence())
        elif refusal is not None:
            diagnosis = refusal.diagnosis
        code = Code.SUCCESS if outcome.placements else refusal.code if refusal is not None else Code.UNSCHEDULABLE
        error = "" if refusal is None else refusal.error
        return Decision(
            job.key,
            code,
            snapshot.generation,
            now,
            outcome.placements,
            diagnosis,
            error,
            gang_diagnosis=gang_diagnosis,
            workload=self._workload(job),
        )

    def _workload(self, job: Job) -> str:
        """Returns the kind of work of the job, where no class of it is known."""
        return str(workload_of(job.pods[0]).type) if self._classifies and job.pods else ""


def commit(decision: Decision, job: Job, ledger: Ledger, now: float) -> list[PodRecord]:
    """Writes all placements of the decision into the ledger as Assumed, in one transaction, and returns the records.

    Called right after `decide`. Raises StaleSnapshot if the ledger has changed since the decision's snapshot.
    """
    if decision.generation != ledger.generation:
        raise StaleSnapshot(f"decision of generation {decision.generation}, ledger at {ledger.generation}")
    pods = {pod.key: pod for pod in job.pods}
    with ledger.transaction() as transaction:
        for placement in decision.placements:
            given = placement.assignment
            transaction.place(
                pods[placement.pod],
                placement.node,
                placement.footprint,
                given.device_shares,
                given.volumes,
                given.claims,
            )
        records = transaction.commit(now)
    if ledger.reservations:
        ledger.claim(records, own_capacity(job, ledger.reservations))
    return records
