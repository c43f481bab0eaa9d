"""The same figures for people (a table), for documents (Markdown) and for programs (JSON)."""

import os
import platform
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from bench.measure import Longest, Memory, Result, Timing
from bench.targets import Judgement

TIMING_HEAD = ("bench", "case", "nodes", "us", "kernel us", "ratio", "median")
_WIDTHS = (14, 28, 7, 11, 10, 8, 8)


def header() -> str:
    return _line(TIMING_HEAD)


def line(result: Result) -> str:
    return _line(_cells(result))


def verdicts(judgements: Iterable[Judgement]) -> str:
    """The promises with their marks."""
    lines = [
        f"  {'pass' if each.kept else 'FAIL'}  {each.what:<50} {each.found:>8.2f} of {each.limit:<8g} {_whose(each)}"
        for each in judgements
    ]
    return "\n".join(["Targets (of this run; a figure, not a test):", *lines]) if lines else ""


def markdown(results: Sequence[Result], judgements: Iterable[Judgement]) -> str:
    """Tables for docs/benchmarks.md."""
    timings = [_row(_cells(result)) for result in results if isinstance(result, Timing)]
    sizes = [_row(_cells(result)[:4]) for result in results if isinstance(result, Memory)]
    turns = [_row(_cells(result)[:5]) for result in results if isinstance(result, Longest)]
    kept = [
        _row((each.what, _whose(each), f"{each.limit:g}", f"{each.found:.2f}", "yes" if each.kept else "**no**"))
        for each in judgements
    ]
    tables = [
        (("bench", "case", "nodes", "µs", "kernel µs", "ratio", "median ratio"), timings),
        (("bench", "case", "nodes", "memory"), sizes),
        (("bench", "case", "nodes", "time", "memory"), turns),
        (("target", "case", "at most", "measured", "kept"), kept),
    ]
    return "\n\n".join("\n".join([_row(head), _row(["---"] * len(head)), *rows]) for head, rows in tables if rows)


def write(results: Sequence[Result], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def machine() -> str:
    """Where the figures come from: without it they mean nothing."""
    python = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return f"{_processor()}, {os.cpu_count()} cores, {python}, {time.strftime('%Y-%m-%d')}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [text.partition(":")[2].strip() for text in lines if text.startswith("model name")]
    return names[0] if names else platform.machine()


def _cells(result: Result) -> tuple[str, ...]:
    if isinstance(result, Longest):
        return (result.bench, result.case, f"{result.nodes:,}", f"{result.ms:.1f} ms", f"{result.mb:.0f} MB", "", "")
    if isinstance(result, Memory):
        size = f"{result.mb:.1f} MB" if result.mb else f"{result.bytes:.0f} bytes"
        return (result.bench, result.case, f"{result.nodes:,}", size, "", "", "")
    times = (f"{result.us:.1f}", f"{result.kernel_us:.1f}", f"{result.ratio:.2f}", f"{result.median_ratio:.2f}")
    return (result.bench, result.case, f"{result.nodes:,}", *times)


def _line(cells: Sequence[str]) -> str:
    left = [f"{cell:<{width}}" for cell, width in zip(cells[:2], _WIDTHS, strict=False)]
    right = [f"{cell:>{width}}" for cell, width in zip(cells[2:], _WIDTHS[2:], strict=False)]
    return " ".join([*left, *right]).rstrip()


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _whose(judgement: Judgement) -> str:
    return judgement.case + (" (harder than promised)" if judgement.harder else "")
