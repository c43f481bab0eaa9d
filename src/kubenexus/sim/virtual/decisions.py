"""The decision log: one line for each decision, with the virtual time, the pods and their nodes, or the reason.

Two runs with the same seed have the same log, byte for byte; the fingerprint is a short way to compare them.
"""

import hashlib
from collections.abc import Callable

from kubenexus.framework.decision import Decision

Write = Callable[[str], object]


class DecisionLog:
    """Records decisions. `write`, if set, is called with each line."""

    def __init__(self, write: Write | None = None) -> None:
        self._write = write
        self._digest = hashlib.sha256()
        self.placed = self.refused = 0  # pods, jobs

    @property
    def fingerprint(self) -> str:
        return self._digest.hexdigest()[:16]

    def record(self, decision: Decision, seconds: float) -> None:
        for line in _lines(decision, seconds):
            self._digest.update(line.encode())
            if self._write is not None:
                self._write(line)
        self.placed += len(decision.placements)
        self.refused += not decision.placements


def _lines(decision: Decision, seconds: float) -> list[str]:
    if decision.placements:
        return [f"{seconds:.6f} {each.pod} -> {each.node}\n" for each in decision.placements]
    return [f"{seconds:.6f} {decision.job} refused: {decision.sentence()}\n"]
