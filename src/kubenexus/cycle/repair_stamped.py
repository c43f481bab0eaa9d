"""Repairs the results of plugins that look beyond a row: pod affinity, spreading.

A `Stamped` plugin has a stamp: a value that moves when its result may have changed. While the stamp is equal, the
cached columns hold. When it moves, the plugin is called for all rows, or for those that its `touched_rows` names.
"""

from collections.abc import Set
from typing import Any

import numpy as np

from kubenexus.base.arrays import BoolColumn
from kubenexus.cycle.class_table import ClassTable
from kubenexus.cycle.feasibility import INFEASIBLE
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.framework.plugin_results import FAILURES, PluginError, plugin_error
from kubenexus.framework.verdict import Skip
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

_MANY_ROWS = 64  # rows from which on all rows cost as much
_FEW_ROWS = 4  # rows up to which plain numbers are faster than NumPy


def refresh_stamped(table: ClassTable, columns: NodeColumns) -> None:
    """Calls the plugins whose stamp moved, and brings feasibility and ranks up to date."""
    stamped = table.stamped
    rows = _refresh_filters(table, columns)
    if rows is None:
        table.build(columns)  # a plugin that skipped the class no longer does, or the reverse
        return
    if len(rows) > _MANY_ROWS:
        table.feasibility.compute(table.filters, columns)
    elif len(rows) > _FEW_ROWS:
        update_feasibility(table, columns, np.array(rows))
    else:
        for row in rows:
            update_row_feasibility(table, columns, row, stamped.base_rank.item(row))
            table.feasibility.version += 1  # the row may be refused for another reason now
    feasible_moved = stamped.feasible_version != table.version
    stale = _refresh_scores(table, columns, feasible_moved)
    if feasible_moved and _row_extremes_moved(table):
        table.rebuild_ranks(columns)
    elif stale is None or len(rows) > _MANY_ROWS:
        table.rebuild_stamped_ranks()
    else:
        stamped.resum(table.rank, stale)
    stamped.feasible_version = table.version


def update_feasibility(table: ClassTable, columns: NodeColumns, rows: Any, base: Any = None) -> bool:
    """Computes feasibility and ranks of rows whose reasons or sums changed. Returns whether feasibility moved.

    `base` are their ranks without the stamped scores; None: those in the table.
    """
    rank = table.stamped.add_parts(rows, table.stamped.base_rank[rows] if base is None else base)
    moved, ok = table.feasibility.update(table.filters, columns, rows)
    table.rank[rows] = rank if ok is None else np.where(ok, rank, INFEASIBLE)
    return moved


def update_row_feasibility(table: ClassTable, columns: NodeColumns, row: int, base: int) -> bool:
    """Does the same for one row, as plain numbers."""
    moved = table.feasibility.update_row(table.filters, columns, row)
    table.rank[row] = table.stamped.add_parts_at(row, base) if table.feasible.item(row) else INFEASIBLE
    return moved


def _refresh_filters(table: ClassTable, columns: NodeColumns) -> Any:
    """Returns the rows whose reasons changed, each once, as a list unless they are many. None: the table is to be built
    again."""
    changed: Any = ()
    for plugin in table.plugins.stamped_filters:
        where = (plugin.name, "filter")
        before = table.stamped.stamps.get(where)
        if not _moved(plugin, where, table, columns):
            continue
        column = _column_of(plugin, table)
        if column is None:
            if _concerned(table, plugin, Nodes(columns)):
                return None
            continue
        rows = _refresh_filter(table, column, columns, before)
        if rows is None:
            return None
        changed = _union(changed, rows) if len(rows) else changed
    return changed


def _union(some: Any, more: Any) -> Any:
    """Returns the rows of both, each once; the larger of them if it has many, because all rows are computed then.

    To merge 5,000 with 5,000 rows took half of the time of a gang member with affinity and spreading.
    """
    larger = some if len(some) > len(more) else more
    return larger if len(larger) > _MANY_ROWS or not len(some) or not len(more) else [*{*some, *more}]


def _column_of(plugin: Any, table: ClassTable) -> FilterColumn | None:
    for column in table.filters:
        if column.plugin is plugin:
            return column
    return None


