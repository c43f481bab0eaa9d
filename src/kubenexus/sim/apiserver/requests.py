"""Parses requests from the bytes of a connection: the part of HTTP/1.1 that clients of an API server use.

The buffer for an incomplete request is bounded, and no byte is scanned again when another one arrives. The limits are
64 KiB for a head, 3 MiB for a body and 1 KiB for the line before a chunk. The sender is not authenticated yet.
"""

import re
from typing import Final

import msgspec

from kubenexus.sim.apiserver.http_types import Request

MAX_HEAD: Final = 64 * 1024
MAX_HEADERS: Final = 256
MAX_BODY: Final = 3 * 1024**2  # the limit of a real server
MAX_LINE: Final = 1024  # the size of a chunk with its extensions, or a trailer
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?", re.DOTALL)
_LENGTH: Final = re.compile(r"[0-9]{1,10}")
_ONCE: Final = frozenset({"content-length", "transfer-encoding"})


class Wrong(Exception):
    """Not HTTP, or over a limit. `code` is the answer before the connection closes."""

    def __init__(self, code: int) -> None:
        self.code = code


class _Head(msgspec.Struct, gc=False):
    """The head of a request whose body is incomplete.

    `chunks` is what has arrived of a chunked body; if None, the body has `size` bytes. `last`: the chunk of size 0 has
    arrived, followed by `trailers` lines. `greeted`: `100 Continue` was sent.
    """

    method: str
    target: str
    headers: dict[str, str]
    size: int = 0
    chunks: bytearray | None = None
    last: bool = False
    trailers: int = 0
    greeted: bool = False


class RequestReader:
    """The parser of one connection: call `feed`, then `next` until it returns None."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0  # bytes already searched for the end of a head
        self._head: _Head | None = None

    @property
    def pending(self) -> bool:
        """Whether an incomplete request is buffered."""
        return self._head is not None or bool(self._buffer)

    @property
    def expects(self) -> bool:
        """Whether the client waits for `100 Continue` before it sends the body. True once for each request."""
        head = self._head
        if head is None or head.greeted or self._buffer or head.headers.get("expect", "").lower() != "100-continue":
            return False
        head.greeted = True
        return True

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def clear(self) -> None:
        self._buffer.clear()
        self._searched, self._head = 0, None

    def next(self) -> Request | None:
        """Returns the next complete request, or None. Raises Wrong; the rest of the connection is then unusable."""
        head = self._head or self._read_head()
        if head is None:
            return None
        self._head = head
        body = self._read_bytes(head.size) if head.chunks is None else self._read_chunks(head, head.chunks)
        if body is None:
            return None
        self._head = None
        try:
            return Request(head.method, head.target, body, head.headers)
        except ValueError:  # an invalid query
            raise Wrong(400) from None

    def _read_head(self) -> _Head | None:
        buffer = self._buffer
        if buffer and not buffer[:1].isalpha():  # such as a TLS handshake, which has no end that could be awaited
            raise Wrong(400)
        end = buffer.find(b"\r\n\r\n", self._searched)
        if end > MAX_HEAD or (end < 0 and len(buffer) > MAX_HEAD):
            raise Wrong(431)
        if end < 0:
            self._searched = max(0, len(buffer) - 3)
            return None
        text = buffer[:end].decode("latin-1")
        del buffer[: end + 4]
        self._searched = 0
        return _parsed(text)

    def _read_bytes(self, size: int) -> bytes | None:
        buffer = self._buffer
        if len(buffer) < size:
            return None
        body = bytes(buffer[:size])
        del buffer[:size]
        return body

    def _read_chunks(self, head: _Head, body: bytearray) -> bytes | None:
        buffer, at = self._buffer, 0
        try:
            while True:
                end = buffer.find(b"\r\n", at, at + MAX_LINE + 2)
                if end < 0:
                    if len(buffer) - at > MAX_LINE + 1:
                        raise Wrong(431 if head.last else 400)
                    return None
                if head.last:  # trailers are ignored, and an empty line ends the request
                    empty, at = end == at, end + 2
                    head.trailers += 1
                    if head.trailers > MAX_HEADERS:
                        raise Wrong(431)
                    if empty:
                        return bytes(body)
                    continue
                size = _size(buffer[at:end])
                head.last = not size
                after = end + 2 + size
                if head.last:
                    at = after
                elif len(body) + size > MAX_BODY:
                    raise Wrong(413)
                elif len(buffer) < after + 2:
                    return None
                elif buffer[after : after + 2] != b"\r\n":
                    raise Wrong(400)
                else:
                    body += buffer[end + 2 : after]
                    at = after + 2
        finally:
            del buffer[:at]


def _size(line: bytearray) -> int:
    """Parses the size of a chunk. Stricter than `int`, which accepts signs, blanks and underscores: a negative size
    would never end."""
    found = _SIZE.fullmatch(line)
    if found is None:
        raise Wrong(400)
    return int(found[1], 16)


def _parsed(text: str) -> _Head:
    lines = text.split("\r\n")
    first = lines[0].split(" ")
    if len(first) != 3 or not first[2].startswith("HTTP/1."):
        raise Wrong(400)
    if len(lines) > MAX_HEADERS + 1:
        raise Wrong(431)
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        name, value = name.lower(), value.strip()
        if not colon or not name or (name in _ONCE and headers.get(name, value) != value):
            raise Wrong(400)
        headers[name] = value
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked":
            raise Wrong(501)
        if length is not None:
            raise Wrong(400)
        return _Head(first[0], first[1], headers, chunks=bytearray())
    if length is None:
        return _Head(first[0], first[1], headers)
    if not _LENGTH.fullmatch(length):
        raise Wrong(413 if length.isascii() and length.isdigit() else 400)
    if int(length) > MAX_BODY:
        raise Wrong(413)
    return _Head(first[0], first[1], headers, size=int(length))
