"""Nothing may come out of an entry point but an answer: whatever else does is written down, and the run goes on.

After a fault the object counts as refused: a hundred thousand objects shall show all faults, not the first.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from kubenexus.api.core import Pod
from kubenexus.testing.fuzz.call_counting import TooMuchWork, counted
from kubenexus.testing.fuzz.results import FuzzResults
from kubenexus.testing.fuzz.stream import FuzzEvent

LARGE: Final = 4096  # bytes from which on every step is counted; of smaller objects, one in a few
SAMPLE: Final = 32


class ExceptionGuard:
    """Knows the event that is being told, and blames it."""

    def __init__(self) -> None:
        self.tally = FuzzResults()
        self.event = FuzzEvent(-1, Pod, b"")
        self._calls = 0

    def guarded(self, step: str, act: Callable[[], Any], *, passing: Any = (), length: int = 0) -> Any:
        """The act's answer, or None if something came out of it that must not. `passing` may."""
        raw, number = self.event.raw, self.event.number
        length = length or len(raw)
        try:
            if length < LARGE and number % SAMPLE:
                return act()
            answer, calls = counted(act, length)
        except passing:
            raise
        except TooMuchWork as error:
            self.tally.violation(number, f"{step}: too much work", str(error), raw)
            return None
        except Exception as error:
            self.tally.escaped(number, step, error, raw)
            return None
        self._calls += calls
        return answer

    def broken(self, law: str, wrong: str) -> None:
        """A law said what is wrong, if anything."""
        if wrong:
            self.tally.violation(self.event.number, f"{law}: {wrong.partition(':')[0][:60]}", wrong, self.event.raw)

    def spent(self, way: str, begin: float) -> None:
        """What was done since `begin` is on this way's account."""
        self.tally.cost(way, self.event.number, self._calls, time.perf_counter() - begin)
        self._calls = 0
