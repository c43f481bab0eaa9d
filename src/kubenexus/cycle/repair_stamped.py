"""Plugins that look beyond a row (pod affinity, spreading): asked again when what they stand on has moved.

What such a plugin depends on is told by its stamp. While the stamp is equal its columns hold, whatever was placed
elsewhere; when it moves, the plugin is asked about all rows, or about those it says are touched.
"""

from collections.abc import Set
from typing import Any

import numpy as np

from kubenexus.base.arrays import BoolColumn
from kubenexus.cycle.class_table import INFEASIBLE, ClassTable
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.framework.plugin_results import FAILURES, call_plugin, plugin_error
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Skip
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode

_MANY = 64  # from so many rows on, all of them are as cheap
_FEW = 4  # up to so many rows, plain integers beat NumPy


def refresh_stamped(table: ClassTable, columns: NodeColumns) -> None:
    """Ask again whose stamp moved, and bring feasibility and ranks up to date."""
    rows = _filters(table, columns)
    if rows is None:
        table.build(columns)  # a plugin is concerned now that was not, or no longer is
        return
    if len(rows) > _MANY:
        table.compute_feasible(columns)
    elif len(rows) > _FEW:
        update_feasibility(table, columns, np.array(rows))
    else:
        for row in rows:
            update_row_feasibility(table, columns, row, table.base_rank.item(row))
            table.version += 1  # it may be refused for another reason now
    of_feasible = table.feasible_version != table.version
    stale = _scores(table, columns, of_feasible)
    if of_feasible and _steady_moved(table):
        table.rebuild_ranks(columns)
    elif stale is None or len(rows) > _MANY:
        table.add_stamped()
    else:
        table.resum_rows(stale)
    table.feasible_version = table.version


def update_feasibility(table: ClassTable, columns: NodeColumns, rows: Any, steady: Any = None) -> bool:
    """Rows whose reasons or sums changed: are they feasible now, and their ranks. Whether feasibility moved."""
    rank = table.add_stamped_parts(rows, table.base_rank[rows] if steady is None else steady)
    refused = _refused(table, columns, rows)
    if refused is None and table.feasible_count == len(table.feasible):  # everything was feasible, and still is
        table.rank[rows] = rank
        return False
    ok = np.ones(len(rows), np.bool_) if refused is None else ~refused
    moved = bool(np.count_nonzero(ok != table.feasible[rows]))
    if moved:
        table.feasible[rows] = ok
        table.feasible_count = int(np.count_nonzero(table.feasible))
    table.rank[rows] = rank if refused is None else np.where(ok, rank, INFEASIBLE)
    if moved or refused is not None:  # a row that stays refused may have another reason now
        table.version += 1
    return moved


def update_row_feasibility(table: ClassTable, columns: NodeColumns, row: int, rank: int) -> bool:
    """The same for one row, as plain integers."""
    ok = bool(columns.alive[row]) and not columns.blocked[row]
    for column in table.filters:
        if column.bits is not None and column.bits.item(row):
            ok = False
            break
    table.rank[row] = table.add_stamped_parts(row, rank) if ok else INFEASIBLE
    if table.feasible.item(row) == ok:
        return False
    table.feasible[row] = ok
    table.feasible_count += 1 if ok else -1
    table.version += 1
    return True


def _refused(table: ClassTable, columns: NodeColumns, rows: Any) -> Any:
    """Which of the rows cannot be used; None when all can."""
    refused = None
    if columns.count != columns.size or columns.blocked_count:
        refused = ~columns.alive[rows] | columns.blocked[rows]
    for column in table.filters:
        if column.bits is not None:
            more = column.bits[rows] != 0
            refused = more if refused is None else refused | more
    return refused


def _filters(table: ClassTable, columns: NodeColumns) -> Any:
    """The rows whose reasons may have changed, each once, as a list unless they are many; None when the table must be
    built anew."""
    changed: Any = ()
    for plugin in table.plugins.stamped_filters:
        where = (plugin.name, "filter")
        before = table.stamps.get(where)
        if not _moved(plugin, where, table, columns):
            continue
        column = _column_of(plugin, table)
        if _concerned(table, plugin, Nodes(columns)) != (column is not None):
            return None
        if column is not None:
            rows = _ask(table, column, columns, before)
            changed = _either(changed, rows)
    return changed


