"""Selects a row from a class's table: the best feasible one, with the score of each plugin and the runner-up."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.cycle.class_table import ClassTable
from kubenexus.cycle.feasibility import INFEASIBLE
from kubenexus.cycle.plugin_output import check_score_range, usable
from kubenexus.cycle.tie_break import TIE_BREAK_BITS
from kubenexus.framework.decision import NodeScore, PluginScore
from kubenexus.framework.extension_points import CodedScores
from kubenexus.framework.job import SINGLE_POD_VIEW
from kubenexus.framework.verdict import SKIP, Skip, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes


class Selection(msgspec.Struct, gc=False):
    """The selected row, and the number of rows that were `feasible`."""

    row: int
    total: int
    scores: tuple[PluginScore, ...]
    runner_up: NodeScore | None
    feasible: int


def select_best(table: ClassTable, columns: NodeColumns) -> Selection | None:
    """Returns the best of all feasible rows; None if there is none."""
    if not table.feasible_count:
        return None
    rank = table.rank
    first = int(rank.argmax())
    held = rank.item(first)
    rank[first] = INFEASIBLE  # hidden while the second best is looked for
    second = int(rank.argmax())
    runner_up = rank.item(second)
    rank[first] = held
    return Selection(
        row=first,
        total=(held >> TIE_BREAK_BITS) + table.sums.uniform,
        scores=tuple([score.uniform_score or score.shown_at(first) for score in table.scores if score.active]),
        runner_up=None
        if runner_up < 0
        else NodeScore(columns.names[second], (runner_up >> TIE_BREAK_BITS) + table.sums.uniform),
        feasible=table.feasible_count,
    )


def select_best_of(table: ClassTable, rows: Any, columns: NodeColumns) -> Selection | None:
    """Returns the best of some rows, normalised over those of them that are feasible; None if none is."""
    rows = rows[table.feasible[rows]]
    if not len(rows):
        return None
    scores = score_rows(table, rows, columns)
    totals = np.zeros(len(rows), np.int64)
    for score in scores:
        totals += score.weight * score.normalized
    order = np.argsort((totals << TIE_BREAK_BITS) + table.tie_breaker.for_rows(columns, rows))[::-1][:2]
    first, *others = order.tolist()
    return Selection(
        row=int(rows[first]),
        total=int(totals[first]),
        scores=tuple(PluginScore(s.plugin, s.shown(first), int(s.normalized[first]), s.weight) for s in scores),
        runner_up=NodeScore(columns.names[rows[others[0]]], int(totals[others[0]])) if others else None,
        feasible=len(rows),
    )


class RowScores(msgspec.Struct, gc=False):
    """The scores of one plugin on some rows. `show` returns a raw score as explanations show it."""

    plugin: str
    weight: int
    raw: Any
    normalized: Any
    show: Any

    def shown(self, i: int) -> int:
        """Returns the raw score of the i-th row as explanations show it."""
        return int(self.show(int(self.raw[i])))


def score_rows(table: ClassTable, rows: Any, columns: NodeColumns) -> list[RowScores]:
    """Returns the scores of each plugin as if these rows were the only feasible ones, without plugins that skip."""
    view = Nodes(columns, rows)
    view.feasible = np.zeros(columns.size, np.bool_)
    view.feasible[rows] = True
    found = []
    for score in table.scores:
        raw = score.values.take(rows) if score.active else SKIP
        if score.traits.feasible:
            raw = score.ask(table.pod, view, SINGLE_POD_VIEW)
        if isinstance(raw, (Skip, Verdict)):
            continue
        if isinstance(raw, CodedScores):
            raw = raw.values[raw.codes]
        scale = score.scale
        if not score.traits.trusted:
            raw = usable(raw, len(rows), scale.is_normalized, score.plugin.name)
        raw = np.full(len(rows), raw, np.int64) if isinstance(raw, (int, np.integer)) else np.asarray(raw, np.int64)
        normalized = scale.normalized(raw, scale.extremes_of(raw))
        if not score.traits.trusted:
            check_score_range(normalized, score.plugin.name)
        found.append(RowScores(score.plugin.name, scale.weight, raw, normalized, scale.displayed))
    return found
