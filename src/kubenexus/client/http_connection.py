"""`HttpConnection`: one request and its answer at a time. `ResponseStream`: an answer without end, line by line."""

import asyncio
from typing import cast

from kubenexus.client.calls import Uncertain
from kubenexus.client.http_response import HttpResponse, MalformedResponse, ResponseLimits, ResponseParser
from kubenexus.client.line_buffer import LineBuffer

_HIGH_WATER = 4 * 1024**2  # bytes of unread lines above which the server has to wait


class ConnectionLost(Uncertain):
    """The connection ended before the answer did. `silent`: not one byte of the answer had come."""

    def __init__(self, why: str, *, silent: bool) -> None:
        self.silent = silent
        super().__init__(why)


class HttpConnection(asyncio.Protocol):
    """A connection. The pool owns it and lends it to one call at a time. A call that stops waiting must `abort` it."""

    def __init__(self, limits: ResponseLimits) -> None:
        self._limits = limits
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseParser | None = None
        self._waiting: asyncio.Future[HttpResponse | None] | None = None
        self._stream: ResponseStream | None = None
        self.used = False
        self.idle_since = 0.0

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come, so that no other call may use the connection."""
        return self._reader is not None

    async def request(self, request: bytes) -> HttpResponse:
        """Sends a request and returns its whole answer. Raises ConnectionLost or MalformedResponse."""
        self._send(request, ResponseParser(self._limits))
        return cast(HttpResponse, await self._arrival())

    async def stream(self, request: bytes) -> "HttpResponse | ResponseStream":
        """Sends a request whose answer, if it is a 2xx, is a stream. Returns as soon as the head is there."""
        stream = ResponseStream(self, self._limits.line)
        self._stream = stream
        self._send(request, ResponseParser(self._limits, stream.lines.feed))
        answer = await self._arrival()
        return stream if answer is None else answer

    def abort(self) -> None:
        """Closes the connection at once, even with a request under way."""
        if self._transport is not None:
            self._transport.abort()

    def pause(self, paused: bool) -> None:
        """Pauses or resumes reading from the socket. For the stream."""
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if paused else self._transport.resume_reading)()

    def _send(self, request: bytes, reader: ResponseParser) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionLost("the connection is closed", silent=True)
        self._reader = reader
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)

    async def _arrival(self) -> HttpResponse | None:
        assert self._waiting is not None
        try:
            return await self._waiting
        finally:
            self._waiting = None

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            self.abort()  # no request is under way: a proxy that explains why it closes
            return
        try:
            reader.feed(data)
        except MalformedResponse as error:
            self._fail(error)
            return
        if reader.done:
            self._finish(reader)
        elif reader.streaming and self._stream is not None:
            self._arrived(None)
            self._stream.wake()

    def eof_received(self) -> bool:
        if self._reader is not None and self._reader.eof():
            self._finish(self._reader)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        reader = self._reader
        if reader is not None:
            ended = "in the middle of the stream" if reader.streaming else "before it had answered"
            why = f"the connection broke: {exc}" if exc else f"the server closed the connection {ended}"
            self._fail(ConnectionLost(why, silent=not reader.begun))
        self._transport = None

    def _finish(self, reader: ResponseParser) -> None:
        self._reader = None
        self.used = True
        if not reader.keep or reader.extra:
            self.abort()
        self._arrived(None if reader.streaming else reader.answer())
        if reader.streaming and self._stream is not None:
            self._stream.end(None)

    def _fail(self, error: Uncertain) -> None:
        if self._reader is not None:
            self._reader.drop()
            self._reader = None
        self.abort()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)
        elif self._stream is not None:
            self._stream.end(error)

    def _arrived(self, answer: HttpResponse | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answer)


class ResponseStream:
    """The lines of an answer without end. For one reader, which must `close` it in any case."""

    def __init__(self, connection: HttpConnection, limit: int) -> None:
        self._connection = connection
        self._error: Uncertain | None = None
        self.ended = False
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self.lines = LineBuffer(limit)

    async def batch(self, most: int = 256) -> list[bytes]:
        """Returns the lines that have come, in order; waits for the first. Empty when the server has ended the stream.

        Raises ConnectionLost or MalformedResponse after the last whole line was returned.
        """
        while not len(self.lines) and not self.ended:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if not len(self.lines) and self._error is not None:
            raise self._error
        taken = self.lines.take(most)
        if self._paused and self.lines.size < _HIGH_WATER:
            self._paused = False
            self._connection.pause(False)
        return taken

    def close(self) -> None:
        """Ends the stream. May be called twice; a reader that waits for a batch gets an empty one."""
        self._connection.abort()
        self._finish(None)

    def wake(self) -> None:
        """Wakes the reader. The connection calls it when bytes have come."""
        if not self._paused and self.lines.size >= _HIGH_WATER:
            self._paused = True
            self._connection.pause(True)
        if len(self.lines) and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self, error: Uncertain | None) -> None:
        """Ends the lines. The connection calls it when nothing more will come."""
        if error is None and self.lines.broken:
            error = ConnectionLost("the stream ended within a line", silent=False)
        self._finish(error)

    def _finish(self, error: Uncertain | None) -> None:
        if not self.ended:
            self.ended, self._error = True, error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
