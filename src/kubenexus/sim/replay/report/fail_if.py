"""Conditions on results, for continuous integration: `wait.p95 > 1.05x`, `utilisation < 80`."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.replay.report.compare import Figure

_CONDITION = re.compile(r"\s*([a-z_]+(?:\.[\w.-]+)?)\s*(<=|>=|<|>)\s*(\d{1,12}(?:\.\d{1,9})?)(x?)\s*")


class Condition(NamedTuple):
    """A figure that must not be above or below a limit: a number, or with `x` so many times that of the other."""

    text: str
    figure: str
    operator: str
    limit: float
    relative: bool

    def holds(self, figure: Figure) -> bool:
        limit = self.limit * figure.other if self.relative else self.limit
        return {
            "<": figure.own < limit,
            "<=": figure.own <= limit,
            ">": figure.own > limit,
            ">=": figure.own >= limit,
        }[self.operator]

    def check(self, found: Sequence[Figure]) -> str:
        """Returns why the comparison fails, "" if it does not. Raises KubeNexusError for an unknown figure."""
        named = {figure.name: figure for figure in found}
        if self.figure not in named:
            raise KubeNexusError(f"--fail-if {self.text!r}: no figure {self.figure!r}; known: {', '.join(named)}")
        figure = named[self.figure]
        if not self.holds(figure):
            return ""
        return f"{self.text}: {self.figure} is {figure.own:g}, that of the other policy {figure.other:g}"


def parse_condition(text: str) -> Condition:
    """Returns the condition that a text describes. Raises KubeNexusError."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise KubeNexusError(f"--fail-if {text!r}: expected FIGURE <|<=|>|>= NUMBER[x], such as 'wait.p95 > 1.05x'")
    figure, operator, limit, times = found.groups()
    return Condition(text.strip(), figure, operator, float(limit), times == "x")
