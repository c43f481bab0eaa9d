"""Runs as lines while they are made, and as one table when they are done."""

from collections.abc import Iterable, Sequence
from typing import Final

from bench.peers.running import Result

HEAD: Final = (
    "scheduler", "processes", "case", "bound", "pods/s", "first bind, s", "its CPU, s for 1,000 pods",
    "API server and etcd, s for 1,000", "peak MB", "half gangs", "gangs in several racks",
)  # fmt: skip


def line(result: Result) -> str:
    """One run, as it goes."""
    told = f"{result.bound} of {result.pods} bound, {result.rate:.0f} pods/s (first after {result.first:.1f} s)"
    cost = f"{result.cpu:.1f} CPU s per 1,000, {result.peak_mb:.0f} MB"
    wrong = f"; {result.partial} half gangs" if result.partial else ""
    wrong += f"; {result.scattered} gangs in several racks" if result.scattered else ""
    return f"{result.case:<11} {result.who:<18} {told}, {cost}{wrong}"


def table(results: Sequence[Result]) -> str:
    """Markdown, the fastest of each case first."""
    cases = dict.fromkeys(each.case for each in results)
    rows = [
        _row(_cells(each))
        for case in cases
        for each in sorted((each for each in results if each.case == case), key=lambda each: -each.rate)
    ]
    return "\n".join([_row(HEAD), _row(["---"] * len(HEAD)), *rows]) if rows else ""


def _cells(each: Result) -> list[str]:
    bound = f"{each.bound:,}" if each.bound == each.pods else f"{each.bound:,} of {each.pods:,}"
    figures = [f"{each.rate:.0f}", f"{each.first:.1f}", f"{each.cpu:.1f}", f"{each.server_cpu:.1f}"]
    racks = str(each.scattered) if each.case.endswith("rack") else ""
    counts = [f"{each.peak_mb:.0f}", str(each.partial), racks]
    return [f"{each.who} {each.version}", str(each.processes), each.case, bound, *figures, *counts]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
