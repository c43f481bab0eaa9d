"""How the calls of preemptions take turns: between preemptions, and within one."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from kubenexus.client.fair_slots import FairSlots, Slot

CALLS: Final = 8  # calls in flight of one preemption


class CallTurn:
    """A slot of `FairSlots`, which is given back while the calls of a preemption wait."""

    def __init__(self, slots: FairSlots, namespace: str) -> None:
        self._slots, self._namespace = slots, namespace
        self._slot: Slot | None = None

    async def begin(self) -> None:
        slot = await self._slots.acquire(self._namespace)
        if self._slot is None:
            self._slot = slot
        else:  # another call of the preemption waited, too
            self._slots.release(slot)

    async def pause(self, seconds: float) -> None:
        self.end()
        await asyncio.sleep(seconds)
        await self.begin()

    def end(self) -> None:
        slot, self._slot = self._slot, None
        if slot is not None:
            self._slots.release(slot)


async def in_portions(items: Iterable[Any], call: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Awaits a call for each item: first one, then two at a time, up to `CALLS`. Raises the first error once its
    portion is over. So a preemption that ends after its first eviction has evicted one pod."""
    left, size = list(items), 1
    while left:
        portion, left, size = left[:size], left[size:], min(size * 2, CALLS)
        results = await asyncio.gather(*(call(item) for item in portion), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
