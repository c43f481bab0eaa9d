"""Bringing a class's table up to date with as little work as what changed asks for."""

from typing import Any

import numpy as np

from kubenexus.cycle import stamped
from kubenexus.cycle.columns import FilterColumn, ScoreColumn
from kubenexus.cycle.lots import BITS
from kubenexus.cycle.stamped import reflag, reflag_one
from kubenexus.cycle.table import NOWHERE, ClassTable
from kubenexus.framework.contract import PluginFailedError
from kubenexus.framework.job import ALONE, JobView
from kubenexus.framework.profile import TieBreak
from kubenexus.framework.verdict import Code, Skip, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode, Rows

_NOWHERE = np.array(NOWHERE)  # as an array: NumPy takes its time to look at a Python number
_FEW = 6  # up to so many rows, plain integers beat NumPy


def refresh(table: ClassTable, columns: NodeColumns) -> None:
    """Bring the table up to what the columns say now. A filter that fails refuses the class, with an error."""
    marks = (columns.node_changes.mark, columns.usage_changes.mark, columns.cluster_version)
    if table.built and table.marks == marks:
        return
    try:
        _catch_up(table, columns)
    except PluginFailedError as failure:
        table.built = False
        table.refused = Verdict(Code.ERROR, (failure.problem,), failure.plugin)
    except BaseException:
        table.built = False  # half repaired
        raise
    table.marks = marks


def for_job(table: ClassTable, job: JobView, columns: NodeColumns) -> None:
    """Ask again those plugins whose answer depends on where the job's other members went."""
    filters = [column for column in table.filters if column.traits.job]
    scores = [score for score in table.scores if score.traits.job]
    if not filters and not scores:
        return
    view = Nodes(columns)
    for column in filters:
        column.fill(column.ask(table.pod, view))
    if filters:
        table.check(columns)
    for score in scores:
        table.ask_score(score, view, job)
    table.sum(columns)


def _catch_up(table: ClassTable, columns: NodeColumns) -> None:
    of_node = columns.node_changes.since(table.marks[0]) if table.built else None
    of_usage = columns.usage_changes.since(table.marks[1]) if table.built else None
    if of_node is None or of_usage is None or table.failed is not None:
        table.build(columns)  # a rule that failed may have recovered with whatever changed
        return
    if columns.size > len(table.ok):
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
        stamped.catch_up(table, columns)
    if table.untrusted and table.failed is None:
        try:
            table.verify()
        except PluginFailedError:
            table.build(columns)


def _stretch(table: ClassTable, size: int) -> None:
    """Room for rows that came since; they are repaired next, since a new row is a changed node."""
    for column in table.filters:
        column.stretch(size)
    for score in table.scores:
        score.stretch(size)
    known, ok, rank = len(table.ok), np.zeros(size, np.bool_), np.full(size, NOWHERE, np.int64)
    ok[:known], rank[:known] = table.ok, table.rank
    table.ok, table.rank = ok, rank
    table.version += 1
    if table.steady is not None:
        table.steady = np.concatenate([table.steady, np.full(size - known, NOWHERE, np.int64)])
    if table.resting is not None:
        table.resting = np.concatenate([table.resting, np.zeros(size - known, table.resting.dtype)])


def _redo_cluster(table: ClassTable, columns: NodeColumns) -> None:
    """Something about all nodes moved: ask again those whose answer depends on it."""
    view, changed = Nodes(columns), table.lineup.profile.tie_break is TieBreak.NAME
    for column in table.filters:
        if column.traits.cluster:
            table.work.rows += columns.size
            column.fill(column.ask(table.pod, view))
            table.check(columns)
            changed = True
    for score in table.scores:
        if score.traits.cluster:
            raw, active = score.raw, score.active
            table.ask_score(score, view)
            same = isinstance(raw, int) and isinstance(score.raw, int) and raw == score.raw
            if not same or active != score.active:
                table.work.rows += columns.size
                changed = True
    if changed:
        table.watch_usage()
        table.sum(columns)


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
    except PluginFailedError:
        table.build(columns)  # who failed, and how, is settled there
        return
    extremes = False
    for score in table.scores if moved else table.usage_extremes if scores is table.usage_scores else scores:
        if not score.traits.stamped and score.plugin.normalize.extremes is not None and score.active:
            extremes |= score.measure(table.ok, table.version)
    if extremes or table.spread:
        table.sum(columns)


def _repair_one(table: ClassTable, columns: NodeColumns, row: int) -> bool:
    """One row as plain integers; whether it became feasible or ceased to be."""
    node, size, changed = OneNode(columns, row), len(table.ok), False
    told = table.told(node) if table.usage_together else None
    for column in table.usage_filters:
        bits = column.ask(table.pod, node) if told is None else 0
        if bits != column.at(row):
            changed = column.put(row, bits, size)
            table.version += 1
    for i, score in enumerate(table.usage_scores):
        table.spread |= score.put(row, score.ask(table.pod, node, ALONE) if told is None else told[i], size)
    rank = (_total_at(table, row) << BITS) + table.lots.one(columns, row)
    if table.steady is not None:
        table.steady[row] = rank
    if changed:
        return reflag_one(table, columns, row, rank)
    if table.ok.item(row):
        table.rank[row] = table.with_stamped(row, rank)
    return False


def _total_at(table: ClassTable, row: int) -> int:
    total = 0 if table.resting is None else table.resting.item(row)
    for score in table.moving:
        raw = score.raw.item(row)
        total += score.weight * (raw if score.kept else score.normalized(raw))
    return total


def _repair_many(
    table: ClassTable, columns: NodeColumns, rows: Any, filters: list[FilterColumn], scores: list[ScoreColumn]
) -> bool:
    """Some rows as columns; whether any became feasible or ceased to be."""
    view, size, of_node = Nodes(columns, rows), len(table.ok), scores is not table.usage_scores
    changed = of_node  # a node that came, went or was fenced, whatever filters say
    told = table.told(view) if table.usage_together and not of_node else None
    for column in filters:
        changed |= column.put(rows, column.ask(table.pod, view) if told is None else 0, size)
    view.feasible = table.ok
    fresh: dict[ScoreColumn, Any] = {}
    for i, score in enumerate(scores):
        raw = score.ask(table.pod, view, ALONE) if told is None else told[i]
        if isinstance(raw, (Skip, Verdict)):
            raise PluginFailedError(score.plugin.name, "skips some rows of a class and not others")
        table.spread |= score.put(rows, raw, size)
        if score.traits.trusted and isinstance(raw, np.ndarray):
            fresh[score] = raw
    if of_node:
        table.rest(rows)
    steady = table.rank_of(columns, rows, fresh)
    if table.steady is not None:
        table.steady[rows] = steady
    if changed:
        return reflag(table, columns, rows, steady)
    rank = table.with_stamped(rows, steady)
    if table.feasible != size:
        np.putmask(rank, ~table.ok[rows], _NOWHERE)
    table.rank[rows] = rank
    return False
