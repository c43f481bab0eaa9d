"""Work is counted, not timed: the number of calls a step makes is the same on every machine.

What an object costs must grow with its length and no faster. Each step gets calls in proportion to its bytes and a flat
allowance for the cluster; a step that wants more is stopped there and then, for it might not end today.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

Answer = TypeVar("Answer")

ALLOWANCE: Final = 1_000_000
PER_BYTE: Final = 60


class TooMuchWork(BaseException):
    """Not an Exception, so that nobody on the way takes it for a fault of their own."""


def counted(step: Callable[[], Answer], length: int) -> tuple[Answer, int]:
    """The step's answer, and how many calls it made. `length` is that of the object in bytes."""
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
