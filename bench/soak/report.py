"""A soak in words, as a table and as a picture."""

from typing import NamedTuple

from bench.soak.picture import Line, Panel, drawn
from bench.soak.samples import QUEUES, Sample

LIMIT = 1.05
ROWS = 20
HEAD = ("s", "pods", "memory, MB", "longest lag, ms", "active", "backoff", "unschedulable", "known pods", "nodes")


class Plan(NamedTuple):
    """What is to be done; `pods` in two halves. Times are in seconds."""

    server: str
    nodes: int
    pods: int
    alive: int  # pods at a time
    job: int  # pods that are alike
    every: float  # between two samples
    rest: float  # after each half, for the last events


class Soak(NamedTuple):
    """What came of it. `halves` were taken when each half was over and the cluster empty."""

    plan: Plan
    flaps: int
    samples: list[Sample]
    halves: list[Sample]

    @property
    def growth(self) -> float:
        """Memory after the second half, as a multiple of that after the first."""
        first, second = self.halves
        return second.rss_mb / first.rss_mb

    @property
    def kept(self) -> bool:
        return self.growth <= LIMIT


def verdict(soak: Soak) -> str:
    if len(soak.halves) < 2:
        return "not finished"
    first, second = soak.halves
    mark = "pass" if soak.kept else "FAIL"
    sizes = f"{first.rss_mb:.1f} MB after {first.done:,} pods, {second.rss_mb:.1f} MB after {second.done:,}"
    return f"{mark}  memory after the second half {soak.growth:.3f} of {LIMIT:g} times the first: {sizes}"


def markdown(soak: Soak) -> str:
    """About twenty rows, evenly spaced, and the last."""
    step = max(1, len(soak.samples) // ROWS)
    chosen = [*soak.samples[:-1:step], soak.samples[-1]]
    rows = [_row(HEAD), _row(["---:"] * len(HEAD)), *(_row(_cells(each)) for each in chosen)]
    return "\n".join(rows)


def picture(soak: Soak) -> str:
    """Memory, lag and queues over time, as SVG."""
    at = [each.seconds for each in soak.samples]
    memory = Line("resident", [each.rss_mb for each in soak.samples])
    lag = Line("longest in each interval", [each.lag_ms for each in soak.samples])
    queues = [Line(queue, [float(each.queues[queue]) for each in soak.samples]) for queue in QUEUES[:3]]
    marks = [each.seconds for each in soak.halves]
    panels = [Panel("memory, MB", [memory]), Panel("loop lag, ms", [lag]), Panel("pods that wait", queues)]
    return drawn(f"{soak.plan.pods:,} pods on {soak.plan.nodes:,} nodes", at, panels, marks)


def _cells(each: Sample) -> list[str]:
    queues = [f"{each.queues[queue]:,}" for queue in QUEUES[:3]]
    process = [f"{each.rss_mb:.1f}", f"{each.lag_ms:.0f}"]
    return [f"{each.seconds:.0f}", f"{each.done:,}", *process, *queues, f"{each.known_pods:,}", str(each.known_nodes)]


def _row(cells: "list[str] | tuple[str, ...]") -> str:
    return "| " + " | ".join(cells) + " |"
