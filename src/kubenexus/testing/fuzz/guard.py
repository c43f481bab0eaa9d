"""Runs each step and records every exception that must not escape from it; the run then continues.

After a fault the object counts as refused: a run of a hundred thousand objects shall show all faults, not only the
first.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from kubenexus.api.core import Pod
from kubenexus.testing.fuzz.call_counting import TooMuchWork, counted
from kubenexus.testing.fuzz.results import FuzzResults
from kubenexus.testing.fuzz.stream import FuzzEvent

LARGE: Final = 4096  # bytes from which on every step is counted; smaller objects are sampled
SAMPLE: Final = 32


class ExceptionGuard:
    """Attributes faults to the current event."""

    def __init__(self) -> None:
        self.tally = FuzzResults()
        self.event = FuzzEvent(-1, Pod, b"")
        self._calls = 0

    def guarded(self, step: str, act: Callable[[], Any], *, passing: Any = (), length: int = 0) -> Any:
        """Returns the result of `act`, or None if it raised an exception that is not in `passing`."""
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
        """Records a violation of `law`, unless `wrong` is ""."""
        if wrong:
            self.tally.violation(self.event.number, f"{law}: {wrong.partition(':')[0][:60]}", wrong, self.event.raw)

    def spent(self, way: str, begin: float) -> None:
        """Adds calls and time since `begin` to the costs of this mutation."""
        self.tally.cost(way, self.event.number, self._calls, time.perf_counter() - begin)
        self._calls = 0
