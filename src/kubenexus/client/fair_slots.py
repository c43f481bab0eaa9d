"""`FairSlots`: a `FairQueue` of coroutines that wait for a slot."""

import asyncio
from collections.abc import Callable

from kubenexus.client.fair_queue import FIRST_CALLS, CallInFlight, FairQueue


class FairSlots:
    """Slots of a `FairQueue`. A coroutine awaits `acquire`, and calls `release` with the slot afterwards."""

    def __init__(
        self,
        limit: int,
        *,
        first: int = FIRST_CALLS,
        trials: bool = True,
        delay: Callable[[], float] = lambda: 0.0,
        changed: Callable[[], None] = lambda: None,
        speed_changed: Callable[[str], None] = lambda namespace: None,
    ) -> None:
        self._changed, self._serving = changed, False
        self.queue = FairQueue[asyncio.Future["Slot"] | None](
            limit, first=first, trials=trials, delay=delay, changed=self._serve, speed_changed=speed_changed
        )

    async def acquire(self, namespace: str) -> "Slot":
        slot = self.queue.begin(namespace, None)
        if slot is not None:
            return slot
        waiter: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        self.queue.put(namespace, waiter, waiter)
        try:
            return await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                self.queue.done(waiter.result(), sent=False)
            else:
                self.queue.remove(namespace, waiter)
            raise

    def release(self, slot: "Slot", *, answered: bool = True) -> None:
        self.queue.done(slot, sent=answered)

    def _serve(self) -> None:
        """Hands free slots to coroutines that wait. Not recursively: a thousand calls may have been cancelled at once,
        and the end of each calls this."""
        if self._serving:
            return
        self._serving = True
        try:
            while (slot := self.queue.next()) is not None:
                waiter = slot.item
                if waiter is None or waiter.done():  # its call was cancelled
                    self.queue.done(slot, sent=False)
                else:
                    waiter.set_result(slot)
        finally:
            self._serving = False
        self._changed()


Slot = CallInFlight[asyncio.Future["Slot"] | None]
