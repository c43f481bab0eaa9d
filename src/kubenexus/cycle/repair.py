"""Brings a class's table up to date, with work in proportion to what changed."""

import enum
from typing import Any

import numpy as np

from kubenexus.base.arrays import grow
from kubenexus.cycle import repair_stamped
from kubenexus.cycle.class_table import ClassTable
from kubenexus.cycle.feasibility import INFEASIBLE
from kubenexus.cycle.repair_stamped import update_feasibility, update_row_feasibility
from kubenexus.cycle.scores.column import ScoreColumn
from kubenexus.cycle.tie_break import TIE_BREAK_BITS
from kubenexus.cycle.usage_columns import ColumnGroup
from kubenexus.framework.job import SINGLE_POD_VIEW, JobView
from kubenexus.framework.plugin_results import PluginError
from kubenexus.framework.profile import TieBreak
from kubenexus.framework.verdict import Code, Skip, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode, Rows

# As arrays: NumPy takes its time to look at a Python number.
_INFEASIBLE, _NO_REASON = np.array(INFEASIBLE), np.array(0, np.uint8)
_FEW_ROWS = 6  # rows up to which plain numbers are faster than NumPy: 15 µs a row instead of 30 (docs/adr/0003)


class Change(enum.Enum):
    """What changed about some rows."""

    NODE = "node"  # a node came, went, changed or was blocked: all plugins that are not stamped are called
    USAGE = "usage"  # a pod was placed or removed: the plugins of `ClassTable.usage` are called


def refresh(table: ClassTable, columns: NodeColumns) -> None:
    """Brings the table up to the state of the columns. If a filter fails, `table.rejection` is an error."""
    marks = (
        columns.node_changes.mark,
        columns.usage_changes.mark,
        columns.cluster_version,
        columns.claims.mark,
        columns.demand_version,
    )
    if table.built and table.marks == marks:
        return
    try:
        _catch_up(table, columns)
    except PluginError as failure:
        table.built = False
        table.rejection = Verdict(Code.ERROR, (failure.problem,), failure.plugin)
    except BaseException:
        table.built = False  # half repaired
        raise
    table.marks = marks


def refresh_for_job(table: ClassTable, job: JobView, columns: NodeColumns) -> None:
    """Calls the plugins whose result depends on the nodes of the job's other members.

    Called after `refresh`. A job without other members gets what `refresh` computed, and so does the next such job
    after one with members: then the plugins are called once more. A class without such plugins costs nothing.
    """
    if not table.plugins.depends_on_job or (job.is_single and not table.for_members):
        return
    view = Nodes(columns)
    try:
        filters = [column for column in table.filters if column.traits.job]
        for column in filters:
            column.fill(column.ask(table.pod, view))
        if filters:
            table.feasibility.compute(table.filters, columns)
        for score in table.scores:
            if score.traits.job:
                table.ask_score(score, view, job)
        table.rebuild_ranks(columns)
    except BaseException:
        table.built = False  # half repaired
        raise
    table.for_members = not job.is_single
    if table.score_error is not None:
        table.built = False  # it may fail for this job alone


def _catch_up(table: ClassTable, columns: NodeColumns) -> None:
    of_node = columns.node_changes.rows_since(table.marks[0]) if table.built else None
    of_usage = columns.usage_changes.rows_since(table.marks[1]) if table.built else None
    if of_node is None or of_usage is None or table.score_error is not None:
        table.build(columns)  # a plugin that failed may succeed after the change
        return
    if columns.size > len(table.feasible):
        _stretch(table, columns.size)
    if table.marks[2] != columns.cluster_version:
        _redo_cluster(table, columns)
    if table.marks[4] != columns.demand_version:
        _redo_demand(table, columns)
    if len(of_node):
        _repair(table, columns, of_node, Change.NODE)
    rows = of_usage[~np.isin(of_usage, of_node)] if len(of_node) and len(of_usage) else of_usage
    if len(rows):
        _repair(table, columns, rows, Change.USAGE)
    if table.stamped.plugins and table.built:
        repair_stamped.refresh_stamped(table, columns)
    if table.untrusted and table.score_error is None:
        try:
            table.verify()
        except PluginError:
            table.build(columns)


