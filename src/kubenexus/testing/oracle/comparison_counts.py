"""Counts comparisons: made, different, and impossible."""

from collections import Counter
from typing import Any, NamedTuple

import msgspec


class Key(NamedTuple):
    """What is counted together: the kind of case, the aspect, and the plugin (or "")."""

    kind: str
    aspect: str
    plugin: str = ""


class Difference(msgspec.Struct, frozen=True, gc=False):
    """One answer of ours that differs from Kubernetes', with its location and both answers."""

    key: Key
    case: str
    ours: str
    expected: str
    pod: str = ""
    node: str = ""


class ComparisonCounts:
    """The counts of one kind. All differences are counted, and the first `most` of each key are kept."""

    def __init__(self, kind: str, case: str = "", pod: str = "", most: int = 3) -> None:
        self.kind, self.case, self.pod, self.most = kind, case, pod, most
        self.held: Counter[Key] = Counter()
        self.compared: Counter[Key] = Counter()
        self.different: Counter[Key] = Counter()
        self.not_compared: Counter[Key] = Counter()
        self.because: Counter[str] = Counter()  # those not compared on purpose, by the reason
        self.differences: list[Difference] = []
        self.problems: list[str] = []

    def within(self, case: str, pod: str = "") -> "ComparisonCounts":
        """Returns empty counts for a part, which the caller adds when the part is done, or drops."""
        return ComparisonCounts(self.kind, case, pod, self.most)

    def compare(self, aspect: str, ours: Any, expected: Any, *, plugin: str = "", node: str = "") -> None:
        """Records one comparison."""
        key = Key(self.kind, aspect, plugin)
        self.compared[key] += 1
        if ours != expected:
            self.differs(key, ours, expected, node)

    def compare_nodes(
        self, aspect: str, ours: dict[str, Any], expected: dict[str, Any], *, nodes: int, plugin: str = ""
    ) -> None:
        """Records one comparison for each of `nodes` nodes. A node in neither table was accepted by both."""
        key = Key(self.kind, aspect, plugin)
        self.compared[key] += nodes
        if ours != expected:
            for node in sorted({*ours, *expected}):
                if ours.get(node) != expected.get(node):
                    self.differs(key, ours.get(node, "accepted"), expected.get(node, "accepted"), node)

    def leave(self, aspect: str, number: int = 1, *, plugin: str = "", because: str = "") -> None:
        """Records comparisons that cannot be made."""
        if number:
            self.not_compared[Key(self.kind, aspect, plugin)] += number
            if because:
                self.because[because] += number

    def differs(self, key: Key, ours: Any, expected: Any, node: str = "") -> None:
        self.different[key] += 1
        if self.different[key] <= self.most:
            found = Difference(key, self.case, shown(ours), shown(expected), self.pod, node)
            self.differences.append(found)

    def add(self, part: "ComparisonCounts") -> None:
        for mine, theirs in zip(self._counters(), part._counters(), strict=True):
            mine.update(theirs)
        self.because.update(part.because)
        kept = Counter(difference.key for difference in self.differences)
        for difference in part.differences:
            if kept[difference.key] < self.most:
                kept[difference.key] += 1
                self.differences.append(difference)
        self.problems += part.problems

    def _counters(self) -> tuple[Counter[Key], ...]:
        return self.held, self.compared, self.different, self.not_compared

    @property
    def unbalanced(self) -> list[Key]:
        """The keys for which compared and not compared do not add up to what the files hold."""
        keys = {*self.held, *self.compared, *self.not_compared}
        return sorted(key for key in keys if self.held[key] != self.compared[key] + self.not_compared[key])

    @property
    def agreed(self) -> bool:
        """Whether everything that could be compared was equal, and there was something to compare."""
        silent = not self.different.total() and not self.problems and not self.unbalanced
        return silent and self.compared.total() > 0


def shown(answer: Any) -> str:
    """Formats an answer on one line: sets and tables sorted, so that two runs print the same."""
    if isinstance(answer, (set, frozenset)):
        return "{" + ", ".join(sorted(map(shown, answer))) + "}"
    if isinstance(answer, dict):
        return "{" + ", ".join(f"{key}: {shown(answer[key])}" for key in sorted(answer)) + "}"
    if isinstance(answer, tuple):
        return " ".join(shown(part) for part in answer if part not in ("", None)) or "nothing"
    return "none" if answer is None else str(answer)
