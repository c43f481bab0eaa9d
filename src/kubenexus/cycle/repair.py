"""Bringing a class's table up to date with as little work as what changed asks for."""

from typing import Any

import numpy as np

from kubenexus.cycle import repair_stamped
from kubenexus.cycle.class_table import INFEASIBLE, ClassTable
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.cycle.repair_stamped import update_feasibility, update_row_feasibility
from kubenexus.cycle.scores.column import ScoreColumn
from kubenexus.cycle.tie_break import TIE_BREAK_BITS
from kubenexus.framework.job import SINGLE_POD_VIEW, JobView
from kubenexus.framework.plugin_results import PluginError
from kubenexus.framework.profile import TieBreak
from kubenexus.framework.verdict import Code, Skip, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode, Rows

_NOWHERE = np.array(INFEASIBLE)  # as an array: NumPy takes its time to look at a Python number
_FEW = 6  # up to so many rows, plain integers beat NumPy


def refresh(table: ClassTable, columns: NodeColumns) -> None:
    """Bring the table up to what the columns say now. A filter that fails refuses the class, with an error."""
    marks = (columns.node_changes.mark, columns.usage_changes.mark, columns.cluster_version)
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
    """Ask again those plugins whose answer depends on where the job's other members went."""
    filters = [column for column in table.filters if column.traits.job]
    scores = [score for score in table.scores if score.traits.job]
    if not filters and not scores:
        return
    view = Nodes(columns)
    for column in filters:
        column.fill(column.ask(table.pod, view))
    if filters:
        table.compute_feasible(columns)
    for score in scores:
        table.ask_score(score, view, job)
    table.rebuild_ranks(columns)


def _catch_up(table: ClassTable, columns: NodeColumns) -> None:
    of_node = columns.node_changes.rows_since(table.marks[0]) if table.built else None
    of_usage = columns.usage_changes.rows_since(table.marks[1]) if table.built else None
    if of_node is None or of_usage is None or table.score_error is not None:
        table.build(columns)  # a rule that failed may have recovered with whatever changed
        return
    if columns.size > len(table.feasible):
        _stretch(table, columns.size)
    if table.marks[2] != columns.cluster_version:
        _redo_cluster(table, columns)
    if len(of_node):
        filters = [column for column in table.filters if not column.traits.stamped]
        scores = [score for score in table.scores if score.active and not score.traits.stamped]
        _repair(table, columns, of_node, filters, scores, scalar=False)
    rows = of_usage[~np.isin(of_usage, of_node)] if len(of_node) and len(of_usage) else of_usage
    if len(rows):
        _repair(table, columns, rows, table.usage_filters, table.usage_scores, scalar=table.usage_scalar)
    if table.stamped and table.built:
        repair_stamped.refresh_stamped(table, columns)
    if table.untrusted and table.score_error is None:
        try:
            table.verify()
        except PluginError:
            table.build(columns)


def _stretch(table: ClassTable, size: int) -> None:
    """Room for rows that came since; they are repaired next, since a new row is a changed node."""
    for column in table.filters:
        column.stretch(size)
    for score in table.scores:
        score.stretch(size)
    known, ok, rank = len(table.feasible), np.zeros(size, np.bool_), np.full(size, INFEASIBLE, np.int64)
    ok[:known], rank[:known] = table.feasible, table.rank
    table.feasible, table.rank = ok, rank
    table.version += 1
    if table.base_rank is not None:
        table.base_rank = np.concatenate([table.base_rank, np.full(size - known, INFEASIBLE, np.int64)])
    if table.static_sum is not None:
        table.static_sum = np.concatenate([table.static_sum, np.zeros(size - known, table.static_sum.dtype)])


def _redo_cluster(table: ClassTable, columns: NodeColumns) -> None:
    """Something about all nodes moved: ask again those whose answer depends on it."""
    view, changed = Nodes(columns), table.profile_plugins.profile.tie_break is TieBreak.NAME
    for column in table.filters:
        if column.traits.cluster:
            table.work.rows += columns.size
            column.fill(column.ask(table.pod, view))
            table.compute_feasible(columns)
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
        table.select_usage_plugins()
        table.rebuild_ranks(columns)


