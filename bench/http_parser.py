"""What reading an answer costs with llhttp, and with the reader by hand before it: `python -m bench.http_parser`.

Both read the same bytes in turns, so that both see the same neighbours; a ratio is the median of the ratios of rounds
side by side, the times are medians of the CPU time of this thread. A `call` is a bind over loopback through the whole
client; the server is a process of its own. The verdict is in docs/adr/0006-own-transport.md.
"""

import argparse
import asyncio
import multiprocessing
import statistics
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from typing import Any

from bench import handwritten_reader
from bench.measure import clock, settle_down
from kubenexus.base.clock import WallClock
from kubenexus.client import http_connection, http_response
from kubenexus.client.client_config import ClientConfig
from kubenexus.client.credentials import StaticCredentials
from kubenexus.client.dial import ServerAddress
from kubenexus.client.line_buffer import LineBuffer
from kubenexus.client.rate_limiter import RateLimiter
from kubenexus.client.tls import TlsContextFactory
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import bind

Read = Callable[[Any], None]

READERS = (handwritten_reader.Reader, http_response.ResponseParser)
LIMITS = http_response.ResponseLimits()
READ = 64 * 1024  # bytes of one read from a socket
FIELDS = (
    b"Audit-Id: 8c3f6a0e-6a4b-4b0f-9a38-1d7b7b0f0f5e\r\n"
    b"Cache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\n"
    b"Strict-Transport-Security: max-age=31536000; includeSubDomains; preload\r\n"
    b"X-Content-Type-Options: nosniff\r\n"
    b"X-Kubernetes-Pf-Flowschema-Uid: 0f6a2c34-8f5e-4b87-9d5b-3a6b2f9f4a11\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 5d1e2b7c-1c58-4a3f-8f6c-0a1d3e5b7c9f\r\n"
    b"Date: Mon, 16 Nov 2026 10:00:00 GMT\r\n"
)
CHUNKED = b"HTTP/1.1 200 OK\r\n" + FIELDS + b"Transfer-Encoding: chunked\r\n\r\n"


def with_length(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, FIELDS, len(body), body)


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


BOUND = with_length(
    b'{"kind":"Status","apiVersion":"v1","status":"Success","x":"' + b"x" * 240 + b'"}\n', b"201 Created"
)


def reads(data: bytes) -> list[bytes]:
    return [data[at : at + READ] for at in range(0, len(data), READ)]


def whole(data: bytes) -> Read:
    pieces = reads(data)

    def read(reader: Any) -> None:
        it = reader(LIMITS)
        for piece in pieces:
            it.feed(piece)
        assert it.done
        it.answer()

    return read


def watch(pieces: list[bytes]) -> Read:
    def read(reader: Any) -> None:
        lines = LineBuffer(LIMITS.line)
        it = reader(LIMITS, lines.feed)
        it.feed(CHUNKED)
        for piece in pieces:
            it.feed(piece)
        assert len(lines.take(1 << 20)) == 256

    return read


EVENT = chunk(b"{" + b"x" * 1998 + b"}\n")
PAGE = b"x" * 16 * 1024**2
CASES: dict[str, tuple[Read, int]] = {
    "a bind's answer": (whole(BOUND), 200),
    "256 events, many a read": (watch(reads(EVENT * 256)), 10),
    "256 events, one a read": (watch([EVENT] * 256), 10),
    "16 MB with a length": (whole(with_length(PAGE)), 1),
    "16 MB in chunks of 32 kB": (whole(CHUNKED + chunk(PAGE[: 32 * 1024]) * 512 + b"0\r\n\r\n"), 1),
}


def timed(read: Read, reader: Any, calls: int) -> float:
    start = clock()
    for _ in range(calls):
        read(reader)
    return (clock() - start) / calls


def pairs(read: Read, rounds: int, calls: int) -> list[tuple[float, ...]]:
    """The seconds of both, round by round. Whoever comes first finds colder caches: they take turns in that, too."""
    found = []
    for number in range(rounds + 2):
        order = READERS if number % 2 else READERS[::-1]
        pair = [timed(read, reader, calls) for reader in order]
        found.append(tuple(pair if number % 2 else pair[::-1]))
    return found[2:]


async def call_times(port: int, rounds: int, calls: int, at_once: int) -> list[tuple[float, ...]]:
    access = ClientConfig(
        ServerAddress("127.0.0.1", port, False), TlsContextFactory(), StaticCredentials("Bearer " + "t" * 900), "bench"
    )
    wall = WallClock()
    client = ApiClient(access, wall, rate_limiter=RateLimiter(wall, qps=-1))
    call = bind("default", "pod-1", "8c3f6a0e-6a4b-4b0f-9a38-1d7b7b0f0f5e", "node-1")

    async def some() -> None:
        for _ in range(calls // at_once):
            await client.send(call)

    async def one_round(reader: Any) -> float:
        http_connection.ResponseParser = reader  # type: ignore[attr-defined]
        start = clock()
        await asyncio.gather(*(some() for _ in range(at_once)))
        return (clock() - start) / calls

    found = []
    for number in range(rounds + 2):
        order = READERS if number % 2 else READERS[::-1]
        pair = [await one_round(reader) for reader in order]
        found.append(tuple(pair if number % 2 else pair[::-1]))
    http_connection.ResponseParser = http_response.ResponseParser  # type: ignore[attr-defined]
    await client.close()
    return found[2:]


class Answering(asyncio.Protocol):
    """Answers whatever ends with a bind's last byte."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"}"):
            self._transport.write(BOUND)


def serve(pipe: Pipe) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def show(case: str, found: list[tuple[float, ...]]) -> None:
    old, new = (statistics.median(each[i] for each in found) * 1e6 for i in (0, 1))
    ratios = sorted(each[1] / each[0] for each in found)
    middle, low, high = statistics.median(ratios), ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
    print(f"{case:<28} {old:>11.2f} {new:>11.2f} {middle:>8.3f}   {low:.3f}-{high:.3f}", flush=True)


def run(rounds: int) -> None:
    import uvloop

    settle_down()
    print(f"{'':<28} {'by hand, µs':>11} {'llhttp, µs':>11} {'ratio':>8}   half of the rounds")
    for case, (read, calls) in CASES.items():
        show(case, pairs(read, rounds, calls))
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    port = ours.recv()
    for name, factory in (("asyncio", asyncio.new_event_loop), ("uvloop", uvloop.new_event_loop)):
        for at_once in (1, 64):
            with asyncio.Runner(loop_factory=factory) as runner:
                found = runner.run(call_times(port, 2 * rounds, 256, at_once))
            show(f"call, {at_once} at once, {name}", found)
    server.terminate()
    server.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    run(parser.parse_args().rounds)


if __name__ == "__main__":
    main()