def _refresh_filter(table: ClassTable, column: FilterColumn, columns: NodeColumns, before: Any) -> Any:
    """Calls a filter whose stamp moved. Returns the rows whose reasons changed. None: the plugin skips the class now,
    which it is asked if all rows are concerned. A filter that would be skipped refuses no row."""
    some = _touched(table, column.plugin, columns, before)
    if some is None:
        view = Nodes(columns)
        if not _concerned(table, column.plugin, view):
            return None
        table.work.beyond += columns.size
        rows = _refill(column, column.ask(table.pod, view), columns.size).nonzero()[0]
        return rows if len(rows) > _MANY_ROWS else rows.tolist()
    table.work.beyond += len(some)
    if len(some) <= _FEW_ROWS and column.traits.supports_one_node:
        moved = []
        for row in some:
            if column.put(row, column.ask(table.pod, OneNode(columns, row)), columns.size):
                moved.append(row)  # noqa: PERF401
        return moved
    where = np.array(some, np.int64)
    return some if column.put(where, column.ask(table.pod, Nodes(columns, where)), columns.size) else ()


def _refresh_scores(table: ClassTable, columns: NodeColumns, feasible_moved: bool) -> Set[int] | None:
    """Calls the Score plugins whose stamp moved, or that depend on the feasible rows.

    Returns the rows whose sums change by that; None for all.
    """
    rows: Set[int] | None = frozenset()
    for score in table.stamped.columns:
        plugin: Any = score.plugin
        was, called = score.active, False
        moved = _moved(plugin, (plugin.name, "score"), table, columns)
        if moved or (feasible_moved and score.traits.feasible and was):
            table.ask_score(score, Nodes(columns))
            table.work.beyond += columns.size
            called = True
        if score.active and (called or feasible_moved) and (score.measure(table.feasible, table.version) or called):
            stale = score.rows_to_resum(table.feasible)
            rows = None if rows is None or stale is None else rows | stale
        if was != score.active:
            rows = None
            table.select_usage_columns()
    return rows


def _row_extremes_moved(table: ClassTable) -> bool:
    """Measures the scores that depend on the row alone again. Returns whether any of their extremes moved."""
    moved = False
    for score in table.scores:
        if score.active and not score.traits.stamped:
            moved |= score.measure(table.feasible, table.version)
    return moved


def _touched(table: ClassTable, plugin: Any, columns: NodeColumns, before: Any) -> list[int] | None:
    """Returns the rows for which a stamped filter is to be called, each once. None for all: many cost as much."""
    if before is None or not hasattr(plugin, "touched_rows"):
        return None
    try:  # not `call_plugin`: most pods with claims are placed by this
        rows = plugin.touched_rows(table.pod, columns, before, table.stamped.stamps[plugin.name, "filter"])
        if rows is None or len(rows) > _MANY_ROWS:
            return None
        found = [*{*rows}]
        if found and not 0 <= min(found) <= max(found) < columns.size:
            raise PluginError(plugin.name, f"`touched_rows` named rows that are none of {columns.size}")
    except FAILURES as error:
        raise plugin_error(plugin, error) from error
    return found


def _moved(plugin: Any, where: tuple[str, str], table: ClassTable, columns: NodeColumns) -> bool:
    """Returns whether the plugin's stamp at an extension point moved, and records the new one."""
    try:
        stamp = plugin.stamp(table.pod, columns, where[1])
        if table.stamped.stamps.get(where) == stamp:
            return False
    except FAILURES as error:
        raise plugin_error(plugin, error) from error
    table.stamped.stamps[where] = stamp
    return True


def _concerned(table: ClassTable, plugin: Any, view: Nodes) -> bool:
    return plugin not in table.plugins.pre_filter or not isinstance(table.pre_filter(plugin, view), Skip)


def _refill(column: FilterColumn, bits: Any, size: int) -> BoolColumn:
    """Writes what a filter returned for all rows. Returns where that differs from before."""
    old = column.bits
    column.fill(bits)
    if old is None and column.bits is None:
        return np.zeros(size, np.bool_)
    if old is None or column.bits is None:
        return np.asarray((column.bits if old is None else old) != 0)
    return np.asarray(old != column.bits)
