"""Sockets: requests in pieces, bodies in chunks, what is no HTTP, watches that end."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable

import pytest

from kubenexus.base.clock import WallClock
from kubenexus.sim.apiserver import listening
from kubenexus.sim.apiserver.listening import CannotListen, listen
from kubenexus.sim.apiserver.server import ApiServer
from tests.sim.server.boxes import PODS, pod
from tests.turns import turns

Act = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def talking(act: Act) -> None:
    """Runs `act` on a connection to a fresh server."""

    async def main() -> None:
        listener = await listen(ApiServer(WallClock(), random.Random(1)), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        try:
            async with asyncio.timeout(10):
                await act(reader, writer)
        finally:
            writer.close()
            await listener.close()

    asyncio.run(main())


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    size = next((line.split(": ")[1] for line in head.split("\r\n") if line.startswith("Content-Length")), "0")
    return int(head.split(" ")[1]), await reader.readexactly(int(size))


def test_requests_come_in_pieces_and_in_pairs() -> None:
    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in (b"GET /ver", b"sion HTTP/1.1\r\nHo", b"st: x\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n"):
            writer.write(piece)
            await turns()  # read by itself
        assert json.loads((await answer(reader))[1])["minor"] == "37"
        assert await answer(reader) == (200, b"ok")

    talking(act)


def test_a_body_may_come_in_chunks() -> None:
    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(pod("a")).encode()
        head = f"POST {PODS} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        writer.write(head + b"%x\r\n%b\r\n" % (10, body[:10]))
        await turns()
        writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body) - 10, body[10:]))
        assert (await answer(reader))[0] == 201

    talking(act)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /" + b"x" * 70000, 431),
    ],
)
def test_what_is_no_request_ends_the_connection(sent: bytes, code: int) -> None:
    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        assert (await answer(reader))[0] == code
        assert await reader.read() == b""

    talking(act)


def test_a_watch_ends_in_time_and_the_connection_lives_on() -> None:
    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"GET {PODS}?watch=1&timeoutSeconds=1 HTTP/1.1\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"chunked" in head
        assert await reader.readuntil(b"0\r\n\r\n") == b"0\r\n\r\n"
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert await answer(reader) == (200, b"ok")

    talking(act)


def test_bookmarks_come_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_BOOKMARK_SECONDS", 0.05)

    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"GET {PODS}?watch=1&allowWatchBookmarks=true HTTP/1.1\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(2):
            await reader.readuntil(b"\r\n")
            assert json.loads(await reader.readuntil(b"\r\n"))["type"] == "BOOKMARK"

    talking(act)


def test_a_port_in_use_is_told() -> None:
    async def main() -> None:
        server = ApiServer(WallClock(), random.Random(1))
        first = await listen(server, "127.0.0.1", 0)
        with pytest.raises(CannotListen, match=f"cannot listen on 127.0.0.1:{first.port}"):
            await listen(server, "127.0.0.1", first.port)
        await first.close()

    asyncio.run(main())
