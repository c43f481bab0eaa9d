"""The reader of answers that `client` had before it took llhttp, as it was: what `bench.http_parser` compares with, and
the twin of the reader in its tests.

A small answer is one search for the end of its head and one pattern for the four fields that matter.
"""

import re
from collections.abc import Callable
from typing import Final

from kubenexus.client.http_response import HttpResponse, MalformedResponse, ResponseLimits, Sink

_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])[ \r]")
_FIELDS: Final = re.compile(
    rb"\r\n(content-length|transfer-encoding|connection|retry-after)[ \t]*:[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)",
    re.IGNORECASE,
)
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_CHUNK: Final = re.compile(rb"\r\n([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_CHUNK_LINE = 4096  # more than any size with extensions


class Reader:
    """Reads one answer. The connection feeds it; `done` says that it is complete, `begun` that any byte has come.

    `stream` is where the body of a 2xx answer goes when it has no foreseeable end; any other body is gathered.
    """

    # fmt: off
    __slots__ = (
        "_capacity",
        "_held",
        "_left",
        "_limits",
        "_pieces",
        "_sink",
        "_step",
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
        # A function, not a bound method: that would be a cycle, and garbage for the collector with each call.
        self._step: Callable[[Reader, bytes], bytes] = Reader._head
        self._held = b""
        self._left = 0
        self._capacity = limits.body
        self.status = 0
        self.fields: dict[bytes, bytes] = {}
        self.keep = False
        self.begun = False
        self.done = False
        self.extra = False

    @property
    def streaming(self) -> bool:
        """The head is there, and the body goes to `stream`."""
        return self._stream is not None and self._sink is self._stream

    def answer(self) -> HttpResponse:
        return HttpResponse(self.status, self.fields, b"".join(self._pieces))

    def feed(self, data: bytes) -> None:
        """The next bytes. Raises Garbled; after that nothing more may be fed."""
        self.begun = True
        if self._held:
            data, self._held = self._held + data, b""
        while data and not self.done:
            data = self._step(self, data)
        self.extra = bool(data)

    def eof(self) -> bool:
        """The server has closed its side. True if the answer is complete by that: it had no other end."""
        self.done = self.done or self._step is Reader._rest
        return self.done

    def _head(self, data: bytes) -> bytes:
        end = data.find(b"\r\n\r\n")
        if end < 0 or end > self._limits.head:
            if len(data) > self._limits.head:
                raise MalformedResponse(f"the head of the answer is longer than {self._limits.head} bytes")
            self._held = data
            return b""
        line = _STATUS.match(data)
        if line is None:
            raise MalformedResponse(f"not an HTTP/1.1 answer: {data[:40]!r}")
        self.status = int(line[2])
        self._read_fields(_FIELDS.findall(data, 0, end + 2), line[1] == b"1")
        return self._body(data, end)

    def _read_fields(self, found: list[tuple[bytes, bytes]], lasting: bool) -> None:
        fields = self.fields = {name.lower(): value for name, value in found}
        if len(fields) < len(found) and any(fields[name.lower()] != value for name, value in found):
            raise MalformedResponse("a field of the answer's head is there twice, with different values")
        self.keep = lasting and b"close" not in fields.get(b"connection", b"").lower()

    def _body(self, data: bytes, end: int) -> bytes:
        """What comes after the head. In chunks, its last line break is left in: each chunk begins with one."""
        if self.status < 200:
            return self._interim(data[end + 4 :])
        if self._stream is not None and self.status < 300:
            self._sink = self._stream
            self._capacity = 1 << 62  # a watch has no length; its lines have a limit of their own
        if self.status in (204, 304):
            self.done = True
        elif self._chunked():
            self._step = Reader._chunks
            return data[end + 2 :]
        else:
            self._plain(self.fields.get(b"content-length"))
        return data[end + 4 :]

    def _interim(self, rest: bytes) -> bytes:
        if self.status == 101:
            raise MalformedResponse("the server changed the protocol without being asked")
        return rest

    def _chunked(self) -> bool:
        coding = self.fields.get(b"transfer-encoding", b"identity").lower()
        if coding not in (b"chunked", b"identity"):
            raise MalformedResponse(f"the answer is coded as {coding!r}, which was not asked for")
        return coding == b"chunked"

    def _plain(self, length: bytes | None) -> None:
        if length is None:
            self.keep = False
            self._step = Reader._rest
            return
        if _LENGTH.fullmatch(length) is None:
            raise MalformedResponse(f"the answer's length is {length[:40]!r}")
        self._left = int(length)
        self._reserve(self._left)
        self._step = Reader._fixed
        self.done = self._left == 0

    def _reserve(self, size: int) -> None:
        self._capacity -= size
        if self._capacity < 0:
            raise MalformedResponse(f"the body of the answer is longer than {self._limits.body} bytes")

    def _fixed(self, data: bytes) -> bytes:
        left = self._left
        self._sink(data if len(data) <= left else data[:left])
        self._left = max(left - len(data), 0)
        self.done = self._left == 0
        return data[left:]

    def _rest(self, data: bytes) -> bytes:
        self._reserve(len(data))
        self._sink(data)
        return b""

    def _chunks(self, data: bytes) -> bytes:
        # By position, not by cutting: a read may hold a hundred chunks.
        at, end = 0, len(data)
        while at < end:
            if self._left:
                piece = data[at : at + self._left]
                self._left -= len(piece)
                at += len(piece)
                self._sink(piece)
                continue
            start = _CHUNK.match(data, at)
            if start is None:
                return self._unfinished(data[at:])
            self._left, at = int(start[1], 16), start.end()
            self._reserve(self._left)
            if not self._left:
                self._step = Reader._trailer
                return data[at - 2 :]
        return b""

    def _unfinished(self, rest: bytes) -> bytes:
        """The line before a chunk is not all there yet; or it never will be one."""
        whole = rest.find(b"\r\n", 2) >= 0
        if whole or len(rest) > _CHUNK_LINE or not rest.startswith(b"\r\n"[: len(rest)]):
            raise MalformedResponse(f"a chunk of the answer begins with {rest[:40]!r}")
        self._held = rest
        return b""

    def _trailer(self, data: bytes) -> bytes:
        end = data.find(b"\r\n\r\n")
        if end >= 0:
            self.done = True
            return data[end + 4 :]
        if len(data) > self._limits.head:
            raise MalformedResponse("the end of the answer is longer than its limit")
        self._held = data
        return b""
