"""The best node for one pod on the columns as they are now, or the reasons against all nodes."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import BoolColumn
from kubenexus.base.errors import Malformed
from kubenexus.cycle.class_cache import ClassCache, ClassifiedPod
from kubenexus.cycle.nominated_pods import NominatedResult, filter_with_nominated_pods
from kubenexus.cycle.select import Selection, select_best, select_best_of
from kubenexus.framework.decision import Diagnosis, PodPlacement
from kubenexus.framework.extension_points import AssignTogether
from kubenexus.framework.job import NO_ASSIGNMENT, Assignment, JobView
from kubenexus.framework.plugin_results import FAILURES, PluginError, call_plugin, checked_assignment, plugin_error
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.plan.diagnose import diagnose, nearest_miss, not_looked_at
from kubenexus.plugins.workload.profile_classifier import ProfileClassifier
from kubenexus.state.claims.store import ClaimChoice
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.view import Nodes

MAX_ASSIGN_TRIES = 64  # rows on which `assign` may refuse before the pod is refused


class PodResult(msgspec.Struct, gc=False):
    """The node of one pod (`placement`, `row`), or why there is none. `workload` is its kind of work, if its class was
    found and the profile has ProfileClassifier."""

    code: Code
    diagnosis: Diagnosis
    placement: PodPlacement | None = None
    row: int = -1
    error: str = ""
    workload: str = ""


class PodPlacer:
    """Places single pods. Pure, but for the class cache.

    `upstream_reasons`: refusals have exactly the reasons that kube-scheduler finds. `depends_on_job`: some plugin reads
    where the job's other members are.
    """

    def __init__(self, class_cache: ClassCache, *, upstream_reasons: bool = True) -> None:
        self._class_cache, self._upstream_reasons = class_cache, upstream_reasons
        self.depends_on_job = any(traits.job for traits in class_cache.profile_plugins.traits.values())

    @property
    def reported_work(self) -> int:
        """What plugins reported of their own work so far, in rows."""
        return self._class_cache.work.reported

    def place(self, pod: Pod, snapshot: Snapshot, job: JobView, within: Any = None) -> PodResult:
        """Returns the best row for the pod among those of the mask `within`, or among all."""
        columns = snapshot.nodes
        try:
            classified = self._class_cache.lookup(pod, columns, job)
        except Malformed as problem:
            return PodResult(Code.UNRESOLVABLE, Diagnosis(columns.count, message=str(problem)))
        except PluginError as failure:
            return self.failed(failure, columns)
        if classified.rejection is not None and classified.rejection.code is Code.ERROR:
            return self.failed(
                PluginError(classified.rejection.plugin, ", ".join(classified.rejection.reasons)), columns
            )
        if classified.rejection is not None:
            return _refused(classified, columns, None, {})
        try:
            yielding = filter_with_nominated_pods(
                pod, classified.table, snapshot, job.counted_keys, everywhere=self._upstream_reasons
            )
            errors = diagnose(classified, columns, yielding)[1] if classified.table.may_fail else []
            if errors:
                return _failed(columns, ", ".join(errors))
            return self._best(classified, columns, yielding, within)
        except PluginError as failure:
            return self.failed(failure, columns)

    def assignable(self, classified: ClassifiedPod, row: int, columns: NodeColumns) -> bool:
        """Returns whether devices, volumes and the like can be assigned to the pod on a row that passes all filters."""
        return not classified.table.plugins.assigns or isinstance(self._assign(classified, row, columns), Assignment)

    def feasible_rows(self, pod: Pod, columns: NodeColumns, job: JobView) -> BoolColumn:
        """Returns the rows that the filters let a pod have; none if it cannot be placed at all."""
        none: BoolColumn = np.zeros(columns.size, np.bool_)
        try:
            classified = self._class_cache.lookup(pod, columns, job)
        except (Malformed, PluginError):
            return none
        return none if classified.rejection is not None else np.array(classified.table.feasible, np.bool_)

    def claims_together(
        self, pods: Sequence[Pod], row: int, columns: NodeColumns, job: JobView
    ) -> list[tuple[ClaimChoice, ...]] | None:
        """Returns devices for the claims of several pods on a row, chosen together, or None if there are none."""
        plugins = [each for each in self._class_cache.profile_plugins.assigns if isinstance(each, AssignTogether)]
        if len(plugins) != 1:
            return None
        classes = []
        for pod in pods:
            classified = self._class_cache.lookup(pod, columns, job)
            if classified.rejection is not None:
                return None
            classes.append(classified.table.pod)
        answer = call_plugin(plugins[0], plugins[0].assign_together, classes, row, Nodes(columns))
        return None if isinstance(answer, Verdict) else [each.claims for each in answer]

    def failed(self, failure: PluginError, columns: NodeColumns) -> PodResult:
        """Returns the result for a plugin that failed, and counts the failure for metrics."""
        self._class_cache.work.failures[failure.plugin] += 1
        return _failed(columns, failure.sentence)

    def _best(
        self, classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None, within: Any
    ) -> PodResult:
        turned_down: dict[int, Verdict] = {}
        while True:
            choice = self._choose(classified, columns, yielding, turned_down, within)
            if choice is None or len(turned_down) >= MAX_ASSIGN_TRIES:
                unfinished = not_looked_at(classified, columns, yielding)
                if unfinished:
                    return _failed(columns, unfinished)
                return _refused(classified, columns, yielding, turned_down)
            failed = classified.table.score_error
            if failed is not None and choice.feasible > 1:
                self._class_cache.work.failures[failed.plugin] += 1
                said = ", ".join(failed.reasons)
                return _failed(columns, f'running PreScore plugin "{failed.plugin}": {said}')
            assignment = (
                self._assign(classified, choice.row, columns) if classified.table.plugins.assigns else NO_ASSIGNMENT
            )
            if isinstance(assignment, Assignment):
                return _placed(classified, choice, assignment, columns, yielding)
            turned_down[choice.row] = assignment

    def _choose(
        self,
        classified: ClassifiedPod,
        columns: NodeColumns,
        yielding: NominatedResult | None,
        turned_down: dict[int, Verdict],
        within: Any,
    ) -> Selection | None:
        table, pod = classified.table, classified.pod
        nominated = columns.row_of.get(pod.status.nominated_node_name, -1) if pod.status.nominated_node_name else -1
        if classified.node_names is None and yielding is None and nominated < 0 and not turned_down and within is None:
            return select_best(table, columns)
        rows = _candidates(classified, columns, yielding, turned_down)
        if within is not None:
            rows = rows[within[rows]]
        if nominated in rows:  # capacity was made there for this pod
            rows = np.array([nominated])
        return select_best_of(table, rows, columns)

    def _assign(self, classified: ClassifiedPod, row: int, columns: NodeColumns) -> Assignment | Verdict:
        """Returns all that the pod would take on this row, or the Verdict of the first plugin that refuses the row."""
        taken, nodes = NO_ASSIGNMENT, Nodes(columns)
        for plugin in classified.table.plugins.assigns:
            trusted = self._class_cache.profile_plugins.traits[plugin.name].trusted
            view = nodes if trusted else nodes.locked()
            try:  # not `call_plugin`: most pods with GPUs are placed by this
                answer = plugin.assign(classified.table.pod, row, view)
            except FAILURES as error:
                raise plugin_error(plugin, error) from error
            if not trusted or isinstance(answer, Verdict):
                answer = checked_assignment(answer, plugin.name)
            if isinstance(answer, Verdict):
                return answer
            if answer is not NO_ASSIGNMENT:
                taken = answer if taken is NO_ASSIGNMENT else taken + answer
        return taken


def _candidates(
    classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None, turned_down: dict[int, Verdict]
) -> Any:
    """Returns the feasible rows of this pod, which may be fewer than those of its class."""
    if classified.node_names is not None:
        named = (columns.row_of.get(name, -1) for name in classified.node_names)
        rows = np.array(sorted(row for row in named if row >= 0), np.int64)
        rows = rows[classified.table.feasible[rows]]
    else:
        rows = np.flatnonzero(classified.table.feasible)
    without = [*turned_down, *(() if yielding is None else yielding.rows.tolist())]
    return rows[~np.isin(rows, without)] if without else rows


def _placed(
    classified: ClassifiedPod,
    choice: Selection,
    assignment: Assignment,
    columns: NodeColumns,
    yielding: NominatedResult | None,
) -> PodResult:
    pod = classified.pod
    placement = PodPlacement(
        pod=pod.key,
        uid=pod.metadata.uid,
        node=columns.names[choice.row],
        footprint=classified.table.pod.footprint,
        assignment=assignment,
        scores=choice.scores,
        total=choice.total,
        runner_up=choice.runner_up,
        feasible=choice.feasible,
    )
    all_feasible = choice.feasible == columns.count
    diagnosis = Diagnosis(columns.count) if all_feasible else _others(classified, columns, yielding)
    workload = classified.table.pod.signed.get(ProfileClassifier.name, "")
    return PodResult(Code.SUCCESS, diagnosis, placement, choice.row, workload=workload)


def _others(classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None) -> Diagnosis:
    """Returns why the other nodes were refused.

    Cached with the class while no row's result changes: most placements change none, and in a nearly full cluster
    counting again for each pod would be expensive.
    """
    if classified.node_names is not None or yielding is not None:
        return diagnose(classified, columns, yielding)[0]
    stamp = (classified.table.version, columns.count)
    if classified.table.cached_diagnosis is None or classified.table.cached_diagnosis[0] != stamp:
        classified.table.cached_diagnosis = (stamp, diagnose(classified, columns, None)[0])
    return classified.table.cached_diagnosis[1]


def _refused(
    classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None, turned_down: dict[int, Verdict]
) -> PodResult:
    diagnosis, _ = diagnose(classified, columns, yielding)
    counts = dict(diagnosis.counts)
    for verdict in turned_down.values():
        for reason in verdict.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    nearest = nearest_miss(classified, columns, yielding) if classified.rejection is None else None
    diagnosis = msgspec.structs.replace(
        diagnosis,
        counts=tuple(sorted(counts.items())),
        refused_by=tuple(sorted({*diagnosis.refused_by, *(v.plugin for v in turned_down.values())})),
        nearest=nearest,
    )
    code = classified.rejection.code if classified.rejection is not None else Code.UNSCHEDULABLE
    return PodResult(code, diagnosis, workload=classified.table.pod.signed.get(ProfileClassifier.name, ""))


def _failed(columns: NodeColumns, error: str) -> PodResult:
    return PodResult(Code.ERROR, Diagnosis(columns.count), error=error)
