"""Plans a whole gang: counts how many members each node takes, and lets `GangSolver` choose a domain and nodes."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.gangs.levels import DEFAULT_LEVELS, TopologyLevel
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.decision import Diagnosis
from kubenexus.framework.job import Job, JobView
from kubenexus.framework.member_constraints import MemberRelation
from kubenexus.framework.verdict import Code
from kubenexus.plan.diagnose import not_looked_at
from kubenexus.plan.gang.assign_members import MemberAssigner, NotAssignable
from kubenexus.plan.gang.backtracking import BacktrackingSearch, MemberError
from kubenexus.plan.gang.gang_limits import (
    GANG_LIMITS,
    MAX_MEMBERS,
    GangLimitError,
    too_many_members,
    too_many_requests,
)
from kubenexus.plan.gang.member_classes import MemberClass, count_capacity, group_members, member_constraints
from kubenexus.plan.gang.multi_class.packing_problem import WorkBudget
from kubenexus.plan.gang.solver import GangResult, GangSolver
from kubenexus.plan.gang.topology import beside, candidate_levels
from kubenexus.plan.place_pod import PodPlacer, PodResult
from kubenexus.plan.promised_capacity import promised_to_others
from kubenexus.queue.fair.job_request import MAX_DIFFERENT, is_counted
from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import Snapshot

FEW_NOMINATED = 8  # nominated pods that a plan counts without looking at their rows first


class GangPlanner:
    """Plans the gangs of one profile, without state. `levels` are the topology levels, the innermost first."""

    def __init__(
        self, class_cache: ClassCache, pod_placer: PodPlacer, levels: Sequence[TopologyLevel] = DEFAULT_LEVELS
    ) -> None:
        self._class_cache, self._pod_placer, self._levels = class_cache, pod_placer, levels
        self.work = class_cache.work

    def plan(self, job: Job, snapshot: Snapshot, within: Any = None) -> GangResult:
        """Returns placements for at least the minimum of members, or a diagnosis. Called by `Planner.decide`.

        Restores the columns before it returns. `within` is a mask over the rows that it may use; None: all.
        """
        try:
            return self._within_limits(job, snapshot, within)
        except GangLimitError as limit:
            diagnosis = Diagnosis(snapshot.nodes.count, refused_by=(GANG_LIMITS,), message=str(limit))
            return GangResult(refusal=PodResult(Code.UNSCHEDULABLE, diagnosis))

    def _within_limits(self, job: Job, snapshot: Snapshot, within: Any) -> GangResult:
        """Plans the first MAX_MEMBERS members; the next decisions place the others."""
        if job.minimum > MAX_MEMBERS:
            raise too_many_members(job.minimum)
        if snapshot.queues.is_active and not is_counted(job):
            raise too_many_requests(MAX_DIFFERENT)
        if len(job.pods) > MAX_MEMBERS:
            job = msgspec.structs.replace(job, pods=job.pods[:MAX_MEMBERS])
        with snapshot.attempt() as transaction:
            try:
                promised = self._promised(job, snapshot)
                for row, nominee in promised:
                    transaction.add_pod(row, nominee)  # capacity that is promised to other pods is not free
                return self._plan(job, snapshot, within, frozenset(nominee.key for _, nominee in promised))
            except MemberError as failure:
                return GangResult(refusal=failure.result)

    def _promised(self, job: Job, snapshot: Snapshot) -> list[tuple[int, PodRecord]]:
        """Returns the nominated pods whose capacity no member may take. Of many only those on rows that some member
        fits without them: nearly all nominated pods wait on rows that are full, and each costs 0.1 ms."""
        by_row = promised_to_others(job, snapshot)
        promised = [(row, nominee) for row, nominees in by_row.items() for nominee in nominees]
        if len(promised) <= FEW_NOMINATED:
            return promised
        classes = group_members(job.pods, self._class_cache, snapshot.nodes, WorkBudget(), _view(job, snapshot))
        fits = np.logical_or.reduce([each.classified.table.feasible for each in classes])
        return [(row, nominee) for row, nominee in promised if fits[row]]

    def _plan(self, job: Job, snapshot: Snapshot, within: Any, promised: frozenset[str]) -> GangResult:
        columns, budget = snapshot.nodes, WorkBudget()
        view = _view(job, snapshot, promised)
        member_classes = group_members(job.pods, self._class_cache, columns, budget, view)
        failure = self._failure(member_classes, snapshot, view) or self._hopeless(job, member_classes, snapshot, view)
        if failure is not None:
            return GangResult(refusal=failure)
        result = self._solve(job, member_classes, snapshot, within, budget=budget, view=view, promised=promised)
        if not result.placements:
            for said in [not_looked_at(each.classified, columns) for each in member_classes]:
                if said:  # there may be other nodes: the gang is tried again soon
                    return GangResult(refusal=PodResult(Code.ERROR, Diagnosis(columns.count), error=said))
        return result

    def _solve(
        self,
        job: Job,
        member_classes: list[MemberClass],
        snapshot: Snapshot,
        within: Any,
        *,
        budget: WorkBudget,
        view: JobView,
        promised: frozenset[str],
    ) -> GangResult:
        columns = snapshot.nodes
        ties = member_constraints(member_classes, columns)
        for member_class in member_classes:
            count_capacity(
                member_class,
                columns,
                freely={constraint.plugin for constraint in ties if constraint.relation is MemberRelation.SPREAD},
            )
        together = [constraint.topology for constraint in ties if constraint.relation is MemberRelation.AFFINITY]
        joined = beside(job, self._levels, columns)
        within = joined if within is None else within if joined is None else within & joined
        levels = candidate_levels(job.topology, together, self._levels, columns)
        assigner = MemberAssigner(self._class_cache, snapshot)
        solver = GangSolver(job, member_classes, levels, columns, budget, assigner, allowed_rows=within)
        others = [constraint for constraint in ties if constraint.relation is not MemberRelation.AFFINITY]
        if len(others) < 2 and not any(constraint.relation is MemberRelation.OTHER for constraint in others):
            with suppress(NotAssignable):
                return solver.pack_classes() if len(member_classes) > 1 else solver.fill_one_class(others)
        return solver.search_members(BacktrackingSearch(self._pod_placer, snapshot, promised, view.placed))

    def _failure(self, member_classes: Sequence[MemberClass], snapshot: Snapshot, view: JobView) -> PodResult | None:
        """Returns the error of a plugin that fails for a member: it fails the gang, since the result is not known."""
        for member_class in member_classes:
            table = member_class.classified.table
            if table.may_fail or table.score_error is not None or member_class.classified.rejection is not None:
                result = self._pod_placer.place(member_class.classified.pod, snapshot, view)
                if result.code is Code.ERROR:
                    return result
        return None

    def _hopeless(
        self, job: Job, member_classes: Sequence[MemberClass], snapshot: Snapshot, view: JobView
    ) -> PodResult | None:
        """Returns the refusal of members that no capacity would help, if too few others are left for the minimum.

        The gang lacks no capacity, so none is reserved for it.
        """
        refused = [member_class for member_class in member_classes if member_class.classified.rejection is not None]
        if (
            not refused
            or sum(member_class.size for member_class in member_classes)
            - sum(member_class.size for member_class in refused)
            >= job.minimum
        ):
            return None
        return self._pod_placer.place(refused[0].classified.pod, snapshot, view)


def _view(job: Job, snapshot: Snapshot, promised: frozenset[str] = frozenset()) -> JobView:
    rows = job.bound_rows(snapshot.nodes.row_of)
    return JobView(len(job.pods) + len(rows) if rows else 1, rows, promised)  # a gang that begins counts as one pod
