"""Results as tables in plain text: a line for each trace and policy, over all seeds."""

from collections.abc import Sequence
from statistics import mean, stdev
from typing import TypeVar

from kubenexus.sim.replay.results import FillResult
from kubenexus.sim.replay.runs import Result
from kubenexus.sim.replay.timeline_result import TimelineResult

_SHOWN = (50, 90, 100, 130)
R = TypeVar("R", FillResult, TimelineResult)


def tables(results: Sequence[Result]) -> list[str]:
    """Returns the tables of all results, as lines."""
    filled = [each for each in results if isinstance(each, FillResult)]
    played = [each for each in results if isinstance(each, TimelineResult)]
    lines = _fill_table(filled) if filled else []
    asked = [each for each in played if each.forecasts is not None]
    return lines + (_timeline_table(played) if played else []) + (_eta_table(asked) if asked else [])


def _fill_table(results: Sequence[FillResult]) -> list[str]:
    head = (
        "trace",
        "policy",
        "seeds",
        "pods",
        "placed",
        *(f"at {k} %" for k in _SHOWN),
        "first refusal",
        "decisions/s",
    )
    rows = [head]
    for group in _groups(results):
        figures = [_spread([each.allocated_at(k) for each in group]) for k in _SHOWN]
        refused = _spread([each.first_refusal_at for each in group])
        rows.append((*_names(group), *_pods(group), *figures, refused, _rate(group)))
    return [*aligned(rows), "", "at k %: allocated GPUs in percent of capacity when requests for k % have arrived"]


def _timeline_table(results: Sequence[TimelineResult]) -> list[str]:
    largest = max((float(size) for each in results for size in each.waits), default=0.0)
    size = f"{largest:g}"
    head = ("trace", "policy", "seeds", "pods", "placed", "utilisation", "fragmented", "wait p50", "p95", "p99")
    rows: list[tuple[str, ...]] = [(*head, f"{size} GPUs p50", "p95", "never started", "decisions/s")]
    for group in _groups(results):
        waits = [_spread([each.wait().get(p) for each in group], 0) for p in ("p50", "p95", "p99")]
        large = [_spread([each.wait(size).get(p) for each in group], 0) for p in ("p50", "p95")]
        rows.append(
            (
                *_names(group),
                *_pods(group),
                _spread([each.utilisation for each in group]),
                _spread([each.fragmentation for each in group]),
                *waits,
                *large,
                f"{mean(each.unstarted for each in group):.0f}",
                _rate(group),
            )
        )
    return [*aligned(rows), "", "utilisation and fragmented idle GPU in percent, waiting times in seconds"]


def _eta_table(results: Sequence[TimelineResult]) -> list[str]:
    figures = ("asked", "known", "in_range", "before", "after", "width", "error", "wait")
    rows: list[tuple[str, ...]] = [("trace", "policy", "seed", *(each.replace("_", " ") for each in figures))]
    for each in results:
        found = each.eta()
        rows.append((each.trace, each.policy, str(each.seed), *(f"{found.get(name, 0):g}" for name in figures)))
    notes = "expected starts: the part of the true starts in, before and after the range; medians in seconds"
    return ["", *aligned(rows), "", notes]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows as lines: the first two columns to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _groups(results: Sequence[R]) -> list[list[R]]:
    """Returns the results by trace and policy, in the order in which they came."""
    found: dict[tuple[str, str], list[R]] = {}
    for each in results:
        found.setdefault((each.trace, each.policy), []).append(each)
    return list(found.values())


def _names(group: Sequence[Result]) -> tuple[str, str, str]:
    return group[0].trace, group[0].policy, str(len(group))


def _pods(group: Sequence[Result]) -> tuple[str, str]:
    return f"{mean(each.pods for each in group):.0f}", f"{mean(each.placed for each in group):.0f}"


def _rate(group: Sequence[Result]) -> str:
    return f"{mean(each.decisions_per_s for each in group):.0f}"


def _spread(numbers: Sequence[float | None], digits: int = 2) -> str:
    """Returns the mean, and behind ± the standard deviation of several seeds; `-` if a run has no such figure."""
    known = [number for number in numbers if number is not None]
    if not known:
        return "-"
    text = f"{mean(known):.{digits}f}"
    return f"{text}±{stdev(known):.{digits}f}" if len(known) > 1 else text