def _either(some: Any, more: Any) -> Any:
    """The rows of both, each once. Where one has many, its own will do: all rows are looked at then. (To merge 5,000
    with 5,000 took half of what a member with affinity and spreading costs.)"""
    larger = some if len(some) > len(more) else more
    return larger if len(larger) > _MANY or not len(some) or not len(more) else [*{*some, *more}]


def _column_of(plugin: Any, table: ClassTable) -> FilterColumn | None:
    for column in table.filters:
        if column.plugin is plugin:
            return column
    return None


def _ask(table: ClassTable, column: FilterColumn, columns: NodeColumns, before: Any) -> Any:
    """Take the plugin's new answer; the rows it may be another on."""
    some = _touched(table, column.plugin, columns, before)
    if some is None:
        table.work.beyond += columns.size
        rows = _refill(column, column.ask(table.pod, Nodes(columns)), columns.size).nonzero()[0]
        return rows if len(rows) > _MANY else rows.tolist()
    table.work.beyond += len(some)
    if len(some) <= _FEW and column.traits.supports_one_node:
        for row in some:
            column.put(row, column.ask(table.pod, OneNode(columns, row)), columns.size)
    else:
        where = np.array(some, np.int64)
        column.put(where, column.ask(table.pod, Nodes(columns, where)), columns.size)
    return some


def _scores(table: ClassTable, columns: NodeColumns, of_feasible: bool) -> Set[int] | None:
    """Ask again whose stamp moved, or who looks at the feasible rows; the rows whose sums change by that, None for
    all."""
    rows: Set[int] | None = frozenset()
    for score in table.stamped_columns:
        plugin: Any = score.plugin
        was, asked = score.active, False
        moved = _moved(plugin, (plugin.name, "score"), table, columns)
        if moved or (of_feasible and score.traits.feasible and was):
            table.ask_score(score, Nodes(columns))
            table.work.beyond += columns.size
            asked = True
        if score.active and (asked or of_feasible) and (score.measure(table.feasible, table.version) or asked):
            stale = score.rows_to_resum(table.feasible)
            rows = None if rows is None or stale is None else rows | stale
        if was != score.active:
            rows = None
            table.select_usage_plugins()
    return rows


def _steady_moved(table: ClassTable) -> bool:
    """Whether other rows being feasible moved the extremes of the scores that do not look beyond a row."""
    moved = False
    for score in table.scores:
        if score.active and not score.traits.stamped and score.plugin.normalize.extremes is not None:
            moved |= score.measure(table.feasible, table.version)
    return moved


def _touched(table: ClassTable, plugin: Any, columns: NodeColumns, before: Any) -> list[int] | None:
    """The rows a stamped filter has to be asked about again, each once, None for all; many are as dear as all."""
    if before is None or not hasattr(plugin, "touched_rows"):
        return None
    stamp = table.stamps[plugin.name, "filter"]
    rows: list[int] | None = call_plugin(plugin, _rows, plugin, table.pod, columns, before, stamp)
    return rows


def _rows(plugin: Any, pod: PodClass, columns: NodeColumns, before: Any, after: Any) -> list[int] | None:
    rows = plugin.touched_rows(pod, columns, before, after)
    if rows is None or len(rows) > _MANY:
        return None
    found = [*{*rows}]
    if found and not 0 <= min(found) <= max(found) < columns.size:
        raise ValueError(f"`touched` named rows that are none of {columns.size}")
    return found


def _moved(plugin: Any, where: tuple[str, str], table: ClassTable, columns: NodeColumns) -> bool:
    """Whether the plugin's stamp at a point is another one now; then it is remembered."""
    try:
        stamp = plugin.stamp(table.pod, columns, where[1])
        if table.stamps.get(where) == stamp:
            return False
    except FAILURES as error:
        raise plugin_error(plugin, error) from error
    table.stamps[where] = stamp
    return True


def _concerned(table: ClassTable, plugin: Any, view: Nodes) -> bool:
    return plugin not in table.plugins.pre_filter or not isinstance(table.prepare(plugin, view), Skip)


def _refill(column: FilterColumn, bits: Any, size: int) -> BoolColumn:
    """Take a filter's new answer for all rows; where it differs from the old one."""
    old = column.bits
    column.fill(bits)
    if old is None and column.bits is None:
        return np.zeros(size, np.bool_)
    if old is None or column.bits is None:
        return np.asarray((column.bits if old is None else old) != 0)
    return np.asarray(old != column.bits)
