"""From a table to a choice: the best feasible row, what each plugin gave it, and who came second."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.cycle.border import in_range, usable
from kubenexus.cycle.lots import BITS
from kubenexus.cycle.table import NOWHERE, ClassTable
from kubenexus.framework.decision import PluginScore, Standing
from kubenexus.framework.job import ALONE
from kubenexus.framework.points import Coded
from kubenexus.framework.verdict import SKIP, Skip, Verdict
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes


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
        total=(held >> BITS) + table.constant,
        scores=tuple([score.same or score.shown_at(first) for score in table.scores if score.active]),
        runner_up=None if runner_up < 0 else Standing(columns.names[second], (runner_up >> BITS) + table.constant),
        feasible=table.feasible,
    )


def best_among(table: ClassTable, rows: Any, columns: NodeColumns) -> Choice | None:
    """Among some rows, scored and normalised over those of them that are feasible."""
    rows = rows[table.ok[rows]]
    if not len(rows):
        return None
    scores = scores_among(table, rows, columns)
    totals = np.zeros(len(rows), np.int64)
    for score in scores:
        totals += score.weight * score.normalized
    order = np.argsort((totals << BITS) + table.lots.many(columns, rows))[::-1][:2]
    first, *others = order.tolist()
    return Choice(
        row=int(rows[first]),
        total=int(totals[first]),
        scores=tuple(PluginScore(s.plugin, s.shown(first), int(s.normalized[first]), s.weight) for s in scores),
        runner_up=Standing(columns.names[rows[others[0]]], int(totals[others[0]])) if others else None,
        feasible=len(rows),
    )


class Scored(msgspec.Struct, gc=False):
    """One plugin's scores over some rows."""

    plugin: str
    weight: int
    raw: Any
    normalized: Any
    show: Any

    def shown(self, i: int) -> int:
        return int(self.show(int(self.raw[i])))


def scores_among(table: ClassTable, rows: Any, columns: NodeColumns) -> list[Scored]:
    """What each plugin gives these rows when they are the only feasible ones. Plugins that skip are left out."""
    view = Nodes(columns, rows)
    view.feasible = np.zeros(columns.size, np.bool_)
    view.feasible[rows] = True
    found = []
    for score in table.scores:
        raw = score.take(rows) if score.active else SKIP
        if score.traits.feasible:
            raw = score.ask(table.pod, view, ALONE)
        if isinstance(raw, (Skip, Verdict)):
            continue
        if isinstance(raw, Coded):
            raw = raw.values[raw.codes]
        if not score.traits.trusted:
            raw = usable(raw, len(rows), score.kept, score.plugin.name)
        raw = np.broadcast_to(np.asarray(raw, np.int64), len(rows))
        normalized = score.normalized(raw, score.extremes_of(raw))
        if not score.traits.trusted:
            in_range(normalized, score.plugin.name)
        found.append(Scored(score.plugin.name, score.weight, raw, normalized, score.shown))
    return found
