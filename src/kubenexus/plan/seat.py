"""A seat for one member: the best node for this pod on the columns as they are now, or why there is none."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.errors import Malformed
from kubenexus.cycle.bench import Bench, Member
from kubenexus.cycle.nominated import Yielding, yields
from kubenexus.cycle.rank import Choice, best_among, best_of_all
from kubenexus.cycle.repair import for_job
from kubenexus.framework.contract import PluginFailedError, assigned, called
from kubenexus.framework.decision import Diagnosis, Placement
from kubenexus.framework.job import NOTHING, Assignment, JobView
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.plan.diagnose import diagnose, nearest_miss
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.view import Nodes

MOST_TRIES = 64  # rows on which `assign` may change its mind before the decision is refused


class Seat(msgspec.Struct, gc=False):
    """Where one member would go (`placement`, `row`), or why it cannot."""

    code: Code
    diagnosis: Diagnosis
    placement: Placement | None = None
    row: int = -1
    error: str = ""


class Usher:
    """Finds seats. Pure but for the bench's cache. `of_job`: some rule looks at where the job's other members went."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.of_job = any(traits.job for traits in bench.lineup.traits.values())

    def seat(self, pod: Pod, snapshot: Snapshot, job: JobView, within: Any = None) -> Seat:
        """`within`: a mask over the rows it may choose from, if not from all."""
        columns = snapshot.nodes
        try:
            member = self._bench.look(pod, columns)
        except Malformed as problem:
            return Seat(Code.UNRESOLVABLE, Diagnosis(columns.count, message=str(problem)))
        except PluginFailedError as failure:
            return self.failed(failure, columns)
        if member.refused is not None and member.refused.code is Code.ERROR:
            return self.failed(PluginFailedError(member.refused.plugin, ", ".join(member.refused.reasons)), columns)
        if member.refused is not None:
            return _refused(member, columns, None, {})
        try:
            if self.of_job:
                for_job(member.table, job, columns)
            yielding = yields(pod, member.table, snapshot, job.seated)
            errors = diagnose(member, columns, yielding)[1] if member.table.may_fail else []
            if errors:
                return _failed(columns, ", ".join(errors))
            return self._best(member, columns, yielding, within)
        except PluginFailedError as failure:
            return self.failed(failure, columns)

    def failed(self, failure: PluginFailedError, columns: NodeColumns) -> Seat:
        """A plugin failed. It is counted: whoever runs it should know before its users ask."""
        self._bench.work.failures[failure.plugin] += 1
        return _failed(columns, failure.sentence)

    def _best(self, member: Member, columns: NodeColumns, yielding: Yielding | None, within: Any) -> Seat:
        turned_down: dict[int, Verdict] = {}
        while True:
            choice = self._choose(member, columns, yielding, turned_down, within)
            if choice is None or len(turned_down) >= MOST_TRIES:
                return _refused(member, columns, yielding, turned_down)
            failed = member.table.failed
            if failed is not None and choice.feasible > 1:
                self._bench.work.failures[failed.plugin] += 1
                said = ", ".join(failed.reasons)
                return _failed(columns, f'running PreScore plugin "{failed.plugin}": {said}')
            assignment = self._assign(member, choice.row, columns) if member.table.cast.assigns else NOTHING
            if isinstance(assignment, Assignment):
                return _seated(member, choice, assignment, columns, yielding)
            turned_down[choice.row] = assignment

    def _choose(
        self,
        member: Member,
        columns: NodeColumns,
        yielding: Yielding | None,
        turned_down: dict[int, Verdict],
        within: Any,
    ) -> Choice | None:
        table, pod = member.table, member.pod
        nominated = columns.row_of.get(pod.status.nominated_node_name, -1) if pod.status.nominated_node_name else -1
        if member.only is None and yielding is None and nominated < 0 and not turned_down and within is None:
            return best_of_all(table, columns)
        rows = _candidates(member, columns, yielding, turned_down)
        if within is not None:
            rows = rows[within[rows]]
        if nominated in rows:  # room was made there for this very pod
            rows = np.array([nominated])
        return best_among(table, rows, columns)

    def _assign(self, member: Member, row: int, columns: NodeColumns) -> Assignment | Verdict:
        """All that the pod would take on this row, or the verdict of the plugin that cannot give it."""
        taken = NOTHING
        for plugin in member.table.cast.assigns:
            trusted = self._bench.lineup.traits[plugin.name].trusted
            view = Nodes(columns) if trusted else Nodes(columns).locked()
            answer = called(plugin, plugin.assign, member.table.pod, row, view)
            if not trusted or isinstance(answer, Verdict):
                answer = assigned(answer, plugin.name)
            if isinstance(answer, Verdict):
                return answer
            taken = answer if taken is NOTHING else taken + answer
        return taken


def _candidates(
    member: Member, columns: NodeColumns, yielding: Yielding | None, turned_down: dict[int, Verdict]
) -> Any:
    """The feasible rows of this very pod."""
    if member.only is not None:
        named = (columns.row_of.get(name, -1) for name in member.only)
        rows = np.array(sorted(row for row in named if row >= 0), np.int64)
        rows = rows[member.table.ok[rows]]
    else:
        rows = np.flatnonzero(member.table.ok)
    without = [*turned_down, *(() if yielding is None else yielding.rows.tolist())]
    return rows[~np.isin(rows, without)] if without else rows


def _seated(
    member: Member, choice: Choice, assignment: Assignment, columns: NodeColumns, yielding: Yielding | None
) -> Seat:
    pod = member.pod
    placement = Placement(
        pod=pod.key,
        uid=pod.metadata.uid,
        node=columns.names[choice.row],
        footprint=member.table.pod.footprint,
        assignment=assignment,
        scores=choice.scores,
        total=choice.total,
        runner_up=choice.runner_up,
        feasible=choice.feasible,
    )
    nobody = choice.feasible == columns.count
    diagnosis = Diagnosis(columns.count) if nobody else _others(member, columns, yielding)
    return Seat(Code.SUCCESS, diagnosis, placement, choice.row)


def _others(member: Member, columns: NodeColumns, yielding: Yielding | None) -> Diagnosis:
    """Why the other nodes were refused. Kept with the class while no row's answer changes: most placements change
    none, and a nearly full cluster should not be counted anew for each pod."""
    if member.only is not None or yielding is not None:
        return diagnose(member, columns, yielding)[0]
    stamp = (member.table.version, columns.count)
    if member.table.counted is None or member.table.counted[0] != stamp:
        member.table.counted = (stamp, diagnose(member, columns, None)[0])
    return member.table.counted[1]


def _refused(member: Member, columns: NodeColumns, yielding: Yielding | None, turned_down: dict[int, Verdict]) -> Seat:
    diagnosis, _ = diagnose(member, columns, yielding)
    counts = dict(diagnosis.counts)
    for verdict in turned_down.values():
        for reason in verdict.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    nearest = nearest_miss(member, columns, yielding) if member.refused is None else None
    diagnosis = msgspec.structs.replace(
        diagnosis,
        counts=tuple(sorted(counts.items())),
        refused_by=tuple(sorted({*diagnosis.refused_by, *(v.plugin for v in turned_down.values())})),
        nearest=nearest,
    )
    code = member.refused.code if member.refused is not None else Code.UNSCHEDULABLE
    return Seat(code, diagnosis)


def _failed(columns: NodeColumns, error: str) -> Seat:
    return Seat(Code.ERROR, Diagnosis(columns.count), error=error)
