"""`ResponseParser`: reads HTTP/1.1 answers from bytes in pieces of any size. The parser is llhttp, via `httptools`.

This module adds limits, reads a few fields, and decides where a body goes. Anything but HTTP/1.1 as the API server
sends it is refused: a misread border between two answers would give one call the answer of another.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

from kubenexus.client.calls import Uncertain

Sink = Callable[[bytes], None]

_FIELDS: Final = frozenset((b"content-length", b"transfer-encoding", b"connection", b"retry-after"))


class ResponseLimits(msgspec.Struct, frozen=True):
    """The longest parts of an answer, in bytes. A page of a list may be large; a head never is."""

    head: int = 256 * 1024
    body: int = 512 * 1024**2
    line: int = 64 * 1024**2


class MalformedResponse(Uncertain):
    """Bytes came back that cannot be read as an answer."""


class HttpResponse(msgspec.Struct, frozen=True, gc=False):
    """One answer. `fields` has only the few fields that are read, names in lower case."""

    status: int
    fields: dict[bytes, bytes]
    body: bytes


class ResponseParser:
    """Reads one answer. The connection calls `feed`. `done`: the answer is complete; `begun`: any byte has come.

    `stream` is called with the body of a 2xx answer if the answer is a stream; any other body is collected.
    """

    # fmt: off
    __slots__ = (
        "_bare",
        "_capacity",
        "_endless",
        "_limits",
        "_parser",
        "_pieces",
        "_sink",
        "_stream",
        "begun",
        "done",
        "extra",
        "fields",
        "keep",
        "status",
    )
    # fmt: on

    def __init__(self, limits: ResponseLimits, stream: Sink | None = None) -> None:
        self._limits = limits
        self._stream = stream
        self._pieces: list[bytes] = []
        self._sink: Sink = self._pieces.append
        self._bare = 0  # bytes since the last read that had the end of a head or some of the body
        self._capacity = limits.body
        self._endless = False
        self.status = 0
        self.fields: dict[bytes, bytes] = {}
        self.keep = False
        self.begun = False
        self.done = False
        self.extra = False
        self._parser: HttpResponseParser | None = HttpResponseParser(self)

    @property
    def streaming(self) -> bool:
        """Whether the head is there, and the body goes to `stream`."""
        return self._stream is not None and self._sink is self._stream

    def answer(self) -> HttpResponse:
        return HttpResponse(self.status, self.fields, b"".join(self._pieces))

    def feed(self, data: bytes) -> None:
        """Parses the next bytes. After a MalformedResponse it must not be called again."""
        if not self.begun:
            self.begun = True
            if data[:1] != b"H":  # llhttp would skip line breaks, and take ICE and RTSP as well
                raise MalformedResponse(f"not an HTTP/1.1 answer: {data[:40]!r}")
        self._bare += len(data)
        if self._bare > self._limits.head and not self.status:
            data = self._end_of_head(data)
        self._parse(data)
        if self._bare > self._limits.head and not self.done:
            raise MalformedResponse("the end of the answer is longer than its limit")

    def eof(self) -> bool:
        """Handles that the server closed its side. Returns whether the answer is complete: some have no other end."""
        if self._endless:
            self.done = True
            self.drop()
        return self.done

    def drop(self) -> None:
        """Drops the parser, which refers to this object: each call would leave a cycle to the garbage collector."""
        self._parser = None

    def _end_of_head(self, data: bytes) -> bytes:
        """Parses the part of this read in which the head may still end. Returns the rest."""
        capacity = max(self._limits.head + 4 + len(data) - self._bare, 0)
        self._parse(data[:capacity])
        if not self.status:
            raise MalformedResponse(f"the head of the answer is longer than {self._limits.head} bytes")
        return data[capacity:]

    def _parse(self, data: bytes) -> None:
        parser = self._parser
        if parser is None:
            self.extra = self.extra or bool(data)
            return
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._failed(error, data)
        if self.done:
            self.drop()

    def _failed(self, error: Exception, data: bytes) -> None:
        if self.done:  # what failed is what came after the answer
            self.extra = True
        elif isinstance(error, HttpParserCallbackError) and error.__context__ is not None:
            raise error.__context__
        elif not self.status:
            raise MalformedResponse(f"not an HTTP/1.1 answer: {error}: {data[:40]!r}") from None
        else:
            raise MalformedResponse(f"a chunk of the answer cannot be read: {error}: {data[:40]!r}") from None

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self.done:
            raise MalformedResponse("more than was asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _FIELDS and not self.status:  # trailers are not read
            value = value.rstrip(b" ")  # as the parser does, to which a tab makes another coding of "chunked"
            if self.fields.setdefault(name, value) != value:
                raise MalformedResponse("a field of the answer's head is there twice, with different values")

    def on_headers_complete(self) -> None:
        parser, fields = self._parser, self.fields
        assert parser is not None
        self._bare = 0
        status, self.keep = parser.get_status_code(), parser.should_keep_alive()
        if not self.keep or b"connection" in fields:  # by itself only 1.1 keeps a connection
            self._look_closer(parser.get_http_version())
        if not 200 <= status < 600:
            self._interim(status)
            return
        self.status = status
        if self._stream is not None and status < 300:
            self._sink = self._stream
            self._capacity = 1 << 62  # a watch has no length; its lines have a limit of their own
        length = fields.get(b"content-length")
        if length is None:
            self._unforeseen(fields.get(b"transfer-encoding", b"identity").lower())
        elif int(length) > self._capacity and status not in (204, 304):
            raise self._too_long()

    def _look_closer(self, version: str) -> None:
        if version not in ("1.1", "1.0"):
            raise MalformedResponse(f"not an HTTP/1.1 answer: HTTP/{version}")
        self.keep = self.keep and version == "1.1" and b"close" not in self.fields.get(b"connection", b"").lower()

    def _interim(self, status: int) -> None:
        if status == 101:
            raise MalformedResponse("the server changed the protocol without being asked")
        if not 100 <= status < 200:
            raise MalformedResponse(f"not an HTTP/1.1 answer: its status is {status}")
        self.fields = {}

    def _unforeseen(self, coding: bytes) -> None:
        """Checks an answer without a length: its body comes in chunks, or ends with the connection; some have none."""
        if self.status in (204, 304):
            return
        if coding not in (b"chunked", b"identity"):
            raise MalformedResponse(f"the answer is coded as {coding!r}, which was not asked for")
        self._endless = coding == b"identity"

    def on_body(self, piece: bytes) -> None:
        self._bare = 0
        self._capacity -= len(piece)
        if self._capacity < 0:
            raise self._too_long()
        self._sink(piece)

    def on_message_complete(self) -> None:
        self.done = self.status > 0

    def _too_long(self) -> MalformedResponse:
        return MalformedResponse(f"the body of the answer is longer than {self._limits.body} bytes")
