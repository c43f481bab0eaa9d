"""One connection of a scheduler, passed on to the API server request by request, with the faults of the plan."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from tests.chaos import http_messages
from tests.chaos.faults import Fault
from tests.chaos.http_messages import HungUp
from tests.chaos.request_log import VERSION, Asked
from tests.chaos.watch_log import WatchLog

if TYPE_CHECKING:
    from tests.chaos.proxy import Proxy

Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LIVE_PODS = "/api/v1/pods?"


class ProxiedConnection:
    """Made for each connection. A fault that hangs up ends it; the scheduler will make another."""

    def __init__(self, proxy: "Proxy", who: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy, self._who, self._reader, self._writer = proxy, who, reader, writer
        self._pipe: Pipe | None = None

    async def run(self) -> None:
        """Until either side hangs up."""
        # RuntimeError is uvloop's word for a write on a connection that has just been closed.
        broken = (HungUp, OSError, EOFError, RuntimeError, asyncio.LimitOverrunError, ValueError)
        try:
            while True:
                await self._pass_on(await http_messages.read_request(self._reader))
        except broken:
            pass
        finally:
            self._writer.transport.abort()
            if self._pipe is not None:
                self._pipe[1].transport.abort()

    # --- one request ----------------------------------------------------------------------------------------------

    async def _pass_on(self, request: http_messages.Request) -> None:
        asked = self._proxy.asked(self._who, request)
        if self._proxy.is_deaf_to(asked):
            raise HungUp
        if how := self._proxy.broken(asked):
            await self._break(asked, how)
            return
        fault = None if self._proxy.calmed.is_set() else self._proxy.plan.next(asked.sort)
        if asked.sort.startswith("watch"):
            await self._watch(request, asked, fault)
        elif fault is None:
            await self._reply(asked, *await self._exchange(request, asked))
        else:
            await self._faulty(request, asked, fault)

    async def _faulty(self, request: http_messages.Request, asked: Asked, fault: Fault) -> None:
        self._struck(asked, fault)
        if fault.kind.isdigit():
            await self._refuse(asked, int(fault.kind))
        elif fault.kind == "drop":
            raise HungUp
        elif fault.kind == "delay":
            await self._delay(request, asked, fault.seconds)
        else:
            head, body = await self._exchange(request, asked)
            if fault.kind == "deaf":
                raise HungUp
            if fault.kind == "500-done":
                await self._refuse(asked, 500)
            else:
                await self._cut(http_messages.answer(head, body))

    async def _break(self, asked: Asked, how: str) -> None:
        """The answer of a kind that cannot be read."""
        self._proxy.journal.struck[f"broken kind: {how}"] += 1
        if how == "hang":
            await self._reader.read(1)  # until the scheduler hangs up
            raise HungUp
        if how == "garbage":
            asked.code = 200
            self._writer.write(http_messages.json_answer(200, b'{"kind": "List", "items": [{"metadata": 7'))
            await self._writer.drain()
            return
        await self._refuse(asked, int(how))

    async def _delay(self, request: http_messages.Request, asked: Asked, seconds: float) -> None:
        """Passed on even if the scheduler has given up meanwhile: the network has it."""
        await asyncio.sleep(seconds)
        await self._reply(asked, *await self._exchange(request, asked, patient=True))

    async def _cut(self, answer: bytes) -> None:
        self._writer.write(answer[: len(answer) * 2 // 3])
        await self._writer.drain()
        raise HungUp

    async def _refuse(self, asked: Asked, code: int) -> None:
        asked.code = code
        self._writer.write(http_messages.refusal(code))
        await self._writer.drain()

    async def _reply(self, asked: Asked, head: http_messages.Head, body: bytes) -> None:
        asked.code = head.code
        if asked.sort == "list" and asked.path.startswith(LIVE_PODS) and b'"continue":"' not in body[:500]:
            self._proxy.journal.tell(self._who, body[:500], self._proxy.clock.now())
        self._writer.write(http_messages.answer(head, body))
        await self._writer.drain()

    async def _exchange(
        self, request: http_messages.Request, asked: Asked, patient: bool = False
    ) -> tuple[http_messages.Head, bytes]:
        """Ask the API server. If the scheduler hangs up meanwhile, so do we, as any proxy would."""
        asking = asyncio.ensure_future(self._ask(request))
        hung_up = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait([asking] if patient else [asking, hung_up], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise HungUp
            head, body = asking.result()
        finally:
            for task in (asking, hung_up):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await hung_up
        asked.answer = head.code
        if asked.sort == "lease" and (found := VERSION.search(body)) and head.code < 300:
            asked.version = int(found.group(1))
        return head, body

    async def _ask(self, request: http_messages.Request) -> tuple[http_messages.Head, bytes]:
        reader, writer = await self._connected()
        writer.write(request.head + request.body)
        head = await http_messages.read_head(reader)
        return head, await http_messages.read_body(reader, head)

    async def _connected(self) -> Pipe:
        if self._pipe is None:
            self._pipe = await self._proxy.dial()
        return self._pipe

    # --- one watch ------------------------------------------------------------------------------------------------

    async def _watch(self, request: http_messages.Request, asked: Asked, fault: Fault | None) -> None:
        """To its end; the connection ends with it."""
        kind = "" if fault is None else fault.kind
        if fault is not None and kind in ("watch-410", "watch-500", "watch-401"):
            self._struck(asked, fault)
            await self._refuse(asked, int(kind.removeprefix("watch-")))
            raise HungUp
        reader, writer = await self._connected()
        writer.write(request.head)
        head = await http_messages.read_head(reader)
        asked.code = head.code
        if not head.chunked:
            await self._reply(asked, head, await http_messages.read_body(reader, head))
            return
        self._writer.write(head.text)
        closing = asyncio.ensure_future(self._reader.read(1))
        watching = WatchLog(self._proxy, asked, self._writer)
        following = asyncio.ensure_future(watching.follow(reader, fault))
        self._proxy.watches[watching] = asked
        try:
            await asyncio.wait([closing, following], return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
            raise HungUp
        finally:
            del self._proxy.watches[watching]
            for task in (closing, following):
                task.cancel()
            await asyncio.gather(closing, following, return_exceptions=True)

    def _struck(self, asked: Asked, fault: Fault) -> None:
        asked.fault = fault.kind
        self._proxy.journal.struck[fault.kind] += 1
