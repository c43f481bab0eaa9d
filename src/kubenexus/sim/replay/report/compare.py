"""Two policies on the same arrivals: every figure of both, and their ratio."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

from kubenexus.sim.replay.report.tables import aligned
from kubenexus.sim.replay.runs import Result

_LEFT_OUT = frozenset({"trace", "policy", "seed", "digest", "decisions_per_s", "complete", "jobs", "pods"})


class Figure(NamedTuple):
    """A figure of both policies, in the mean over all runs that have it."""

    name: str
    own: float
    other: float

    @property
    def ratio(self) -> float | None:
        """Own over other; None if the other is 0 and the own is not."""
        if self.other:
            return self.own / self.other
        return None if self.own else 1.0

    def row(self) -> tuple[str, ...]:
        ratio = self.ratio
        return self.name, "", f"{self.own:.2f}", f"{self.other:.2f}", "-" if ratio is None else f"{ratio:.2f}x"


def figures(results: Sequence[Result], own: str, other: str) -> list[Figure]:
    """Returns the figures that both policies have."""
    found: dict[str, dict[str, list[float]]] = {own: {}, other: {}}
    for result in results:
        for name, number in flattened(result.as_json()).items():
            found[result.policy].setdefault(name, []).append(number)
    return [
        Figure(name, mean(numbers), mean(found[other][name]))
        for name, numbers in found[own].items()
        if name in found[other]
    ]


def flattened(line: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Returns the numbers of a line by their path: `wait.p95`, `wait.8.p95`, `allocated_at.100`.

    Those of all jobs stand under `wait` itself. How many jobs waited is no figure of a policy.
    """
    found: dict[str, float] = {}
    for key, value in line.items():
        if key in _LEFT_OUT:
            continue
        path = prefix if key == "all" else f"{prefix}.{key}".lstrip(".")
        if isinstance(value, Mapping):
            found |= flattened(value, path)
        elif isinstance(value, (int, float)):
            found[path] = float(value)
    return found


def comparison_table(found: Sequence[Figure], own: str, other: str) -> list[str]:
    """Returns the figures as lines."""
    return aligned([("figure", "", own, other, "ratio"), *(figure.row() for figure in found)])
