"""The outcomes of a fuzz run, and the violations."""

import re
import traceback
from collections import Counter
from typing import Final

import msgspec

_MAX_KEPT: Final = 200


class Slow(msgspec.Struct):
    """The worst of one mutation: in calls (counted on a sample) and in seconds (for information), and the total
    seconds."""

    objects: int = 0
    calls: int = 0
    seconds: float = 0.0
    number: int = -1
    total: float = 0.0


class Violation(msgspec.Struct, frozen=True):
    """A violated invariant, with the object's number and bytes. `law` is equal for equal faults."""

    number: int
    law: str
    detail: str
    raw: bytes


class FuzzResults:
    def __init__(self) -> None:
        self.objects: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[tuple[str, str]] = Counter()
        self.decisions: Counter[str] = Counter()
        self.slow: dict[str, Slow] = {}
        self.violations: list[Violation] = []
        self.broken: Counter[str] = Counter()

    def outcome(self, way: str, outcome: str) -> None:
        self.objects["good" if way == "good" else "hostile", outcome] += 1

    def refusal(self, kind: str, field: str, problem: str) -> None:
        self.refused[kind, _shape(field) or f"({_shape(problem.split(':', maxsplit=1)[0])[:40]})"] += 1

    def cost(self, way: str, number: int, calls: int, seconds: float) -> None:
        slow = self.slow.setdefault(way, Slow())
        slow.objects += 1
        slow.total += seconds
        slow.calls = max(slow.calls, calls)
        if seconds > slow.seconds:
            slow.seconds, slow.number = seconds, number

    def violation(self, number: int, law: str, detail: str, raw: bytes) -> None:
        """Keeps the first violation of each law, since one fault may occur a thousand times."""
        self.broken[law] += 1
        if self.broken[law] == 1 and len(self.violations) < _MAX_KEPT:
            self.violations.append(Violation(number, law, detail, raw))

    def escaped(self, number: int, step: str, error: BaseException, raw: bytes) -> None:
        """Records an exception that must not escape, identified by where it was raised."""
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "kubenexus" in frame.filename and "testing" not in frame.filename]
        at = ours[-1] if ours else frames[-1]
        place = f"{at.filename.rpartition('kubenexus/')[2]}:{at.lineno}"
        self.violation(number, f"{step}: {type(error).__name__} escaped from {place}", str(error)[:300], raw)


def _shape(field: str) -> str:
    """Returns a path without indexes and keys, which differ between objects."""
    return re.sub(r"\[[^\]]*\]?", "[]", field[:300])
