"""The event that wakes the scheduling loop."""

import asyncio
import contextlib


class Wakeup:
    """Set by all that gives the scheduling loop work: watches, bind results, the dispatcher, periodic tasks."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self, seconds: float) -> None:
        """Returns when `set` was called since the last `clear`, or after `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