def _stretch(table: ClassTable, size: int) -> None:
    """Adds the rows that are new. They are repaired next, since a new row is a changed node."""
    for column in table.filters:
        column.stretch(size)
    for score in table.scores:
        score.stretch(size)
    table.feasibility.rows = grow(table.feasible, size)
    table.feasibility.version += 1
    table.rank = grow(table.rank, size, fill=INFEASIBLE)
    table.stamped.stretch(size)
    table.sums.stretch(size)


def _redo_cluster(table: ClassTable, columns: NodeColumns) -> None:
    """Calls the plugins that depend on all nodes at once, for all rows."""
    view, changed = Nodes(columns), table.profile_plugins.profile.tie_break is TieBreak.NAME
    for column in table.filters:
        if column.traits.cluster:
            table.work.rows += columns.size
            column.fill(column.ask(table.pod, view))
            table.feasibility.compute(table.filters, columns)
            changed = True
    for score in table.scores:
        if score.traits.cluster:
            before, active = score.uniform, score.active
            table.ask_score(score, view)
            after = score.uniform
            if before is None or after is None or before.raw != after.raw or active != score.active:
                table.work.rows += columns.size
                changed = True
    if changed:
        table.select_usage_columns()
        table.rebuild_ranks(columns)


def _redo_demand(table: ClassTable, columns: NodeColumns) -> None:
    """Calls the plugins that depend on what pods are expected to ask for, for all rows."""
    view = Nodes(columns)
    concerned = [score for score in table.scores if score.traits.demand]
    for score in concerned:
        table.work.rows += columns.size
        table.ask_score(score, view)
    if concerned:
        table.select_usage_columns()
        table.rebuild_ranks(columns)


def _repair(table: ClassTable, columns: NodeColumns, rows: Rows, change: Change) -> None:
    """Computes these rows again; all ranks too, if the extremes of a score moved."""
    table.work.rows += len(rows)
    try:
        if change is Change.USAGE and table.usage.one_node and len(rows) <= _FEW_ROWS:
            moved = False
            for row in rows.tolist():
                moved |= _repair_one(table, columns, row)
        else:
            moved = _repair_many(table, columns, rows, change)
    except PluginError:
        table.build(columns)  # which records the plugin that failed
        return
    extremes_moved, feasible, version = False, table.feasible, table.version
    for score in table.usage.normalized if change is Change.USAGE and not moved else _normalized_scores(table):
        extremes_moved |= score.measure(feasible, version)
    if extremes_moved or table.sums.outdated:
        table.rebuild_ranks(columns)


def _row_scores(table: ClassTable) -> list[ScoreColumn]:
    """Returns the active scores that depend on the row alone."""
    return [score for score in table.scores if score.active and not score.traits.stamped]


def _normalized_scores(table: ClassTable) -> list[ScoreColumn]:
    """Returns those of them that are normalised by their extremes."""
    return [score for score in _row_scores(table) if score.plugin.normalize.extremes is not None]


