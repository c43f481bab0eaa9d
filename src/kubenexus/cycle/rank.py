"""From a table to a choice: the best feasible row, what each plugin gave it, and who came second."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.cycle.columns import ScoreColumn
from kubenexus.cycle.lots import BITS
from kubenexus.cycle.table import NOWHERE, ClassTable
from kubenexus.framework.decision import PluginScore, Standing
from kubenexus.state.nodes import NodeColumns


class Choice(msgspec.Struct, gc=False):
    row: int
    total: int
    scores: tuple[PluginScore, ...]
    runner_up: Standing | None
    feasible: int


def best_of_all(table: ClassTable, columns: NodeColumns) -> Choice | None:
    """Among all rows the table says are feasible."""
    if not table.feasible:
        return None
    rank = table.rank
    first = int(rank.argmax())
    held = rank.item(first)
    rank[first] = NOWHERE  # hide the best to see who is second, then put it back
    second = int(rank.argmax())
    runner_up = rank.item(second)
    rank[first] = held
    return Choice(
        row=first,
        total=held >> BITS,
        scores=_scores(table, first),
        runner_up=None if runner_up == NOWHERE else Standing(columns.names[second], runner_up >> BITS),
        feasible=table.feasible,
    )


def best_among(table: ClassTable, rows: Any, columns: NodeColumns) -> Choice | None:
    """Among some rows, normalised over those of them that are feasible."""
    rows = rows[table.ok[rows]]
    if not len(rows):
        return None
    extremes = [_extremes(score, rows) for score in table.scores]
    totals = np.broadcast_to(table.totals(rows, extremes), len(rows)).astype(np.int64)
    order = np.argsort((totals << BITS) + table.lots.many(columns, rows))[::-1][:2]
    first, *others = order.tolist()
    return Choice(
        row=int(rows[first]),
        total=int(totals[first]),
        scores=_scores(table, int(rows[first]), extremes),
        runner_up=Standing(columns.names[rows[others[0]]], int(totals[others[0]])) if others else None,
        feasible=len(rows),
    )


def _extremes(score: ScoreColumn, rows: Any) -> tuple[int, ...]:
    reduce = score.plugin.normalize.extremes
    if not score.active or reduce is None:
        return ()
    return reduce(np.broadcast_to(score.take(rows), len(rows)))


def _scores(table: ClassTable, row: int, extremes: list[tuple[int, ...]] | None = None) -> tuple[PluginScore, ...]:
    found = []
    for i, score in enumerate(table.scores):
        if score.active:
            raw = score.at(row)
            normalized = int(score.normalized(raw, None if extremes is None else extremes[i]))
            found.append(PluginScore(score.plugin.name, raw, normalized, score.weight))
    return tuple(found)
