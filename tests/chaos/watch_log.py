"""One watch on its way through the proxy: line by line, one fault after the other."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from tests.chaos import http_messages
from tests.chaos.faults import Fault
from tests.chaos.request_log import Asked

if TYPE_CHECKING:
    from tests.chaos.proxy import Proxy

REMEMBERED = 64  # lines that may be replayed
QUIET = 10  # lines without a fault, where the plan has none


class WatchLog:
    """Made for each watch, once the API server has answered."""

    def __init__(self, proxy: "Proxy", asked: Asked, writer: asyncio.StreamWriter) -> None:
        self._proxy, self._asked, self._writer = proxy, asked, writer
        self._recent: list[bytes] = []
        self._slow, self._pause = 0, 0.0  # so many more lines are late, by so many seconds
        self.held = False  # until all is calm

    async def follow(self, reader: asyncio.StreamReader, fault: Fault | None) -> None:
        """To its end. After a fault that it survives, the plan has the next one. Raises HungUp."""
        left = QUIET if fault is None else fault.after
        async for line in http_messages.lines(reader):
            if not self._proxy.calmed.is_set():
                self._recent = [*self._recent[-REMEMBERED:], line]
                left -= 1
                if left == 0:
                    if fault is not None:
                        await self._disturb(fault)
                    fault = self._proxy.plan.next(self._asked.sort)
                    left = QUIET if fault is None else fault.after
                await self._late()
            if self.held:
                await self._proxy.calmed.wait()
            self._tell(line)
            await self._writer.drain()
        self._writer.write(http_messages.LAST_CHUNK)

    def end(self) -> None:
        """The connection to the scheduler breaks off."""
        self._writer.transport.abort()

    async def _disturb(self, fault: Fault) -> None:
        """Before the last of the recent lines is passed on. What refuses a watch at its beginning is too late here."""
        kind, journal = fault.kind, self._proxy.journal
        if kind[-3:].isdigit():
            return
        self._asked.fault = kind
        journal.struck[kind] += 1
        if kind == "watch-cut":
            await self._end(http_messages.chunk(self._recent[-1])[: len(self._recent[-1]) * 2 // 3])
        elif kind == "watch-gone":
            await self._end(
                http_messages.chunk(http_messages.error_event(http_messages.GONE)) + http_messages.LAST_CHUNK
            )
        elif kind == "watch-freeze":
            await self._wait(fault.seconds)
        elif kind == "watch-slow":
            self._slow, self._pause = fault.lines, fault.seconds
        else:
            for old in self._recent[-fault.lines - 1 : -1]:
                self._writer.write(http_messages.chunk(old))

    async def _end(self, last: bytes) -> None:
        self._writer.write(last)
        await self._writer.drain()
        raise http_messages.HungUp

    async def _late(self) -> None:
        if self._slow:
            self._slow -= 1
            await self._wait(self._pause)

    async def _wait(self, seconds: float) -> None:
        """So long, or until all is calm."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._proxy.calmed.wait()

    def _tell(self, line: bytes) -> None:
        if self._asked.sort == "watch pods":
            self._proxy.journal.tell(self._asked.who, line, self._proxy.clock.now())
        self._writer.write(http_messages.chunk(line))