def _repair_one(table: ClassTable, columns: NodeColumns, row: int) -> bool:
    """Computes one row after a placement, as plain numbers. Returns whether its feasibility moved."""
    node, groups, size, changed, refused = OneNode(columns, row), table.usage.groups, len(table.feasible), False, 0
    combined: list[Any] = []
    for group in groups:
        found: Any = group.ask(table.pod, node)
        combined.append(found)
        for column in group.filters:
            if found is None:
                bits = column.ask(table.pod, node)
            else:
                bits = column.refusal_bits(found) if isinstance(found, dict) else 0
            refused |= bits
            if bits != column.at(row):
                changed = column.put(row, bits, size)
                table.feasibility.version += 1
    if refused:  # these filters are asked again when the row changes, and then its scores are computed
        return update_row_feasibility(table, columns, row, INFEASIBLE) if changed else False
    for group, found in zip(groups, combined, strict=True):
        alone = found is None or isinstance(found, dict)
        for i, score in enumerate(group.scores):
            raw = score.ask(table.pod, node, SINGLE_POD_VIEW) if alone else found[i]
            table.sums.outdated |= score.put(row, raw, size)
    rank = (table.sums.total_at(row) << TIE_BREAK_BITS) + table.tie_breaker.for_row(columns, row)
    if table.stamped.plugins:
        table.stamped.base_rank[row] = rank
    if changed:
        return update_row_feasibility(table, columns, row, rank)
    if table.feasible.item(row):
        table.rank[row] = table.stamped.add_parts_at(row, rank)
    return False


def _repair_many(table: ClassTable, columns: NodeColumns, rows: Any, change: Change) -> bool:
    """Computes some rows as columns. Returns whether the feasibility of any moved."""
    view, groups, size, of_node = Nodes(columns, rows), table.usage.groups, len(table.feasible), change is Change.NODE
    if of_node:
        # A quiet plugin is not called: its score stays the same on all rows.
        scores = [score for score in _row_scores(table) if not score.traits.quiet]
        groups = [ColumnGroup([column for column in table.filters if not column.traits.stamped], scores)]
    changed = of_node  # a node that came, went or was blocked changes feasibility without any filter
    refused: Any = None
    combined = _combined(table, view, groups, unless=table.usage.refused and not of_node)
    for group, found in zip(groups, combined, strict=True):
        for column in group.filters:
            bits = column.ask(table.pod, view) if found is None else 0
            changed |= column.put(rows, bits, size)
            if not isinstance(bits, int):
                refused = bits if refused is None else refused | bits
    expected, table.usage.refused = table.usage.refused, refused is not None
    if refused is None or of_node:
        _score_many(table, view, groups, _combined(table, view, groups) if expected and not of_node else combined)
    else:  # as in `_repair_one`: a refused row is computed when these filters refuse it no longer
        fits = refused == _NO_REASON
        view = Nodes(columns, rows[fits])
        if not view.width:
            return changed and update_feasibility(table, columns, rows, np.full(len(rows), INFEASIBLE))
        for i, found in enumerate(combined):
            combined[i] = groups[i].ask(table.pod, view) if found is None else [each[fits] for each in found]
        _score_many(table, view, groups, combined)
    if of_node:
        table.sums.update_static(rows)
    base = table.rank_rows(columns, rows)
    if table.stamped.plugins:
        table.stamped.base_rank[rows] = base
    if changed:
        return update_feasibility(table, columns, rows, base)
    rank = table.stamped.add_parts(rows, base)
    if table.feasible_count != size:
        np.putmask(rank, ~table.feasible[rows], _INFEASIBLE)
    table.rank[rows] = rank
    return False


def _combined(table: ClassTable, view: Nodes, groups: list[ColumnGroup], *, unless: bool = False) -> list[Any]:
    """Returns what the rules of some groups compute for the rows of a view; None for each of them if `unless`."""
    return [None if unless else group.ask(table.pod, view) for group in groups]


def _score_many(table: ClassTable, view: Nodes, groups: list[ColumnGroup], combined: Any) -> None:
    """Computes the scores of the rows of a view. `combined` is what rules computed for each group."""
    view.feasible, size = table.feasible, len(table.feasible)
    for group, found in zip(groups, combined, strict=True):
        for i, score in enumerate(group.scores):
            raw = score.ask(table.pod, view, SINGLE_POD_VIEW) if found is None else found[i]
            if isinstance(raw, (Skip, Verdict)):
                raise PluginError(score.plugin.name, "skips some rows of a class and not others")
            table.sums.outdated |= score.put(view.rows, raw, size)
