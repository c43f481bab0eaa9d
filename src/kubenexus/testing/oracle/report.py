"""Formats the comparison: tables of counts, and the first differences with both answers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from kubenexus.testing.oracle.comparison_counts import ComparisonCounts, Difference, Key

Row = tuple[str, ...]
Fold = Callable[[Key], Row]


def report(tally: ComparisonCounts, *, detail: bool = False) -> Iterator[str]:
    """Yields all lines in order: each kind, all kinds together, differences, problems, the sum."""
    if tally.held:
        yield from _tables(tally, detail)
    yield from findings(tally)


def findings(tally: ComparisonCounts) -> Iterator[str]:
    """Yields the differences with both answers, the problems, and the sum."""
    for difference in tally.differences:
        yield from _difference(difference)
    for problem in tally.problems:
        yield f"problem: {problem}"
    yield from _balance(tally)


def _tables(tally: ComparisonCounts, detail: bool) -> Iterator[str]:
    by_kind: Fold = (lambda key: (key.kind, key.aspect, key.plugin)) if detail else _by_kind
    yield from table(("kind", *(("aspect", "plugin") if detail else ("plugin or aspect",))), tally, by_kind)
    yield ""
    yield from table(("all kinds", "plugin"), tally, lambda key: (key.aspect, key.plugin))
    yield ""


def _by_kind(key: Key) -> Row:
    """Groups all answers of a plugin in one row; answers without a plugin by aspect."""
    return key.kind, key.plugin or key.aspect


def table(titles: Row, tally: ComparisonCounts, fold: Fold) -> Iterator[str]:
    """Yields one line for each group of keys that `fold` maps to one row, and the sum."""
    compared, different, left = (
        _folded(counter, fold) for counter in (tally.compared, tally.different, tally.not_compared)
    )
    rows = sorted({*compared, *left})
    lines = [(*row, *_cells(compared[row], different[row], left[row])) for row in rows]
    sums = (tally.compared.total(), tally.different.total(), tally.not_compared.total())
    lines.append(("sum", *("" for _ in titles[1:]), *_cells(*sums)))
    return _aligned([(*titles, "compared", "different", "not compared"), *lines], len(titles))


def _folded(counter: Counter[Key], fold: Fold) -> Counter[Row]:
    folded: Counter[Row] = Counter()
    for key, number in counter.items():
        folded[fold(key)] += number
    return folded


def _cells(*numbers: int) -> Row:
    return tuple(f"{number:,}" for number in numbers)


def _aligned(rows: list[Row], words: int) -> Iterator[str]:
    """Aligns words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        padded = [cell.ljust(width) if i < words else cell.rjust(width) for i, (cell, width) in enumerate(cells)]
        yield "  ".join(padded).rstrip()


def _difference(found: Difference) -> Iterable[str]:
    where = [found.key.aspect, found.key.plugin, found.pod and f"pod {found.pod}", found.node and f"node {found.node}"]
    return (
        f"{found.case}: {', '.join(part for part in where if part)}",
        f"    ours:     {found.ours}",
        f"    expected: {found.expected}",
    )


def _balance(tally: ComparisonCounts) -> Iterator[str]:
    for key in tally.unbalanced:
        done = tally.compared[key] + tally.not_compared[key]
        yield f"problem: {' '.join(filter(None, key))}: held {tally.held[key]:,}, but accounted for {done:,}"
    for reason, number in sorted(tally.because.items()):
        yield f"not compared, {number:,}: {reason}"
    yield (
        f"held {tally.held.total():,}, compared {tally.compared.total():,}, "
        f"not compared {tally.not_compared.total():,}, different {tally.different.total():,}"
    )
