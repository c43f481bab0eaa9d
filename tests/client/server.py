"""A server that does on a real socket what a test says: answer, dawdle, send half, hang up, reset."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

import pytest

from kubenexus.base.clock import Clock, WallClock
from kubenexus.client.client_config import ClientConfig
from kubenexus.client.credentials import Credentials, StaticCredentials
from kubenexus.client.dial import Proxy, ServerAddress
from kubenexus.client.rate_limiter import RateLimiter
from kubenexus.client.tls import TlsContextFactory
from kubenexus.client.transport import ApiClient
from tests.async_helpers import HANGS

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Request(NamedTuple):
    method: str
    path: str
    fields: dict[str, str]
    body: bytes


class Talk:
    """One connection, from the server's side."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: list[Request]):
        self.number = number
        self.reader, self.writer, self._log = reader, writer, log

    async def request(self) -> Request | None:
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await self.reader.readexactly(int(fields.get("content-length", 0)))
        method, path, _ = head[0].split(" ")
        found = Request(method, path, fields, body)
        self._log.append(found)
        return found

    async def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            if len(pieces) > 1:
                await asyncio.sleep(0)

    def reset(self) -> None:
        """Not a polite end: what a crashed machine or a firewall does."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Until the client hangs up."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass


class Served(NamedTuple):
    port: int
    requests: list[Request]
    talks: list[Talk]


Handler = Callable[[Talk], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    """The handler is called for each connection; when it returns, the connection is closed."""
    served = Served(0, [], [])
    tasks: set[asyncio.Task] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        talk = Talk(len(served.talks), reader, writer, served.requests)
        served.talks.append(talk)
        with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError):
            await handler(talk)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls, limit=2**26)
    try:
        yield served._replace(port=server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answering(*answers: bytes, then: bytes | None = None) -> Handler:
    """The given answers in their order, over all connections; afterwards `then` again and again, or the end."""
    left = list(answers)

    async def handler(talk: Talk) -> None:
        while await talk.request() is not None:
            if not left and then is None:
                return
            await talk.say(left.pop(0) if left else then or b"")

    return handler


def http(body: bytes = b"{}", status: str = "200 OK", **fields: str) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*pieces: bytes, end: bool = True) -> bytes:
    """An answer in chunks, as watches and large lists come."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(map(chunk, pieces)) + (b"0\r\n\r\n" if end else b"")


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def status(code: int, reason: str, message: str = "") -> bytes:
    return b'{"kind":"Status","code":%d,"reason":"%s","message":"%s"}' % (code, reason.encode(), message.encode())


def a_client(
    port: int,
    *,
    credentials: Credentials | None = None,
    trust: TlsContextFactory | None = None,
    host: str = "127.0.0.1",
    proxy: Proxy | None = None,
    clock: Clock | None = None,
    server_name: str = "",
    prefix: str = "",
    **settings: Any,
) -> ApiClient:
    """A client of a server on this machine; over TLS if it is told whom to trust."""
    clock = clock or WallClock()
    address = ServerAddress(host, port, trust is not None, prefix, server_name, proxy)
    settings.setdefault("rate_limiter", RateLimiter(clock, qps=-1))
    access = ClientConfig(
        address, trust or TlsContextFactory(), credentials or StaticCredentials("Bearer secret"), "test"
    )
    return ApiClient(access, clock, **settings)


@contextlib.asynccontextmanager
async def calling(handler: Handler, **settings: Any) -> AsyncIterator[tuple[ApiClient, Served]]:
    """A server and a client of it."""
    async with serving(handler) as served:
        client = a_client(served.port, **settings)
        try:
            yield client, served
        finally:
            await client.close()


def run_with(loop: str) -> Run:
    import uvloop

    factory = uvloop.new_event_loop if loop == "uvloop" else None

    def run(main: Coroutine[Any, Any, Any]) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(HANGS):
                return await main

        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(bounded())

    return run


both_loops = pytest.mark.parametrize("run", [run_with("asyncio"), run_with("uvloop")], ids=["asyncio", "uvloop"])
run = run_with("asyncio")
