"""Why a pod goes where it goes, or waits: the decision, told to a person.

The object behind it is the Decision; this page adds the table of the best nodes and puts everything into words.
"""

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.cycle.lots import BITS
from kubenexus.cycle.rank import scores_among
from kubenexus.framework.decision import Decision, PluginScore
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.state.ledger import Ledger


class Rated(msgspec.Struct, frozen=True, gc=False):
    """A feasible node: its total and what each plugin gave it."""

    node: str
    total: int
    scores: tuple[PluginScore, ...]


class Explanation(msgspec.Struct, frozen=True, gc=False):
    """A decision about one pod, with the best nodes as they stood."""

    pod: str
    decision: Decision
    best: tuple[Rated, ...] = ()


def explain(pod: Pod, ledger: Ledger, planner: Planner, now: float, nodes: int = 5) -> Explanation:
    """Decide for this pod as if it waited now. If it is bound or assumed, it is first taken off its node."""
    ledger.pod_gone(pod.key)
    pending = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
    decision = planner.decide(Job.of(pending), ledger.snapshot(), now)
    best = _best(pending, ledger, planner, nodes) if decision.placed else ()
    return Explanation(pod=pod.key, decision=decision, best=best)


def _best(pod: Pod, ledger: Ledger, planner: Planner, nodes: int) -> tuple[Rated, ...]:
    table = planner.bench.look(pod, ledger.nodes).table
    rows = np.flatnonzero(table.ok)
    scores = scores_among(table, rows, ledger.nodes)
    totals = np.zeros(len(rows), np.int64)
    for score in scores:
        totals += score.weight * score.normalized
    order = np.argsort((totals << BITS) + table.lots.many(ledger.nodes, rows))[::-1][:nodes]
    return tuple(
        Rated(
            ledger.nodes.names[rows[i]],
            int(totals[i]),
            tuple(PluginScore(s.plugin, s.shown(i), int(s.normalized[i]), s.weight) for s in scores),
        )
        for i in order.tolist()
    )


def told(explanation: Explanation) -> str:
    """The explanation as plain text, in lines that pipe well."""
    decision = explanation.decision
    lines = [f"{explanation.pod}"]
    if decision.placed:
        lines += _placed(explanation)
    else:
        lines.append(f"WHY      {decision.sentence()}")
        lines += _refused(decision)
    return "\n".join(lines) + "\n"


def _placed(explanation: Explanation) -> list[str]:
    placement = explanation.decision.placements[0]
    diagnosis = explanation.decision.diagnosis
    lines = [
        f"NODE     {placement.node}   total {placement.total}, {placement.feasible} of {diagnosis.nodes} nodes fit"
    ]
    if placement.runner_up is not None:
        lines.append(f"NEXT     {placement.runner_up.node}   total {placement.runner_up.total}")
    lines += [f"REFUSED  {count} {reason}" for reason, count in diagnosis.counts]
    plugins = [score.plugin for score in explanation.best[0].scores] if explanation.best else []
    header = ["NODE", "TOTAL", *plugins]
    rows = [[r.node, str(r.total), *(f"{s.weight}x{s.normalized}" for s in r.scores)] for r in explanation.best]
    return [*lines, "", *_table([header, *rows])]


def _refused(decision: Decision) -> list[str]:
    diagnosis = decision.diagnosis
    lines = [f"REFUSED  {count} {reason}" for reason, count in diagnosis.counts]
    if diagnosis.refused_by:
        lines.append(f"BY       {', '.join(diagnosis.refused_by)}")
    nearest = diagnosis.nearest
    if nearest is not None:
        lacking = ", ".join(f"{s.lacking} {_unit(s.resource)}" for s in nearest.shortages)
        lines.append(
            f"NEAREST  {nearest.node}: {', '.join(nearest.reasons)}" + (f"; lacks {lacking}" if lacking else "")
        )
    return lines


def _unit(resource: str) -> str:
    return {"cpu": "milli-cpu", "memory": "bytes of memory"}.get(resource, resource)


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
