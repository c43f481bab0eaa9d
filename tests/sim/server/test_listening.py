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
from tests.async_helpers import HANGS, yield_to_loop
from tests.sim.server.server_fixture import PODS, pod

Act = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Link(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.paused = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


def talking(act: Act) -> None:
    """Runs `act` on a connection to a fresh server."""

    async def main() -> None:
        listener = await listen(ApiServer(WallClock(), random.Random(1)), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        try:
            async with asyncio.timeout(HANGS):
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
            await yield_to_loop()  # read by itself
        assert json.loads((await answer(reader))[1])["minor"] == "37"
        assert await answer(reader) == (200, b"ok")

    talking(act)


def test_a_body_may_come_in_chunks() -> None:
    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(pod("a")).encode()
        head = f"POST {PODS} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        writer.write(head + b"%x\r\n%b\r\n" % (10, body[:10]))
        await yield_to_loop()
        writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body) - 10, body[10:]))
        assert (await answer(reader))[0] == 201

    talking(act)


POST = b"POST / HTTP/1.1\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(b"nonsense\r\n\r\n", 400, id="no request line"),
        pytest.param(b"\r\n\r\n", 400, id="nothing at all"),
        pytest.param(
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, id="the handshake of a client that speaks TLS"
        ),
        pytest.param(b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400, id="a header without a colon"),
        pytest.param(b"GET / HTTP/1.1\r\n: nameless\r\n\r\n", 400, id="a header without a name"),
        pytest.param(b"GET /" + b"x" * 70000, 431, id="a line that does not end"),
        pytest.param(b"GET / HTTP/1.1\r\na: " + b"x" * 70000 + b"\r\n\r\n", 431, id="a head that is too long"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 300 + b"\r\n", 431, id="too many headers"),
        pytest.param(POST + b"Content-Length: x\r\n\r\n", 400, id="a length that is no number"),
        pytest.param(POST + b"Content-Length: -5\r\n\r\n", 400, id="a negative length"),
        pytest.param(POST + b"Content-Length: \xb2\r\n\r\n", 400, id="a length in superscript"),
        pytest.param(POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400, id="two lengths"),
        pytest.param(POST + b"Content-Length: 99999999\r\n\r\n", 413, id="a body that is too long"),
        pytest.param(POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 413, id="a length beyond any number"),
        pytest.param(POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400, id="both"),
        pytest.param(POST + b"Transfer-Encoding: gzip\r\n\r\n", 501, id="a coding that is not known"),
        pytest.param(CHUNKED + b"zz\r\n", 400, id="a chunk of no size"),
        pytest.param(CHUNKED + b"\r\n", 400, id="a chunk of empty size"),
        pytest.param(CHUNKED + b"-6\r\n", 400, id="a chunk of negative size"),
        pytest.param(CHUNKED + b"+6\r\n", 400, id="a chunk with a sign"),
        pytest.param(CHUNKED + b"0x6\r\n", 400, id="a chunk with a prefix"),
        pytest.param(CHUNKED + b"1_0\r\n", 400, id="a chunk with an underscore"),
        pytest.param(CHUNKED + b"f" * 40 + b"\r\n", 400, id="a chunk of monstrous size"),
        pytest.param(CHUNKED + b"ffffff\r\n", 413, id="a chunk that is too long"),
        pytest.param(CHUNKED + b"1;" + b"x" * 2000, 400, id="a size that does not end"),
        pytest.param(CHUNKED + b"1\r\nabc\r\n", 400, id="a chunk longer than it says"),
        pytest.param(CHUNKED + b"0\r\n" + b"x" * 2000, 431, id="a trailer that does not end"),
        pytest.param(CHUNKED + b"0\r\n" + b"a: b\r\n" * 300, 431, id="trailers without end"),
    ],
)
def test_what_is_no_request_ends_the_connection(sent: bytes, code: int) -> None:
    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        assert (await answer(reader))[0] == code
        assert await reader.read() == b""

    talking(act)


def test_chunks_may_have_extensions_and_trailers() -> None:
    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(pod("a")).encode()
        head = f"POST {PODS} HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n".encode()
        writer.write(head + b"%X ;a=b\r\n%b\r\n0;last\r\nx: y\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n" % (len(body), body))
        assert (await answer(reader))[0] == 201
        assert await answer(reader) == (200, b"ok")

    talking(act)


def test_a_client_that_asks_first_is_told_once_to_go_on() -> None:
    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(pod("a")).encode()
        writer.write(f"POST {PODS} HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        for byte in body:
            writer.write(bytes([byte]))
            await yield_to_loop(1)
        assert (await answer(reader))[0] == 201

    talking(act)


def test_a_request_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_REQUEST_SECONDS", 0.05)

    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert await answer(reader) == (200, b"ok")
        writer.write(b"GET / HTTP/1.1\r\nslow: ")
        assert (await answer(reader))[0] == 408
        assert await reader.read() == b""

    talking(act)


def test_others_have_their_turn_while_one_connection_has_much_to_ask() -> None:
    async def main() -> None:
        server = ApiServer(WallClock(), random.Random(1))
        peer = listening.ServerConnection(server, set())
        link = Link()
        peer.connection_made(link)
        peer.data_received(b"GET /healthz HTTP/1.1\r\n\r\n" * 1000)
        assert link.written.count(b"200 OK") == 16
        assert link.paused
        await yield_to_loop(100)
        assert link.written.count(b"200 OK") == 1000
        assert not link.paused

    asyncio.run(main())


def test_nothing_is_answered_after_a_connection_was_closed() -> None:
    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")
        assert await answer(reader) == (200, b"ok")
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
