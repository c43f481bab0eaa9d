"""Waiting in tests: for a condition or for turns of the loop, never for a clock; a slow machine is then only slow."""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from kubenexus.base.clock import VirtualClock

# Real seconds after which a test hangs. Long: on a machine with much other work a process may not run for a minute.
HANGS = 300.0


async def wait_until(condition: Callable[[], object]) -> None:
    """Lets everybody else work until it holds."""
    async with asyncio.timeout(HANGS):
        while not condition():
            await asyncio.sleep(0)


async def yield_to_loop(count: int = 50) -> None:
    """Lets everybody else work: more turns than anything under way needs to go as far as it can without us.

    What is sent over a socket of this machine is there at the receiver's next turn.
    """
    for _ in range(count):
        await asyncio.sleep(0)


class FakeSleep:
    """Hand out `sleep`; whoever sleeps wakes when `advance` has moved the clock that far, the earliest first."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock(100.0)
        self.sleeping: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    async def sleep(self, seconds: float) -> None:
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self.sleeping, (self.clock.now() + seconds, next(self._numbers), waking))
        await waking

    async def advance(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        while self.sleeping and self.sleeping[0][0] <= end + 1e-9:
            due, _, waking = heappop(self.sleeping)
            self.clock.advance_to(max(due, self.clock.now()))
            if not waking.done():
                waking.set_result(None)
                await yield_to_loop(2)
        self.clock.advance_to(max(end, self.clock.now()))
