"""An event loop in virtual time: when no task is ready its clock jumps to the next timer, so that waiting costs
nothing.

It is asyncio's own loop without sockets, threads and signals. Tasks, timeouts, semaphores and task groups are asyncio's
and run unchanged. Timers of the same moment run in the order in which they were set, which asyncio does not guarantee.
Nothing else decides an order, so a run can be repeated exactly.
"""

import asyncio
import contextvars
import heapq
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from kubenexus.base.errors import KubeNexusError

T = TypeVar("T")
START = 1767225600.0  # 2026-01-01T00:00:00Z: every simulation begins on the same day
_RESOLUTION = 1e-6  # timers closer than this are of the same moment; a double holds years of such moments


class DeadlockError(KubeNexusError):
    """All tasks wait and no timer is set: the loop could never continue."""


class _Timer(asyncio.TimerHandle):
    """A timer with a sequence number, which orders timers of the same moment."""

    def __init__(
        self,
        order: tuple[float, int],
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None,
    ) -> None:
        super().__init__(order[0], callback, args, loop, context)
        self._order = order

    def __lt__(self, other: object) -> bool:
        assert isinstance(other, _Timer)
        return self._order < other._order


class _Leap:
    """Stands in for asyncio's selector: instead of waiting it advances the time."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise DeadlockError("nothing is ready and nothing is planned")
        if timeout > 0:
            self.now += timeout
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """`time()` begins at 0. Sockets, threads and processes are not available."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Leap()
        self._clock_resolution = _RESOLUTION
        self._timers = 0

    def time(self) -> float:
        return self._selector.now

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check_closed()  # type: ignore[attr-defined]
        self._timers += 1
        timer = _Timer((when, self._timers), callback, args, self, context)
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> NoReturn:  # type: ignore[override]
        raise RuntimeError(f"no threads in virtual time: {getattr(func, '__qualname__', func)} wants one")

    def _process_events(self, event_list: list[Any]) -> None:
        """Does nothing: there are no events from outside."""

    def _write_to_self(self) -> None:
        """Does nothing: the loop never waits, so it needs no wake-up."""


class LoopClock:
    """The time of a virtual loop as a `base.clock.Clock`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start: float = START) -> None:
        self._loop, self._start = loop, start

    def now(self) -> float:
        return self._start + self._loop.time()


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Runs a scenario in a virtual loop of its own. Ctrl-C ends it as it ends `asyncio.run`."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)
