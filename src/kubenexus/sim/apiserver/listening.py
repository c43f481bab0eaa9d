"""Sockets: HTTP/1.1 as small as it can be, since every request is answered at once and nothing has to wait.

A request is answered in the callback in which its last byte came; no task is made for it. That is several times as
fast as a web framework, and a watch is nothing but a transport that is written to.
"""

import asyncio
import contextlib
import functools
import ssl
from http import HTTPStatus
from typing import Final, cast

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.apiserver.answers import Answer, Request
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.apiserver.watching import Watch

_MOST_HEAD: Final = 64 * 1024
_MOST_BODY: Final = 3 * 1024**2  # what a real server takes
_MOST_UNSENT: Final = 64 * 1024**2  # a watcher that lets so much pile up has gone to sleep
_BOOKMARK_SECONDS: Final = 60.0
_WATCH_SECONDS: Final = 1800


class CannotListen(KubeNexusError):
    """The port is in use, or not ours to use."""


class _Wrong(Exception):
    """Not HTTP, or more than we take."""

    def __init__(self, code: int) -> None:
        self.code = code


class Connection(asyncio.Protocol):
    def __init__(self, server: ApiServer, peers: "set[Connection]") -> None:
        self._server, self._peers = server, peers
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._watch: Watch | None = None
        self._timers: list[asyncio.TimerHandle] = []

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_MOST_UNSENT)
        self._peers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._peers.discard(self)
        self._end_watch()
        self._transport = None

    def data_received(self, data: bytes) -> None:
        if self._watch is not None:
            return  # whoever watches has nothing more to say
        self._buffer += data
        try:
            while self._watch is None and self._transport is not None and (request := self._next()) is not None:
                self._answer(request)
        except _Wrong as wrong:
            self._send(Answer(wrong.code), keep=False)

    def pause_writing(self) -> None:
        """The reader of a watch is too slow: it has to begin anew, as with a real server."""
        self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # One request.

    def _next(self) -> Request | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MOST_HEAD:
                raise _Wrong(431)
            return None
        line, headers = _head(bytes(self._buffer[:end]))
        taken, body = self._body(end + 4, headers)
        if body is None:
            return None
        del self._buffer[:taken]
        return Request(line[0], line[1], body, headers)

    def _body(self, start: int, headers: dict[str, str]) -> tuple[int, bytes | None]:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return _chunks(self._buffer, start)
        size = headers.get("content-length", "0")
        if not size.isdigit():
            raise _Wrong(400)
        end = start + int(size)
        if int(size) > _MOST_BODY:
            raise _Wrong(413)
        if len(self._buffer) < end:
            if headers.get("expect", "").lower() == "100-continue" and self._transport is not None:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                headers["expect"] = ""
            return 0, None
        return end, bytes(self._buffer[start:end])

    def _answer(self, request: Request) -> None:
        answer = self._server.handle(request)
        keep = request.headers.get("connection", "").lower() != "close"
        self._send(answer, keep)
        if answer.watch is not None:
            self._begin_watch(answer.watch)
        if not self._server.housekeeping.idle:
            asyncio.get_running_loop().call_soon(self._server.tidy)

    def _send(self, answer: Answer, keep: bool) -> None:
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
            self._buffer.clear()

    def _end_watch(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def _head(text: bytes) -> tuple[list[str], dict[str, str]]:
    lines = text.decode("latin-1").split("\r\n")
    first = lines[0].split(" ")
    if len(first) != 3 or not first[2].startswith("HTTP/1."):
        raise _Wrong(400)
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise _Wrong(400)
        headers[name.lower()] = value.strip()
    return first, headers


def _chunks(buffer: bytearray, at: int) -> tuple[int, bytes | None]:
    """The body of a request in chunks: where it ends, and the body; None while it is not all there."""
    body = bytearray()
    while True:
        end = buffer.find(b"\r\n", at)
        if end < 0:
            return 0, None
        try:
            size = int(bytes(buffer[at:end]).partition(b";")[0], 16)
        except ValueError:
            raise _Wrong(400) from None
        if len(body) + size > _MOST_BODY:
            raise _Wrong(413)
        at = end + 2 + size + 2
        if len(buffer) < at:
            return 0, None
        if not size:
            return at, bytes(body)
        body += buffer[end + 2 : end + 2 + size]


@functools.lru_cache(256)
def _status_line(code: int, content_type: str) -> bytes:
    phrase = HTTPStatus(code).phrase
    return f"HTTP/1.1 {code} {phrase}\r\nContent-Type: {content_type}\r\nCache-Control: no-cache, private\r\n".encode()


class Listener:
    """An open port. `close` ends it with all its connections."""

    def __init__(self, server: asyncio.Server, peers: set[Connection]) -> None:
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
    """Serves from now on. Port 0: any. Raises CannotListen."""
    peers: set[Connection] = set()
    loop = asyncio.get_running_loop()
    try:
        opened = await loop.create_server(lambda: Connection(server, peers), host, port, ssl=tls, backlog=1024)
    except OSError as error:
        raise CannotListen(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return Listener(opened, peers)