def _repair(
    table: ClassTable,
    columns: NodeColumns,
    rows: Rows,
    filters: list[FilterColumn],
    scores: list[ScoreColumn],
    *,
    scalar: bool,
) -> None:
    """These rows, by these plugins; then whatever sums that moves."""
    table.work.rows += len(rows)
    try:
        if scalar and len(rows) <= _FEW:
            moved = False
            for row in rows.tolist():
                moved |= _repair_one(table, columns, row)
        else:
            moved = _repair_many(table, columns, rows, filters, scores)
    except PluginError:
        table.build(columns)  # who failed, and how, is settled there
        return
    extremes = False
    for score in table.scores if moved else table.usage_extremes if scores is table.usage_scores else scores:
        if not score.traits.stamped and score.plugin.normalize.extremes is not None and score.active:
            extremes |= score.measure(table.feasible, table.version)
    if extremes or table.sums_outdated:
        table.rebuild_ranks(columns)


def _repair_one(table: ClassTable, columns: NodeColumns, row: int) -> bool:
    """One row as plain integers; whether it became feasible or ceased to be."""
    node, size, changed = OneNode(columns, row), len(table.feasible), False
    told = table.combined_scores(node) if table.usage_together else None
    for column in table.usage_filters:
        bits = column.ask(table.pod, node) if told is None else 0
        if bits != column.at(row):
            changed = column.put(row, bits, size)
            table.version += 1
    for i, score in enumerate(table.usage_scores):
        table.sums_outdated |= score.put(
            row, score.ask(table.pod, node, SINGLE_POD_VIEW) if told is None else told[i], size
        )
    rank = (_total_at(table, row) << TIE_BREAK_BITS) + table.tie_breaker.for_row(columns, row)
    if table.base_rank is not None:
        table.base_rank[row] = rank
    if changed:
        return update_row_feasibility(table, columns, row, rank)
    if table.feasible.item(row):
        table.rank[row] = table.add_stamped_parts(row, rank)
    return False


def _total_at(table: ClassTable, row: int) -> int:
    total = 0 if table.static_sum is None else table.static_sum.item(row)
    for score in table.usage_dependent:
        total += score.values.part_at(row)
    return total


def _repair_many(
    table: ClassTable, columns: NodeColumns, rows: Any, filters: list[FilterColumn], scores: list[ScoreColumn]
) -> bool:
    """Some rows as columns; whether any became feasible or ceased to be."""
    view, size, of_node = Nodes(columns, rows), len(table.feasible), scores is not table.usage_scores
    changed = of_node  # a node that came, went or was fenced, whatever filters say
    told = table.combined_scores(view) if table.usage_together and not of_node else None
    for column in filters:
        changed |= column.put(rows, column.ask(table.pod, view) if told is None else 0, size)
    view.feasible = table.feasible
    fresh: dict[ScoreColumn, Any] = {}
    for i, score in enumerate(scores):
        raw = score.ask(table.pod, view, SINGLE_POD_VIEW) if told is None else told[i]
        if isinstance(raw, (Skip, Verdict)):
            raise PluginError(score.plugin.name, "skips some rows of a class and not others")
        table.sums_outdated |= score.put(rows, raw, size)
        if score.traits.trusted and isinstance(raw, np.ndarray):
            fresh[score] = raw
    if of_node:
        table.update_static_sum(rows)
    steady = table.rank_of(columns, rows, fresh)
    if table.base_rank is not None:
        table.base_rank[rows] = steady
    if changed:
        return update_feasibility(table, columns, rows, steady)
    rank = table.add_stamped_parts(rows, steady)
    if table.feasible_count != size:
        np.putmask(rank, ~table.feasible[rows], _NOWHERE)
    table.rank[rows] = rank
    return False
