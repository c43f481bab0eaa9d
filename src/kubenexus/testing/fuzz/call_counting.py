"""Counts calls instead of time: the number of calls of a step is the same on every machine.

The cost of an object may grow only in proportion to its length. Each step may make calls in proportion to its bytes,
plus a flat allowance for the cluster. A step that exceeds this is stopped at once, because it might not end.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

Answer = TypeVar("Answer")

ALLOWANCE: Final = 1_000_000
PER_BYTE: Final = 60


class TooMuchWork(BaseException):
    """Derives from BaseException, so that no handler on the way catches it as an ordinary error."""


def counted(step: Callable[[], Answer], length: int) -> tuple[Answer, int]:
    """Returns the step's result and how many calls it made. `length` is that of the object in bytes. Raises
    TooMuchWork."""
    calls, most = 0, ALLOWANCE + PER_BYTE * length

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1
            if calls > most:
                raise TooMuchWork(f"more than {most:,} calls for an object of {length:,} bytes")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return step(), calls
    finally:
        sys.setprofile(before)
