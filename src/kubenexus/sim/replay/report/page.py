"""A comparison of two policies as one HTML file: charts as inline SVG, no script and no network."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from kubenexus.sim.replay.report.compare import Figure
from kubenexus.sim.replay.report.svg_chart import ChartLine, legend, line_chart
from kubenexus.sim.replay.results import FillResult
from kubenexus.sim.replay.runs import Result
from kubenexus.sim.replay.timeline_result import TimelineResult

_HOUR = 3600
_MAX_POINTS = 400  # of a line
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a;
       background: #fff }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: .15rem .8rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr:nth-child(even) { background: #8881 }
svg text { font-size: 12px; fill: currentColor } svg .title { font-weight: 600 } svg .y { text-anchor: end }
svg .x { text-anchor: middle } svg .grid { stroke: #8884 } .legend svg { vertical-align: middle }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #151515 } }
"""


def comparison_page(results: Sequence[Result], found: Sequence[Figure], own: str, other: str) -> str:
    """Returns the page. Charts show the first seed of each trace, tables the mean over all."""
    title = f"{own} against {other}"
    runs = {(each.trace, each.seed): None for each in results}
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(_summary(results))}</p>", legend([own, other])]
    for trace, seed in _first_seeds(list(runs)):
        pair = [each for each in results if (each.trace, each.seed) == (trace, seed)]
        parts += [f"<h2>{escape(trace)}, seed {seed}</h2>", *_charts(pair)]
    parts += ["<h2>Figures</h2>", _table(found, own, other), f"<p>{escape(_NOTE)}</p>"]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return "\n".join(["<!doctype html>", f'<html lang="en"><head>{head}</head><body>', *parts, "</body></html>", ""])


_NOTE = "Means over all runs. Percentages are of the cluster's GPUs, waiting times in seconds, usage in GPU hours."


def _summary(results: Sequence[Result]) -> str:
    traces, seeds = sorted({each.trace for each in results}), sorted({each.seed for each in results})
    jobs = results[0].pods if results else 0
    return f"Traces: {', '.join(traces)}. Seeds: {', '.join(map(str, seeds))}. {jobs} pods in the first run."


def _first_seeds(runs: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    first: dict[str, int] = {}
    for trace, seed in runs:
        first.setdefault(trace, seed)
    return list(first.items())


def _charts(pair: Sequence[Result]) -> list[str]:
    filled = [each for each in pair if isinstance(each, FillResult)]
    played = [each for each in pair if isinstance(each, TimelineResult)]
    charts = []
    if filled:
        lines = [ChartLine(each.policy, _filling(each)) for each in filled]
        charts.append(line_chart("Allocated GPUs", lines, "requests that arrived, % of GPUs", "% of GPUs"))
    for title, field, unit in _TIMELINES if played else ():
        lines = [ChartLine(each.policy, [(s.at / _HOUR, getattr(s, field)) for s in each.samples]) for each in played]
        charts.append(line_chart(title, lines, "hours", unit))
    return charts + ([_waits(played)] if played else [])


_TIMELINES = (
    ("Allocated GPUs", "allocated", "% of GPUs"),
    ("Jobs that wait", "waiting", "jobs"),
    ("Idle GPU that a typical pod cannot use", "fragmentation", "% of idle GPU"),
)


def _filling(result: FillResult) -> list[tuple[float, float]]:
    if not result.arrived or not result.capacity:
        return []
    kept = np.unique(np.linspace(0, len(result.arrived) - 1, _MAX_POINTS).astype(int)).tolist()
    factor = 100 / result.capacity
    return [(result.arrived[i] * factor, result.allocated[i] * factor) for i in kept]


def _waits(played: Sequence[TimelineResult]) -> str:
    sizes = sorted({size for each in played for size in each.waits}, key=float)
    head = ["GPUs", *(f"{each.policy} {p}" for p in ("p50", "p95", "p99") for each in played)]
    rows: list[list[Any]] = [
        [size, *(each.wait(size).get(p, "-") for p in ("p50", "p95", "p99") for each in played)] for size in sizes
    ]
    return "<h3>Seconds that jobs waited, by the number of their GPUs</h3>" + _html_table(head, rows)


def _table(found: Sequence[Figure], own: str, other: str) -> str:
    rows = [[name, mine, theirs, ratio] for name, _, mine, theirs, ratio in (figure.row() for figure in found)]
    return _html_table(["", own, other, "ratio"], rows)


def _html_table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    def line(cells: Sequence[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    return "\n".join(["<table>", line(head, "th"), *(line(row, "td") for row in rows), "</table>"])
