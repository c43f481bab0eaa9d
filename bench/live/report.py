"""Runs as lines while they are made, and as tables when they are done."""

from collections.abc import Iterable, Sequence
from typing import Final

from bench.live.contestants import CONTESTANTS
from bench.live.ratios import against_null, compared, kinds, mean
from bench.live.runs import Run
from bench.live.targets import Judgement

RUN_HEAD: Final = (
    "case", "mode", "who", "pods", "pods/s", "CPU s per 1,000: own", "API server", "etcd",
    "calls per pod", "kB per pod", "peak MB", "p50 s", "p99 s",
)  # fmt: skip
RATIO_HEAD: Final = (
    "case",
    "mode",
    "pods/s",
    "of the null binder's",
    "own CPU",
    "calls",
    "bytes",
    "memory",
    "p50",
    "p99",
)
TARGET_HEAD: Final = ("target", "case", "limit", "measured", "kept")


def line(run: Run) -> str:
    """As it goes."""
    told = f"{run.rate:6.0f} pods/s (first after {run.first:.1f} s), {run.cpu['scheduler']:.2f} CPU s per 1,000"
    asked = f"{sum(run.calls.values()):.2f} calls and {sum(run.bytes.values()) / 1000:.1f} kB a pod"
    waits = f"p50 {run.p50:.2f} s, p99 {run.p99:.2f} s"
    waits += f"; {run.scattered} gangs not in one rack" if run.scattered else ""
    waits += f"; {run.evicted} pods evicted" if run.evicted else ""
    return f"{run.case:<18} {run.mode} {run.pair + 1}  {run.who:<14} {told}, {asked}, {run.peak_mb:.0f} MB, {waits}"


def verdicts(judgements: Iterable[Judgement]) -> str:
    """The promises with their marks."""
    lines = [
        f"  {'pass' if each.kept else 'FAIL'}  {each.what:<84} {each.found:>7.2f} "
        f"{'at least' if each.least else 'at most '} {each.limit:<5g} {each.case}"
        for each in judgements
    ]
    return "\n".join(["Targets (of this run; a figure, not a test):", *lines]) if lines else ""


def tables(runs: Sequence[Run], judgements: Iterable[Judgement]) -> str:
    """Markdown: the means of the pairs, ours against kube-scheduler's, and the promises."""
    kept = [_kept(each) for each in judgements]
    parts = [(RUN_HEAD, _means(runs)), (RATIO_HEAD, _ratios(list(runs))), (TARGET_HEAD, kept)]
    return "\n\n".join("\n".join([_row(head), _row(["---"] * len(head)), *rows]) for head, rows in parts if rows)


def _means(runs: Sequence[Run]) -> list[str]:
    return [
        _row(_cells(made))
        for case, mode in kinds(runs)
        for who in CONTESTANTS
        if (made := [run for run in runs if (run.case, run.mode, run.who) == (case, mode, who)])
    ]


def _cells(made: list[Run]) -> list[str]:
    """Of runs that differ only in their number."""
    one = made[0]
    cpu = [f"{mean(run.cpu[name] for run in made):.2f}" for name in ("scheduler", "kube-apiserver", "etcd")]
    asked = [
        f"{mean(sum(run.calls.values()) for run in made):.2f}",
        f"{mean(sum(run.bytes.values()) for run in made) / 1000:.1f}",
    ]
    waits = [f"{mean(run.p50 for run in made):.2f}", f"{mean(run.p99 for run in made):.2f}"]
    rate, peak = f"{mean(run.rate for run in made):.0f}", f"{mean(run.peak_mb for run in made):.0f}"
    return [one.case, one.mode, one.who, f"{one.pods:,}", rate, *cpu, *asked, peak, *waits]


def _ratios(runs: list[Run]) -> list[str]:
    return [_row([case, mode, *_ratio(runs, case, mode)]) for case, mode in kinds(runs)]


def _ratio(runs: list[Run], case: str, mode: str) -> list[str]:
    pace = [compared(runs, lambda run: run.rate, case, mode), against_null(runs, case, mode)]
    others = [
        compared(runs, figure, case, mode)
        for figure in (
            lambda run: run.cpu["scheduler"],
            lambda run: sum(run.calls.values()),
            lambda run: sum(run.bytes.values()),
            lambda run: run.peak_mb,
            lambda run: run.p50,
            lambda run: run.p99,
        )
    ]
    return ["" if found is None else f"{found:.2f}" for found in (*pace, *others)]


def _kept(each: Judgement) -> str:
    limit = f"{'at least' if each.least else 'at most'} {each.limit:g}"
    return _row([each.what, each.case, limit, f"{each.found:.2f}", "yes" if each.kept else "**no**"])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
