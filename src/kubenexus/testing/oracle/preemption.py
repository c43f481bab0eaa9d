"""Compares the dry run of preemption: who may preempt, which nodes are tried, their victims, and the chosen node."""

from kubenexus.framework.verdict import Code, Verdict
from kubenexus.plan.preemption.candidate import best_candidates
from kubenexus.plan.preemption.default_preemption import DefaultPreemption, DryRun, NodeOutcomes, ineligible
from kubenexus.testing.oracle.comparability import Comparability
from kubenexus.testing.oracle.comparison_counts import ComparisonCounts
from kubenexus.testing.oracle.expected import ExpectedPod, RecordedPreemption, Status, status_of
from kubenexus.testing.oracle.our_answers import OurAnswers
from kubenexus.testing.oracle.victims_freeing_too_much import FREES_TOO_MUCH, frees_too_much

# What came out on a node: a refusal, or the victims in order and the number of violated budgets.
NodeOutcome = Status | tuple[tuple[str, ...], int]


def compare_preemption(ours: OurAnswers, expected: ExpectedPod, say: Comparability, tally: ComparisonCounts) -> None:
    """Compares the dry run, if there is one. It depends on all filters of every node."""
    said = expected.preemption
    if said is None:
        return
    wanted, chosen = _expected(said), int(bool(said.best))
    if not say.sentence:
        for aspect, number in (("preemption", 1), ("preemptionNode", len(wanted)), ("preemptionBest", chosen)):
            tally.leave(aspect, number)
        return
    outcomes = NodeOutcomes(ours.classified, ours.columns, ours.yielding)
    why = ineligible(ours.pod, ours.snapshot, outcomes)
    names = ours.columns.names
    tried = frozenset(names[row] for row in outcomes.potential.nonzero()[0].tolist()) if not why else frozenset()
    tally.compare("preemption", (not why, why, tried), (said.eligible, said.why, frozenset(said.potential_nodes)))
    default = DefaultPreemption(ours.planner.class_cache)
    found = DryRun([], {}) if why else default.dry_run(ours.classified, ours.snapshot, 0.0, outcomes.potential)
    outcome = _ours(found)
    excused = {node for node in wanted if frees_too_much(node, ours)}
    unclear = any(node in said.candidates or isinstance(outcome[node][0], tuple) for node in excused)
    for node in excused:
        del wanted[node], outcome[node]
    tally.leave("preemptionNode", len(excused), because=FREES_TOO_MUCH)
    tally.compare_nodes("preemptionNode", outcome, wanted, nodes=len(wanted))
    if chosen and unclear:
        tally.leave("preemptionBest", because=FREES_TOO_MUCH)
    elif chosen:
        tally.compare("preemptionBest", {each.node for each in best_candidates(found.candidates)}, set(said.best))


def _ours(found: DryRun) -> dict[str, NodeOutcome]:
    outcomes: dict[str, NodeOutcome] = {node: _status(verdict) for node, verdict in found.refusals.items()}
    for each in found.candidates:
        outcomes[each.node] = (tuple(victim.key for victim in each.victims), each.pdb_violations)
    return outcomes


def _status(verdict: Verdict) -> Status:
    return Code(verdict.code).label, frozenset(verdict.reasons)


def _expected(said: RecordedPreemption) -> dict[str, NodeOutcome]:
    outcomes: dict[str, NodeOutcome] = {node: status_of(status) for node, status in said.not_candidates.items()}
    for node, each in said.candidates.items():
        outcomes[node] = (tuple(each.pods), each.pdb_violations)
    return outcomes
