"""DefaultPreemption: which node a pod that fits nowhere should get, and which pods have to go for that.

A pure function of a snapshot: it evicts nothing. `app` executes the result.
"""

import zlib
from typing import Final

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import BoolColumn
from kubenexus.cycle.class_cache import ClassCache, ClassifiedPod
from kubenexus.cycle.nominated_pods import NominatedResult, counts_beside
from kubenexus.cycle.rejections import UNREADABLE_POD
from kubenexus.framework.decision import Diagnosis
from kubenexus.framework.verdict import Code, Verdict, code_of
from kubenexus.plan.diagnose import rejections
from kubenexus.plan.preemption.candidate import Candidate, best_candidates
from kubenexus.plan.preemption.node_trial import NodeTrial
from kubenexus.plan.preemption.select_victims import NO_VICTIMS, select_victims_on_node
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.snapshot import Snapshot

NEVER: Final = "not eligible due to preemptionPolicy=Never."
VICTIMS_TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
MAX_REMOVED: Final = 1_000  # pods that a dry run removes from their nodes: 50 ms
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


class CandidateLimits(msgspec.Struct, frozen=True):
    """How many candidates are enough: a percentage of the potential nodes, and at least a number."""

    percentage: int = 10
    absolute: int = 100

    def enough(self, nodes: int) -> int:
        return min(max(nodes * self.percentage // 100, self.absolute), nodes)


class DryRun(msgspec.Struct):
    """The candidates, and by name why other potential nodes are none. Nodes that were not tried are in neither.
    `cut`: nodes were left out because the others had too many pods."""

    candidates: list[Candidate]
    refusals: dict[str, Verdict]
    cut: bool = False


class PreemptionResult(msgspec.Struct, frozen=True):
    """The outcome for one pod. With code SUCCESS the pod is to be nominated to `chosen.node` once its victims are gone.

    `message` is the end of kube-scheduler's FailedScheduling message. `clears_nomination`: no preemption helps, so an
    earlier nomination of the pod is void. `alone`: the result is about this pod alone, or not all nodes were tried.
    """

    code: Code
    message: str
    chosen: Candidate | None = None
    clears_nomination: bool = False
    alone: bool = False


class DefaultPreemption:
    """Finds victims for single pods, by kube-scheduler's rules. Pure, but for the class cache."""

    def __init__(self, class_cache: ClassCache, limits: CandidateLimits | None = None) -> None:
        self._class_cache = class_cache
        self._limits = CandidateLimits() if limits is None else limits

    def preempt(
        self, classified: ClassifiedPod, snapshot: Snapshot, now: float, yielding: NominatedResult | None
    ) -> PreemptionResult:
        """Returns the outcome for a pod that fits on no node. `yielding` is what nominated pods take from it."""
        columns = snapshot.nodes
        outcomes = NodeOutcomes(classified, columns, yielding)
        problem = ineligible(classified.pod, snapshot, outcomes)
        if problem:
            waits = problem == VICTIMS_TERMINATING
            return PreemptionResult(Code.UNSCHEDULABLE, f"preemption: {problem}", alone=waits)
        found = self.dry_run(classified, snapshot, now, outcomes.potential)
        if found.candidates:
            best = best_candidates(found.candidates)
            chosen = max(best, key=lambda each: columns.name_hash.item(columns.row_of[each.node]))
            placed = f"found a potential placement for pod on node {chosen.node}"
            return PreemptionResult(
                Code.SUCCESS, f"preemption: {placed}, preempting {len(chosen.victims)} victims", chosen
            )
        errors = [_error(verdict) for verdict in found.refusals.values() if verdict.code is Code.ERROR]
        if errors:
            return PreemptionResult(Code.ERROR, f"preemption: {_aggregate(errors)}")
        message = f"preemption: {_sentence(found, columns)}"
        return PreemptionResult(Code.UNSCHEDULABLE, message, clears_nomination=not found.cut, alone=found.cut)

    def dry_run(self, classified: ClassifiedPod, snapshot: Snapshot, now: float, potential: BoolColumn) -> DryRun:
        """Tries the potential nodes one after the other, until there are enough candidates.

        The first node follows from the pod's UID and the time, as upstream's is random: pods do not all try the same
        nodes first, nor a pod the same ones again. No node is tried after `MAX_REMOVED` pods were removed: the next
        attempt begins with another one.
        """
        pod, columns = classified.pod, snapshot.nodes
        rows = np.flatnonzero(potential)
        found = DryRun([], {})
        if not len(rows):
            return found
        enough, violating, removed = self._limits.enough(len(rows)), 0, 0
        lower = columns.pods.rows_below(pod.spec.priority, columns.size)
        waiting = snapshot.nominees()
        # What a pod uses of a reservation is reserved again when the pod is gone: to evict it would not help.
        reserved = snapshot.reservation_users((), pod.spec.priority) if snapshot.reservations else frozenset[str]()
        seed = f"{pod.metadata.uid} {now}".encode("utf-8", "replace")
        rows = rows[np.argsort(columns.name_hash[rows])]  # rows depend on the order in which nodes came
        for row in np.roll(rows, -(zlib.crc32(seed) % len(rows))).tolist():
            node = columns.names[row]
            if not lower[row]:
                found.refusals[node] = NO_VICTIMS
                continue
            if removed >= MAX_REMOVED:
                found.cut = True
                break
            victims = [each for each in snapshot.on_node(node) if each.priority < pod.spec.priority]
            victims = [each for each in victims if each.uid not in reserved] if reserved else victims
            removed += len(victims)
            nominated = [each for each in waiting.get(node, {}).values() if counts_beside(each, pod)]
            with snapshot.attempt() as transaction:
                trial = NodeTrial(classified, self._class_cache, row, snapshot, transaction, nominated)
                outcome = select_victims_on_node(trial, node, victims, snapshot.disruption_budgets)
            if isinstance(outcome, Verdict):
                found.refusals[node] = outcome
                continue
            found.candidates.append(outcome)
            violating += outcome.pdb_violations > 0
            if len(found.candidates) >= enough and violating < len(found.candidates):
                break
        return found


class NodeOutcomes:
    """What the attempt recorded for each node: `potential` are the rows where the removal of pods may help."""

    def __init__(self, classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None) -> None:
        self._columns = columns
        self._rejection = classified.rejection
        self.potential: BoolColumn = np.zeros(columns.size, np.bool_)
        if classified.rejection is not None:
            return
        for plugin, reasons, where in rejections(classified, columns, yielding):
            # A pod that cannot be read stays on its node, no matter which others leave.
            if code_of(reasons) is Code.UNSCHEDULABLE and plugin != UNREADABLE_POD:
                self.potential |= where

    def unresolvable(self, node: str) -> bool:
        """Returns whether no removal of pods helps on a node. Nodes that do not exist, or were not filtered, count as
        such. A node that would take the pod does not come here: preemption runs if there is none."""
        if self._rejection is not None:
            return self._rejection.code is Code.UNRESOLVABLE
        row = self._columns.row_of.get(node)
        return row is None or not self.potential.item(row)


def ineligible(pod: Pod, snapshot: Snapshot, outcomes: NodeOutcomes) -> str:
    """Returns why the pod may not preempt others, or ""."""
    if pod.spec.preemption_policy == "Never":
        return NEVER
    if snapshot.is_preempting(pod.metadata.uid):
        return VICTIMS_TERMINATING
    nominated = pod.status.nominated_node_name
    if not nominated or outcomes.unresolvable(nominated):
        return ""
    for other in snapshot.on_node(nominated):
        if other.preempted and other.priority < pod.spec.priority:
            return VICTIMS_TERMINATING
    return ""


def _sentence(found: DryRun, columns: NodeColumns) -> str:
    """Returns `0/3 nodes are available: 1 Insufficient cpu, 2 Preemption is not helpful for scheduling.`"""
    counts: dict[str, int] = {}
    for verdict in found.refusals.values():
        for reason in verdict.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    untried = columns.count - len(found.refusals)
    if untried:
        counts[NOT_HELPFUL] = counts.get(NOT_HELPFUL, 0) + untried
    return Diagnosis(columns.count, tuple(sorted(counts.items()))).sentence()


def _error(verdict: Verdict) -> str:
    said = ", ".join(verdict.reasons)
    return f'running "{verdict.plugin}" filter plugin: {said}' if verdict.plugin else said


def _aggregate(errors: list[str]) -> str:
    """Returns several errors as one text, as Kubernetes' aggregate of errors."""
    different = list(dict.fromkeys(errors))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"
