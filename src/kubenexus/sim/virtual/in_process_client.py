"""A client of the embedded API server without sockets: calls and watches take virtual time only."""

import asyncio
from collections import deque

from kubenexus.client.calls import Call
from kubenexus.client.status import status_error
from kubenexus.sim.apiserver.http_types import Request, Response
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.apiserver.watching import Watch

LATENCY = 0.001  # seconds until a call is answered
_BOOKMARKS = 60.0
_WATCH = 1800.0


class InProcessClient:
    """A `client.watch_protocols.WatchClient`. A call is answered after the latency, by the state at that time."""

    def __init__(self, server: ApiServer, latency: float = LATENCY) -> None:
        self._server, self._latency = server, latency
        self._tidying = False

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        """Raises ApiError. Calls are never lost."""
        if self._latency:
            await asyncio.sleep(self._latency)
        answer = self.now(call)
        if answer.code >= 300:
            raise status_error(answer.code, answer.body)
        return answer.body

    def now(self, call: Call) -> Response:
        """Returns the response without latency. For scenarios, not for the simulated components."""
        headers = {"content-type": call.content_type} if call.body else None
        answer = self._server.handle(Request(call.method, call.path, call.body, headers))
        if not self._server.housekeeping.idle and not self._tidying:
            self._tidying = True
            asyncio.get_running_loop().call_soon(self._tidy)
        return answer

    async def stream(self, path: str, *, timeout: float = 10.0) -> "InProcessStream":
        if self._latency:
            await asyncio.sleep(self._latency)
        answer = self.now(Call("GET", path))
        if answer.watch is None:
            raise status_error(answer.code, answer.body)
        return InProcessStream(answer.watch)

    def _tidy(self) -> None:
        self._tidying = False
        self._server.tidy()


class InProcessStream:
    """The lines of one watch, for one reader. A `client.watch_protocols.LineStream`; ends after the watch's timeout."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._lines: deque[bytes] = deque()
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None
        loop = asyncio.get_running_loop()
        self._end = loop.call_later(watch.query.seconds or _WATCH, self.close)
        self._mark = loop.call_later(_BOOKMARKS, self._bookmark) if watch.query.bookmarks else None
        watch.open(self._received)

    async def batch(self, most: int = 256) -> list[bytes]:
        """Returns the lines that have arrived, after waiting for the first. Empty: the stream has ended."""
        while not self._lines and not self._ended:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        lines = self._lines
        return [lines.popleft() for _ in range(min(most, len(lines)))]

    def close(self) -> None:
        """May be called twice."""
        if not self._ended:
            self._ended = True
            self._watch.close()
            self._end.cancel()
            if self._mark is not None:
                self._mark.cancel()
        self._wake()

    def _received(self, line: bytes) -> None:
        self._lines.append(line)
        if self._waiter is not None:
            self._wake()

    def _bookmark(self) -> None:
        self._watch.bookmark()
        self._mark = asyncio.get_running_loop().call_later(_BOOKMARKS, self._bookmark)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
