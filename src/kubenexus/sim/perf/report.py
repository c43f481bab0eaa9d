"""Formats results: a table of the workloads that ran, and a list of the others with the reason."""

import hashlib
from collections.abc import Sequence

from kubenexus.sim.perf.workload_run import Result

_HEAD = ("workload", "nodes", "scheduled/must", "virtual s", "real s", "pods/s", "")
_LEFT = (0, 6)


def table(results: Sequence[Result]) -> list[str]:
    """Returns one line for each workload that ran, in aligned columns."""
    rows = [_HEAD, *(_row(each) for each in results if not each.lacking)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return ["  ".join(_cells(row, widths)).rstrip() for row in rows]


def not_played(results: Sequence[Result]) -> list[str]:
    """Returns the names and reasons of workloads that did not run."""
    return [f"{each.name}: needs {', '.join(each.lacking)}" for each in results if each.lacking]


def failures(results: Sequence[Result]) -> list[str]:
    return [f"{each.name}: {each.problem}" for each in results if each.problem]


def summary(results: Sequence[Result]) -> str:
    played = [each for each in results if not each.lacking]
    failed = sum(1 for each in played if each.failed)
    pods, seconds = sum(each.placed for each in played), sum(each.real for each in played)
    ended = f"{len(played) - failed} of {len(played)} workloads ended as they must"
    rate = f", {pods} pods in {seconds:.1f} s" if played else ""
    return f"{ended}{rate}; {len(results) - len(played)} not played; decisions {fingerprint(results)}"


def fingerprint(results: Sequence[Result]) -> str:
    """Returns a hash of all decisions of all workloads: equal for equal files, code and seed."""
    digest = hashlib.sha256()
    for each in results:
        digest.update(f"{each.name} {each.fingerprint}\n".encode())
    return digest.hexdigest()[:16]


def line(result: Result) -> str:
    """Returns the result of one workload in one line, for progress output."""
    if result.lacking:
        return f"{result.name}: not played, needs {', '.join(result.lacking)}"
    told = f": {result.problem}" if result.problem else ""
    state = "FAILED" if result.failed else "ok"
    return f"{result.name}: {state}, {result.got}/{result.wanted} scheduled in {result.virtual:.3f} s{told}"


def _row(result: Result) -> tuple[str, ...]:
    rate = result.placed / result.real if result.real else 0.0
    return (
        result.name,
        str(result.nodes),
        f"{result.got}/{result.wanted}",
        f"{result.virtual:.3f}",
        f"{result.real:.2f}",
        f"{rate:.0f}",
        "FAILED" if result.failed else "ok",
    )


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.ljust(width) if index in _LEFT else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
