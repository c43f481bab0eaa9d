"""Contestants compared within each pair, since a machine is never the same twice; then the mean of the pairs."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bench.live.contestants import NULL, OURS, THEIRS
from bench.live.runs import Run


class Pair(NamedTuple):
    """The runs of one case and mode that were made one after the other."""

    ours: Run
    theirs: Run
    null: Run | None

    def pace(self, times: float, share: float) -> float:
        """Our pods a second, as a multiple of the lesser of two: `times` kube-scheduler's, a `share` of the null
        binder's."""
        limits = [times * self.theirs.rate] + ([share * self.null.rate] if self.null is not None else [])
        return self.ours.rate / min(limits)


def pairs(runs: Iterable[Run], case: str, mode: str) -> list[Pair]:
    """Those that are complete."""
    made: dict[int, dict[str, Run]] = {}
    for run in runs:
        if (run.case, run.mode) == (case, mode):
            made.setdefault(run.pair, {})[run.who] = run
    whole = [each for _, each in sorted(made.items()) if OURS in each and THEIRS in each]
    return [Pair(each[OURS], each[THEIRS], each.get(NULL)) for each in whole]


def mean(values: Iterable[float]) -> float:
    """The geometric one: of ratios there is no other."""
    logs = [math.log(max(value, 1e-9)) for value in values]
    return math.exp(sum(logs) / len(logs))


def compared(runs: list[Run], figure: Callable[[Run], float], case: str, mode: str) -> float | None:
    """Ours as a multiple of kube-scheduler's."""
    found = [figure(pair.ours) / max(figure(pair.theirs), 1e-9) for pair in pairs(runs, case, mode)]
    return mean(found) if found else None


def against_null(runs: list[Run], case: str, mode: str) -> float | None:
    """Our pods a second as a share of the null binder's."""
    found = [pair.ours.rate / pair.null.rate for pair in pairs(runs, case, mode) if pair.null is not None]
    return mean(found) if found else None


def kinds(runs: Iterable[Run]) -> Iterator[tuple[str, str]]:
    """Cases and modes, in the order in which they came."""
    yield from dict.fromkeys((run.case, run.mode) for run in runs)
