"""Formats the summary: tables of outcomes, and how to reproduce each violation."""

from collections.abc import Iterable, Iterator
from typing import Final

from kubenexus.testing.fuzz.results import FuzzResults, Violation

_MAX_FIELDS: Final = 40
_MAX_WAYS: Final = 15
_SHOWN: Final = 400


def report(tally: FuzzResults, seed: int, seconds: float) -> Iterator[str]:
    total = tally.objects.total()
    yield f"{total:,} objects, {tally.decisions.total():,} decisions, seed {seed}, {seconds:.0f} s"
    yield from _table("objects", ((*key, count) for key, count in sorted(tally.objects.items())))
    yield from _table("refused at", ((*key, count) for key, count in tally.refused.most_common(_MAX_FIELDS)))
    left = tally.refused.total() - sum(count for _, count in tally.refused.most_common(_MAX_FIELDS))
    yield f"  {'and at others':<76} {left:>9,}"
    yield from _table("decisions", ((name, "", count) for name, count in tally.decisions.most_common()))
    yield from _slowest(tally)
    yield ""
    for violation in tally.violations:
        yield from said(violation, seed, tally.broken[violation.law])
    yield f"violations: {tally.broken.total():,} of {len(tally.broken)} kinds" if tally.broken else "no violations"


def said(violation: Violation, seed: int, times: int) -> Iterator[str]:
    """Yields one violation: the invariant, the finding, the bytes (cut), and the command that reproduces it."""
    yield f"VIOLATION {violation.law} ({times:,} times)"
    yield f"    {violation.detail}"
    yield f"    {cut(violation.raw)}"
    yield f"    again: python -m kubenexus.testing.fuzz --seed {seed} --object {violation.number}"


def cut(raw: bytes) -> str:
    text = raw[:_SHOWN].decode("utf-8", "backslashreplace")
    return text if len(raw) <= _SHOWN else f"{text}... ({len(raw):,} bytes)"


def _table(title: str, rows: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    yield ""
    yield title
    for first, second, count in rows:
        yield f"  {first:<14} {second[:60]:<61} {count:>9,}" if second else f"  {first:<76} {count:>9,}"


def _slowest(tally: FuzzResults) -> Iterator[str]:
    """Sorts by calls, which are deterministic; times are for information only."""
    yield ""
    titles = ("objects", "most calls", "most ms", "object", "all s")
    yield f"{'slowest: hearing of an object, or deciding on it':<50}" + "".join(f"{title:>12}" for title in titles)
    ways = sorted(tally.slow.items(), key=lambda item: (item[1].calls, item[1].seconds), reverse=True)
    for way, slow in ways[:_MAX_WAYS]:
        numbers = (slow.objects, slow.calls, int(slow.seconds * 1000), slow.number, int(slow.total))
        yield f"  {way:<48}" + "".join(f"{number:>12,}" for number in numbers)
