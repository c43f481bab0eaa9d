"""GangPreemption: which pods have to go so that a whole job fits, or why none would help.

A pure function of a snapshot: it evicts nothing. `app` executes the result. Nothing has to go unless the whole job then
fits, which is tried in a transaction that is rolled back.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from kubenexus.api.classification.workload import is_preemptible
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST
from kubenexus.api.gangs.levels import TopologyLevel
from kubenexus.base.errors import Malformed
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.cycle.nominated_pods import filter_with_nominated_pods
from kubenexus.framework.decision import Nomination, Preemption, Victim
from kubenexus.framework.job import Job, JobView
from kubenexus.framework.member_constraints import MemberConstraint, MemberRelation
from kubenexus.framework.plugin_results import PluginError
from kubenexus.framework.pod_limits import POD_LIMITS
from kubenexus.plan.gang.gang_limits import MAX_MEMBERS, GangLimitError
from kubenexus.plan.gang.member_classes import MemberClass, group_members, member_amounts, member_constraints
from kubenexus.plan.gang.multi_class.packing_problem import WorkBudget
from kubenexus.plan.gang.planner import GangPlanner
from kubenexus.plan.gang.topology import beside, candidate_levels
from kubenexus.plan.place_pod import PodPlacer
from kubenexus.plan.preemption import sentences
from kubenexus.plan.preemption.default_preemption import NodeOutcomes
from kubenexus.plan.preemption.free_amounts import FreeAmounts, vector
from kubenexus.plan.preemption.gang_search import GangSearch
from kubenexus.plan.preemption.gang_trials import GangTrials
from kubenexus.plan.preemption.member_counts import MemberCounts
from kubenexus.plan.preemption.pod_moves import PodMoves
from kubenexus.plan.preemption.pod_search import PodSearch
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plan.preemption.victim_choice import ChosenVictims, VictimRules
from kubenexus.plan.preemption.victim_pool import VictimPool, victim_pool
from kubenexus.plan.promised_capacity import promised_to_others
from kubenexus.plan.tier_limits import both
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.topology import domains_of_label
from kubenexus.state.view import Nodes

# What a search costs, in rows: the loop makes fewer decisions at a time after it.
ROWS: Final = 200
PODS_PER_ROW: Final = 8


class PreemptionOutcome(msgspec.Struct, frozen=True):
    """What was found for one job. `message` ends the sentence about its refusal. `alone`: the outcome is about this job
    alone, or not everything was tried. `clears_nomination`: nothing helps, so earlier nominations are void."""

    message: str
    preemption: Preemption | None = None
    alone: bool = False
    clears_nomination: bool = False


class GangPreemption:
    """Finds victims for the jobs of one profile. Pure, but for the class cache."""

    def __init__(
        self,
        class_cache: ClassCache,
        pod_placer: PodPlacer,
        gangs: GangPlanner,
        levels: Sequence[TopologyLevel],
        policy: PreemptionPolicy,
    ) -> None:
        self._class_cache, self._pod_placer, self._policy = class_cache, pod_placer, policy
        self._gangs, self._levels = gangs, levels

    def preempt(
        self, job: Job, snapshot: Snapshot, now: float, spared: Collection[str] = frozenset(), within: Any = None
    ) -> PreemptionOutcome | None:
        """Returns the outcome for a job that does not fit, or None if preemption is not concerned.

        `spared` are UIDs of pods that may not go for this job now. `within` is a mask of the rows where it may be.
        """
        if any(pod.spec.preemption_policy == "Never" for pod in job.pods):
            return PreemptionOutcome(sentences.NEVER)
        if waits_for_victims(job, snapshot):
            return PreemptionOutcome(sentences.WAITS, alone=True)
        for policy in self._policies():
            outcome = self._by_policy(job, snapshot, now, spared, policy, within)
            if outcome is None or outcome.preemption is not None:
                break
        if outcome is not None and outcome.preemption is None and self._policy.max_moves:
            outcome = self._by_moves(job, snapshot, now, spared, within) or outcome
        if outcome is None or not spared:
            return outcome
        return msgspec.structs.replace(outcome, alone=True)

    def _by_policy(
        self, job: Job, snapshot: Snapshot, now: float, spared: Collection[str], policy: PreemptionPolicy, within: Any
    ) -> PreemptionOutcome | None:
        """Returns the outcome with the victims that a policy allows. What is taken back must leave guarantees whole: if
        the search finds none among all pods that borrow, it goes on among those that can all go together."""
        for together in (False, True):
            pool = victim_pool(job, snapshot, policy, now, spared, together=together)
            self._class_cache.work.rows += ROWS + snapshot.nodes.pods.count // PODS_PER_ROW
            outcome = self._outcome(job, snapshot, pool, policy, within)
            if outcome is None or outcome.preemption is not None or not pool.takes_back:
                break
        return outcome

    def _by_moves(
        self, job: Job, snapshot: Snapshot, now: float, spared: Collection[str], within: Any
    ) -> PreemptionOutcome | None:
        """Returns the pods that have to move to other nodes, or None. A job whose own pods may move moves no others, so
        that two jobs do not move each other."""
        if any(is_preemptible(pod) for pod in job.pods):
            return None
        policy = self._policy.of_moves
        pool = victim_pool(job, snapshot, policy, now, spared)
        self._class_cache.work.rows += ROWS
        outcome = self._outcome(job, snapshot, pool, policy, within)
        return None if outcome is None or outcome.preemption is None else outcome

    def _policies(self) -> tuple[PreemptionPolicy, ...]:
        """Returns the policy. Where budgets are only preferred, victims within all budgets come first."""
        if self._policy.hard_budgets:
            return (self._policy,)
        return msgspec.structs.replace(self._policy, hard_budgets=True), self._policy

    def _outcome(
        self, job: Job, snapshot: Snapshot, pool: VictimPool, policy: PreemptionPolicy, within: Any
    ) -> PreemptionOutcome | None:
        if not len(pool):
            return PreemptionOutcome("", clears_nomination=True)
        rules = VictimRules(pool, snapshot.disruption_budgets, policy)
        try:
            if len(job.pods) > 1 or job.topology != NO_TOPOLOGY_REQUEST:
                return self._for_gang(job, snapshot, rules, within)
            return self._for_pod(job, snapshot, rules, within)
        except (Malformed, PluginError, GangLimitError):
            return None  # the decision without preemption says so

    def _for_pod(self, job: Job, snapshot: Snapshot, rules: VictimRules, within: Any) -> PreemptionOutcome | None:
        columns, pod = snapshot.nodes, job.pods[0]
        classified = self._class_cache.lookup(pod, columns)
        if classified.rejection is not None and classified.rejection.plugin == POD_LIMITS:
            return None
        # On all other rows some pod would have to go in any case, and trials there count the nominated pods.
        yielding = filter_with_nominated_pods(pod, classified.table, snapshot, everywhere=False)
        potential = both(NodeOutcomes(classified, columns, yielding).potential, within)
        amounts = member_amounts(MemberClass(classified, [pod]), columns)
        promised = promised_to_others(job, snapshot)
        free = FreeAmounts(amounts, columns, rules.pool, promised)
        need = vector(amounts, free.names)
        search = PodSearch(
            classified,
            self._class_cache,
            self._pod_placer,
            snapshot,
            rules=rules,
            free=free,
            need=need,
            promised=promised,
        )
        found = search.run(potential)
        if rules.moves:
            moves = PodMoves(job, self._pod_placer, snapshot, rules.pool)
            found = [each for each in found if moves.fit_beside_pod(each.victims.pods, each.row)]
        if not found:
            message = sentences.would_not_help(free, need, potential, cut=search.cut)
            return PreemptionOutcome(message, alone=search.cut, clears_nomination=not search.cut)
        best = found[0]
        nominations = (Nomination(pod.key, columns.names[best.row]),)
        return self._success(nominations, rules, [each.victims for each in found])

    def _for_gang(self, job: Job, snapshot: Snapshot, rules: VictimRules, within: Any) -> PreemptionOutcome | None:
        columns = snapshot.nodes
        if job.minimum > MAX_MEMBERS:
            return None
        bound_rows = job.bound_rows(columns.row_of)
        view = JobView(len(job.pods) + len(bound_rows) if bound_rows else 1, bound_rows)
        classes = group_members(job.pods[:MAX_MEMBERS], self._class_cache, columns, WorkBudget(), view)
        ties = member_constraints(classes, columns)
        near = [tie.topology for tie in ties if tie.relation is MemberRelation.AFFINITY]
        domains = candidate_levels(job.topology, near, self._levels, columns)[-1]
        beside_others = both(beside(job, self._levels, columns), within)
        possible = [_possible(each, columns) for each in classes]
        counts = MemberCounts(
            job,
            classes,
            columns,
            rules.pool,
            possible=possible if beside_others is None else [mask & beside_others for mask in possible],
            domains=domains,
            promised=promised_to_others(job, snapshot),
            apart=len(classes) == 1 and any(_one_each(tie, columns) for tie in ties),
        )
        others = [tie for tie in ties if tie.relation is not MemberRelation.AFFINITY]
        counted = len(others) < 2 and not any(tie.relation is MemberRelation.OTHER for tie in others)
        trials = GangTrials(job, self._gangs, snapshot, rules.pool, 2 * len(classes) - 1 if counted else 10, within)
        search = GangSearch(counts, trials, rules, columns, alike=len(classes) == 1)
        found = search.run()
        if rules.moves:
            moves = PodMoves(job, self._pod_placer, snapshot, rules.pool)
            found = [each for each in found if moves.fit_beside(each.victims.pods, each.placements)]
        if not found:
            message = sentences.gang_would_not_fit(counts, cut=search.cut)
            return PreemptionOutcome(message, alone=search.cut, clears_nomination=not search.cut)
        nominations = tuple(Nomination(each.pod, each.node) for each in found[0].placements)
        return self._success(nominations, rules, [each.victims for each in found])

    def _success(
        self, nominations: tuple[Nomination, ...], rules: VictimRules, found: list[ChosenVictims]
    ) -> PreemptionOutcome:
        best, *others = found
        records = sorted((rules.pool.record(index) for index in best.pods), key=_order)
        preemption = Preemption(
            nominations,
            tuple(Victim(each.key, each.uid) for each in records),
            pdb_violations=best.cost.pdb_violations,
            evicts=True,
            cost=best.cost,
            alternatives=tuple(each.cost for each in others),
            taken_back=rules.pool.queues_taken_back(best.pods),
        )
        message = sentences.have_to_move(best.cost) if rules.moves else sentences.have_to_go(best.cost)
        return PreemptionOutcome(message, preemption, alone=True)


def _order(record: PodRecord) -> tuple[int, str]:
    return record.priority, record.key


def _possible(member_class: MemberClass, columns: NodeColumns) -> Any:
    """Returns the rows where members are, or might be without some pods."""
    classified = member_class.classified
    found = NodeOutcomes(classified, columns, None).potential
    if classified.rejection is None:
        named = classified.node_names
        found |= classified.table.feasible if named is None else classified.table.feasible & Nodes(columns).named(named)
    return found


def _one_each(tie: MemberConstraint, columns: NodeColumns) -> bool:
    """Whether a constraint allows one member on a node at most. It does not on nodes without its label."""
    if tie.relation is not MemberRelation.ANTI_AFFINITY:
        return False
    codes = domains_of_label(tie.topology, Nodes(columns)).codes
    return bool(codes[columns.alive[: columns.size]].all())


def waits_for_victims(job: Job, snapshot: Snapshot) -> bool:
    """Whether victims that were chosen for a member are still there."""
    for pod in job.pods:
        if snapshot.is_preempting(pod.metadata.uid):
            return True
        node = pod.status.nominated_node_name
        if node and any(each.preempted and each.priority < pod.spec.priority for each in snapshot.on_node(node)):
            return True
    return False
