"""An event loop in virtual time: when nothing is ready its clock jumps to the next timer, so that a wait costs nothing.

It is asyncio's own loop without what it waits for: no sockets, no threads, no signals of its own. Tasks, timeouts,
semaphores and task groups are asyncio's and run unchanged. Timers of the same moment run in the order in which they
were set, which asyncio does not promise; nothing else decides an order, so a run can be repeated exactly.
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
    """Everybody waits and no timer is set: nothing will ever happen again."""


class _Timer(asyncio.TimerHandle):
    """A timer that knows its place among those of the same moment."""

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
    """What asyncio takes for a selector: where it would wait, time passes instead."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise DeadlockError("nothing is ready and nothing is planned")
        if timeout > 0:
            self.now += timeout
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """`time()` begins at 0. Whoever asks it for a socket, a thread or a process is refused."""

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
        """There are none: nothing comes from outside."""

    def _write_to_self(self) -> None:
        """Nobody has to be woken: we never wait."""


class LoopClock:
    """The time of a virtual loop as everybody else reads it: a `base.clock.Clock`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start: float = START) -> None:
        self._loop, self._start = loop, start

    def now(self) -> float:
        return self._start + self._loop.time()


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Runs a scenario in a virtual loop of its own. Ctrl-C ends it as it ends `asyncio.run`."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)
