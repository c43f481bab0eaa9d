"""Bytes that are HTTP or are not: what is read does not hang on how they come in pieces, and nothing piles up."""

import asyncio
import itertools
import random
from collections.abc import Iterator

import pytest

from kubenexus.base.clock import WallClock
from kubenexus.sim.apiserver import requests
from kubenexus.sim.apiserver.listening import listen
from kubenexus.sim.apiserver.requests import RequestReader, Wrong
from kubenexus.sim.apiserver.server import ApiServer

HEAD = b"POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\n"
WHOLE = (
    b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n",
    HEAD + b"Content-Length: 7\r\n\r\n" + b'{"a":1}',
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b'3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n',
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"2;x=y\r\n{}\r\n0\r\nt: u\r\n\r\n",
    HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /api/v1/pods?limit=1&labelSelector=a%3Db HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
)
PIECES = (
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\r", b":", b" ", b"\0", b"\xff", b";"),
    *(b"HTTP/1.1", b"GET ", b"/", b"%zz", b"?", b"&="),
    *(b"0\r\n", b"-6\r\n", b"+1\r\n", b"1_0\r\n", b"ffffffff\r\n", b"7fffffffffffffff\r\n", b"9" * 30),
    *(b"Content-Length: ", b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n"),
    *(b"a: b\r\n" * 300, b"x" * 1100, b"y" * 70_000, b"\xe2\x82\xac"),
)


def payloads(seed: int, number: int) -> Iterator[bytes]:
    """Requests, one or two together, most of them with something changed, left out, put in or repeated."""
    rng = random.Random(seed)
    for _ in range(number):
        data = bytearray(b"".join(rng.choices(WHOLE, k=rng.choice((1, 1, 2)))))
        for _ in range(rng.choice((0, 1, 1, 2, 5))):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(4):
                case 0:
                    data[at:at] = rng.choice(PIECES)
                case 1:
                    del data[at : at + rng.choice((1, 2, 10))]
                case 2:
                    data[at : at + 1] = rng.randbytes(1)
                case _:
                    data[at:at] = data[at : at + rng.randrange(40)]
        yield bytes(data)


def read(pieces: list[bytes]) -> list[object]:
    """The requests that come out, and the code at the end if it went wrong."""
    reader, found = RequestReader(), list[object]()
    try:
        for piece in pieces:
            reader.feed(piece)
            while (request := reader.next()) is not None:
                found.append((request.method, request.path, request.query, request.body, request.headers))
            assert len(reader._buffer) <= requests.MAX_BODY + requests.MAX_HEAD + len(piece)
    except Wrong as wrong:
        found.append(wrong.code)
    return found


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    marks = sorted({0, len(data), *(rng.randrange(len(data) + 1) for _ in range(rng.choice((1, 3, 20))))})
    return [data[a:b] for a, b in itertools.pairwise(marks)]


def test_what_is_read_does_not_hang_on_how_the_bytes_come() -> None:
    rng = random.Random(7)
    for data in payloads(1, 3000):
        whole, parts = read([data]), read(cut(data, rng))
        assert parts == whole or 431 in (parts[-1:] + whole[-1:]), (
            data
        )  # a head that is too long may be found out early


def test_requests_come_out_byte_by_byte_as_they_went_in() -> None:
    for data in WHOLE:
        (whole,) = read([data])
        assert read([bytes([byte]) for byte in data]) == [whole]


@pytest.mark.parametrize(
    ("data", "piece"),
    [
        pytest.param(b"GET / HTTP/1.1\r\na: ", b"x", id="a head"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x", id="an extension"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n", id="trailers"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"400\r\n" + b"z" * 1024 + b"\r\n", id="chunks"),
    ],
)
def test_what_never_ends_is_ended(data: bytes, piece: bytes) -> None:
    found = read([data, *([piece] * 70_000)])
    assert found[-1] in (400, 413, 431)


def test_no_byte_is_looked_at_again_because_another_one_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body of 2,000 bytes that come one by one behind a head of 200 headers: the head is read once."""
    parsed: list[str] = []
    real = requests._parsed

    def counted(text: str) -> object:
        parsed.append(text)
        return real(text)

    monkeypatch.setattr(requests, "_parsed", counted)
    head = HEAD + b"a: b\r\n" * 200 + b"Content-Length: 2000\r\n\r\n"
    (request,) = read([head, *([b"x"] * 2000)])
    assert isinstance(request, tuple)
    assert request[3] == b"x" * 2000
    assert len(parsed) == 1


def test_a_server_that_is_sent_anything_still_answers() -> None:
    """Over real sockets: each connection ends or stays, and the next one is served."""

    async def main() -> None:
        listener = await listen(ApiServer(WallClock(), random.Random(1)), "127.0.0.1", 0)
        try:
            async with asyncio.timeout(60):
                for seed in range(30):
                    await asyncio.gather(*(sent(listener.port, data) for data in payloads(seed, 40)))
                    assert b"200 OK" in await sent(listener.port, b"GET /healthz HTTP/1.1\r\n\r\n")
        finally:
            await listener.close()

    asyncio.run(main())


async def sent(port: int, data: bytes) -> bytes:
    """What comes back when nothing more is said."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        writer.write_eof()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
