"""As much of HTTP/1.1 as stands between a scheduler and an API server."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

LIMIT: Final = 2**24
END: Final = b"\r\n\r\n"
LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
REASONS: Final = {
    401: "Unauthorized",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
}
LAST_CHUNK: Final = b"0\r\n\r\n"
GONE: Final = 410


class HungUp(Exception):
    """A connection ends here."""


class Request(NamedTuple):
    head: bytes
    body: bytes

    @property
    def line(self) -> tuple[str, str]:
        """Method and path."""
        method, path, _ = self.head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        return method, path


class Head(NamedTuple):
    """The beginning of an answer."""

    text: bytes

    @property
    def code(self) -> int:
        return int(self.text.split(b" ", 2)[1])

    @property
    def chunked(self) -> bool:
        return CHUNKED.search(self.text) is not None

    @property
    def length(self) -> int:
        found = LENGTH.search(self.text)
        return int(found.group(1)) if found else 0


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Raises IncompleteReadError when there is none any more."""
    head = await reader.readuntil(END)
    found = LENGTH.search(head)
    return Request(head, await reader.readexactly(int(found.group(1))) if found else b"")


async def read_head(reader: asyncio.StreamReader) -> Head:
    return Head(await reader.readuntil(END))


async def read_body(reader: asyncio.StreamReader, head: Head) -> bytes:
    if not head.chunked:
        return await reader.readexactly(head.length)
    return b"".join([piece async for piece in pieces(reader)])


async def pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The chunks of a body, until the last."""
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        piece = await reader.readexactly(size + 2)
        if not size:
            return
        yield piece[:-2]


async def lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a watch, each with its end."""
    rest = b""
    async for piece in pieces(reader):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line + b"\n"


def chunk(text: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text), text)


def answer(head: Head, body: bytes) -> bytes:
    """An answer with its length, whatever way it came."""
    kept = [line for line in head.text.split(b"\r\n") if line and not _framing(line)]
    return b"\r\n".join([*kept, b"Content-Length: %d" % len(body), b"", body])


def refusal(code: int) -> bytes:
    """An answer of our own."""
    later = b"Retry-After: 1\r\n" if code == 429 else b""
    return json_answer(code, json.dumps(status(code)).encode(), later)


def json_answer(code: int, body: bytes, more: bytes = b"") -> bytes:
    fields = b"Content-Type: application/json\r\n%sContent-Length: %d\r\n\r\n" % (more, len(body))
    return b"HTTP/1.1 %d %s\r\n" % (code, REASONS.get(code, "OK").encode()) + fields + body


def error_event(code: int) -> bytes:
    """As the last line of a watch."""
    return json.dumps({"type": "ERROR", "object": status(code)}).encode() + b"\n"


def status(code: int) -> dict[str, object]:
    said = {"message": f"chaos: {REASONS[code]}", "reason": REASONS[code], "code": code}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", **said}


def _framing(line: bytes) -> bool:
    return line.lower().startswith((b"content-length:", b"transfer-encoding:"))
