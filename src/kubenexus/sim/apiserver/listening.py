"""Sockets: a minimal HTTP/1.1, which is enough because every request is answered synchronously.

A request is answered in the callback that received its last byte; no task is created. That is several times as fast as
a web framework, and a watch is only a transport that is written to.
"""

import asyncio
import contextlib
import functools
import ssl
from http import HTTPStatus
from typing import Final, cast

from kubenexus.base.errors import KubeNexusError, cannot_listen
from kubenexus.sim.apiserver.http_types import Request, Response
from kubenexus.sim.apiserver.requests import RequestReader, Wrong
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.apiserver.watching import Watch

_AT_ONCE: Final = 16  # requests of one connection that are answered before those of others
_REQUEST_SECONDS: Final = 60.0  # from the first byte of a request to its last
_MAX_UNSENT: Final = 64 * 1024**2  # unsent bytes after which a watcher counts as stalled
_BOOKMARK_SECONDS: Final = 60.0
_WATCH_SECONDS: Final = 1800


class CannotListen(KubeNexusError):
    """The port is in use, or the process may not bind it."""


class ServerConnection(asyncio.Protocol):
    def __init__(self, server: ApiServer, peers: "set[ServerConnection]") -> None:
        self._server, self._peers = server, peers
        self._transport: asyncio.Transport | None = None
        self._reader = RequestReader()
        self._watch: Watch | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._deadline: asyncio.TimerHandle | None = None  # for the rest of a partly received request

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_MAX_UNSENT)
        self._peers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._peers.discard(self)
        self._in_time()
        self._end_watch()
        self._transport = None

    def data_received(self, data: bytes) -> None:
        if self._watch is not None:
            return  # nothing is expected from a watcher
        self._reader.feed(data)
        self._work()

    def pause_writing(self) -> None:
        """Closes the connection of a watcher that reads too slowly; the client must list again, as with a real
        server."""
        self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # One request.

    def _work(self) -> None:
        """Answers up to `_AT_ONCE` complete requests, then yields to other connections."""
        try:
            for _ in range(_AT_ONCE):
                if self._watch is not None or self._transport is None or self._transport.is_closing():
                    return
                request = self._reader.next()
                if request is None:
                    self._await_rest(self._transport)
                    return
                self._in_time()
                self._answer(request)
        except Wrong as wrong:
            self._send(Response(wrong.code), keep=False)
        else:
            self._later()

    def _later(self) -> None:
        """Stops reading and schedules the rest of the buffered requests."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._work()

    def _await_rest(self, transport: asyncio.Transport) -> None:
        if self._reader.expects:
            transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self._reader.pending and self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(_REQUEST_SECONDS, self._too_slow)

    def _in_time(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._send(Response(HTTPStatus.REQUEST_TIMEOUT), keep=False)

    def _answer(self, request: Request) -> None:
        answer = self._server.handle(request)
        keep = request.headers.get("connection", "").lower() != "close"
        self._send(answer, keep)
        if answer.watch is not None:
            self._begin_watch(answer.watch)
        if not self._server.housekeeping.idle:
            asyncio.get_running_loop().call_soon(self._server.tidy)

    def _send(self, answer: Response, keep: bool) -> None:
        transport = self._transport
        if transport is None:
            return
        head = _status_line(answer.code, answer.content_type)
        extra = b"".join(b"%b: %b\r\n" % (name.encode(), value.encode()) for name, value in answer.headers)
        if answer.watch is not None:
            transport.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
            return
        close = b"" if keep else b"Connection: close\r\n"
        transport.write(b"%b%b%bContent-Length: %d\r\n\r\n%b" % (head, extra, close, len(answer.body), answer.body))
        if not keep:
            transport.close()

    # A watch.

    def _begin_watch(self, watch: Watch) -> None:
        self._watch = watch
        seconds = watch.query.seconds or _WATCH_SECONDS
        self._timers = [asyncio.get_running_loop().call_later(seconds, self._time_is_up)]
        if watch.query.bookmarks:
            self._timers.append(asyncio.get_running_loop().call_later(_BOOKMARK_SECONDS, self._bookmark))
        watch.open(self._event)

    def _event(self, line: bytes) -> None:
        if self._transport is not None:
            self._transport.write(b"%x\r\n%b\r\n" % (len(line), line))

    def _bookmark(self) -> None:
        if self._watch is not None:
            self._watch.bookmark()
            self._timers[1] = asyncio.get_running_loop().call_later(_BOOKMARK_SECONDS, self._bookmark)

    def _time_is_up(self) -> None:
        watch = self._watch
        if watch is not None and self._transport is not None:
            self._end_watch()
            self._transport.write(b"0\r\n\r\n")
            self._reader.clear()

    def _end_watch(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if self._watch is not None:
            self._watch.close()
            self._watch = None


@functools.lru_cache(256)
def _status_line(code: int, content_type: str) -> bytes:
    phrase = HTTPStatus(code).phrase
    return f"HTTP/1.1 {code} {phrase}\r\nContent-Type: {content_type}\r\nCache-Control: no-cache, private\r\n".encode()


class Listener:
    """An open port. `close` ends it with all its connections."""

    def __init__(self, server: asyncio.Server, peers: set[ServerConnection]) -> None:
        self._server, self._peers = server, peers

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._server.close()
        for peer in list(self._peers):
            peer.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._server.wait_closed()


async def listen(server: ApiServer, host: str, port: int, tls: ssl.SSLContext | None = None) -> Listener:
    """Opens the port and serves. Port 0 means any free port. Raises CannotListen."""
    peers: set[ServerConnection] = set()
    loop = asyncio.get_running_loop()
    try:
        opened = await loop.create_server(lambda: ServerConnection(server, peers), host, port, ssl=tls, backlog=1024)
    except OSError as error:
        raise CannotListen(cannot_listen(host, port, error)) from None
    return Listener(opened, peers)
