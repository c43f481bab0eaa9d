"""Waits of pods and gangs as a table, and beside what was promised."""

from collections.abc import Iterator, Sequence

from bench.latency.load import Wait
from bench.latency.run import Latency
from bench.live.targets import Judgement

HEAD = ("jobs", "pods each", "how", "p50 ms", "p99 ms", "longest ms", "first create to last bind, s")
POD_P50, POD_P99 = 5.0, 15.0  # milliseconds
NUMA_P50, NUMA_P99 = 8.0, 25.0  # of pods that their kubelets align
P50, P99, LARGE = 50.0, 150.0, 1000.0
ON_TIME = 0.002  # seconds by which the load may be late
NEIGHBOURS = 2  # pods before and after one that were created on time, too


def table(found: Latency) -> str:
    """Markdown. Waits are from the creation of a job's last pod to its last bind."""
    plan = found.plan
    rows = [_cells(found.pods, 1, f"{plan.rate:g} a second")] if found.pods else []
    rows += [
        _cells(found.steady, plan.size, f"one every {plan.every:g} s"),
        _cells(found.large, plan.large, "one after the other"),
        _cells(found.rush, plan.size, "at once"),
    ]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (HEAD, ["---"] * len(HEAD), *rows))


def on_time(found: Latency) -> str:
    """The same figures for pods that the load created when it should have, as those before and after them. Where the
    load itself is late the machine had no processor for it, and the wait says little about the scheduler."""
    if not found.pods:
        return ""
    rate = found.plan.rate
    starts = [each.began - number / rate for number, each in enumerate(found.pods)]
    punctual = [start - min(starts) <= ON_TIME for start in starts]
    some = [
        each
        for number, each in enumerate(found.pods)
        if all(punctual[max(0, number - NEIGHBOURS) : number + NEIGHBOURS + 1])
    ]
    if not some:
        return "the load was late all the time"
    share = f"{len(some)} of {len(found.pods)} pods were created on time"
    return f"{share}: p50 {ms(some, 50):.1f} ms, p99 {ms(some, 99):.1f} ms"


def judge(found: Latency) -> Iterator[Judgement]:
    """In milliseconds."""
    steady, large = f"{found.plan.size} pods", f"{found.plan.large} pods"
    if found.pods:
        pods, single = f"{found.plan.rate:g} pods/s", "pod created to bound, ms:"
        p50, p99 = (NUMA_P50, NUMA_P99) if found.plan.numa else (POD_P50, POD_P99)
        yield Judgement(f"{single} p50 of {len(found.pods)}", pods, p50, ms(found.pods, 50))
        yield Judgement(f"{single} p99 of {len(found.pods)}", pods, p99, ms(found.pods, 99))
    what = "last pod created to all bound, ms:"
    yield Judgement(f"{what} p50 of {len(found.steady)} gangs", steady, P50, ms(found.steady, 50))
    yield Judgement(f"{what} p99 of {len(found.steady)} gangs", steady, P99, ms(found.steady, 99))
    yield Judgement(f"{what} the slowest of {len(found.large)}", large, LARGE, ms(found.large, 100))


def ms(waits: Sequence[Wait], percent: int) -> float:
    """The wait that so many percent did not exceed."""
    ordered = sorted(each.seconds for each in waits)
    return 1000 * ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _cells(waits: Sequence[Wait], size: int, how: str) -> list[str]:
    whole = max(each.bound for each in waits) - min(each.began for each in waits)
    figures = [f"{ms(waits, percent):.1f}" for percent in (50, 99, 100)]
    return [str(len(waits)), str(size), how, *figures, f"{whole:.2f}"]
