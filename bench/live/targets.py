"""What was promised, and whether these runs kept it. Printed, never an exit code: a time is not a test."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from bench.live.ratios import compared, kinds, mean, pairs
from bench.live.runs import Run

# By case: times kube-scheduler's, and the share of the null binder's that is enough.
PACES: Final = {
    "basic": (2.0, 0.75),
    "required-affinity": (5.0, 0.75),
    "anti-affinity": (5.0, 0.75),
    "spread": (5.0, 0.75),
    "preferred-affinity": (5.0, 0.75),
    "preemption": (10.0, 1.0),
    "claims": (3.0, 1.0),
    "gangs": (5.0, 0.7),
    "gangs-large": (5.0, 0.7),
    "gangs-rack": (5.0, 0.7),
    "gangs-preemption": (10.0, 1.0),
}
CPU: Final = {"basic": 0.25, "required-affinity": 0.1, "gangs": 0.15, "gangs-large": 0.15, "gangs-rack": 0.15}
MEMORY: Final = 0.5


class Judgement(NamedTuple):
    """`least`: the limit is one that has to be reached, not one to stay under."""

    what: str
    case: str
    limit: float
    found: float
    least: bool = False

    @property
    def kept(self) -> bool:
        return self.found >= self.limit if self.least else self.found <= self.limit


def judge(runs: list[Run]) -> Iterator[Judgement]:
    """Only what was measured."""
    yield from _paces(runs)
    for case, limit in CPU.items():
        found = compared(runs, lambda run: run.cpu["scheduler"], case, "drain")
        if found is not None:
            yield Judgement("drain: our CPU seconds for 1,000 pods, times kube-scheduler's", case, limit, found)
    for case in ("preemption", "gangs-preemption"):
        found = compared(runs, lambda run: run.evicted / run.pods, case, "drain")
        if found is not None:
            yield Judgement("drain: pods evicted for a pod, times kube-scheduler's", case, 1.0, found)
    yield from _waits(runs)
    found = compared(runs, lambda run: run.peak_mb, "basic", "drain")
    if found is not None:
        yield Judgement("drain: our peak memory, times kube-scheduler's", "basic", MEMORY, found)


def _paces(runs: list[Run]) -> Iterator[Judgement]:
    for case, (times, share) in PACES.items():
        made = pairs(runs, case, "drain")
        if made:
            what = f"drain: our pods/s, times the lesser of {times:g}x kube-scheduler and {share:g}x null binder"
            yield Judgement(what, case, 1.0, mean(pair.pace(times, share) for pair in made), least=True)


def _waits(runs: list[Run]) -> Iterator[Judgement]:
    figures: dict[str, Callable[[Run], float]] = {"p50": lambda run: run.p50, "p99": lambda run: run.p99}
    for case, mode in kinds(runs):
        for name, figure in figures.items() if mode == "burst" else ():
            found = compared(runs, figure, case, mode)
            if found is not None:
                yield Judgement(f"burst: our created-to-bound {name}, times kube-scheduler's", case, 1.0, found)
