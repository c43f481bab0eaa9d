"""`Dialer`: opens connections, directly or through a proxy, plain or with TLS."""

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import cast

import msgspec

from kubenexus.client.calls import Unreachable
from kubenexus.client.credentials import ClientConfigError
from kubenexus.client.http_connection import HttpConnection
from kubenexus.client.http_response import MalformedResponse, ResponseLimits, ResponseParser

# A peer that vanished without closing is noticed within half a minute, and its watches begin again.
_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000))

_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")  # what OpenSSL reports, by version


class Proxy(msgspec.Struct, frozen=True):
    """An HTTP proxy that opens tunnels (CONNECT). `secret` is `user:password`, or empty."""

    host: str
    port: int
    tls: bool = False
    secret: str = ""


class ServerAddress(msgspec.Struct, frozen=True):
    """The address of the server. `prefix` precedes every path; `server_name` is the name its certificate must have."""

    host: str
    port: int
    tls: bool = True
    prefix: str = ""
    server_name: str = ""
    proxy: Proxy | None = None

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.prefix}"


class Dialer:
    """Opens connections to one address. Calls `context` each time: certificates may have been renewed."""

    def __init__(self, address: ServerAddress, context: Callable[[], ssl.SSLContext], limits: ResponseLimits) -> None:
        self._address = address
        self._context = context
        self._limits = limits

    async def __call__(self) -> HttpConnection:
        """Returns a new connection. Raises Unreachable with the cause in words."""
        address = self._address
        try:
            return await (self._tunnelled(address.proxy) if address.proxy else self._straight())
        except ClientConfigError as error:  # a certificate file that cannot be read any more
            raise Unreachable(str(error)) from None
        except ssl.SSLCertVerificationError as error:
            said = error.verify_message or error.reason
            raise Unreachable(f"{address}: the server's certificate is not trusted: {said}") from None
        except ssl.SSLError as error:
            hint = "; the port seems to speak plain HTTP" if error.reason in _NOT_TLS else ""
            raise Unreachable(f"{address}: TLS failed: {error.reason or error}{hint}") from None
        except OSError as error:
            raise Unreachable(f"{address}: {_in_words(error)}") from None

    async def _straight(self) -> HttpConnection:
        address, loop = self._address, asyncio.get_running_loop()
        transport, connection = await loop.create_connection(
            lambda: HttpConnection(self._limits),
            address.host,
            address.port,
            ssl=self._context() if address.tls else None,
            server_hostname=self._server_name,
        )
        _stay_alert(transport)
        return connection

    async def _tunnelled(self, proxy: Proxy) -> HttpConnection:
        loop = asyncio.get_running_loop()
        transport, tunnel = await loop.create_connection(
            ProxyTunnel, proxy.host, proxy.port, ssl=ssl.create_default_context() if proxy.tls else None
        )
        try:
            await tunnel.open(self._address.authority, proxy)
            return await self._handed_over(transport)
        except BaseException:
            transport.abort()
            raise

    async def _handed_over(self, transport: asyncio.Transport) -> HttpConnection:
        """Returns the connection to the server inside the tunnel, with a TLS handshake if there is one."""
        _stay_alert(transport)
        connection = HttpConnection(self._limits)
        if not self._address.tls:
            transport.set_protocol(connection)
            connection.connection_made(transport)
            return connection
        secure = await asyncio.get_running_loop().start_tls(
            transport, connection, self._context(), server_hostname=self._server_name or self._address.host
        )
        if secure is None:
            raise ConnectionResetError("the connection was closed during the handshake")
        connection.connection_made(secure)
        return connection

    @property
    def _server_name(self) -> str | None:
        return (self._address.server_name or None) if self._address.tls else None


class ProxyTunnel(asyncio.Protocol):
    """The CONNECT exchange with a proxy."""

    def __init__(self) -> None:
        self._reader = ResponseParser(ResponseLimits(head=16 * 1024))
        self._answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.BaseTransport | None = None

    async def open(self, authority: str, proxy: Proxy) -> None:
        """Requests a tunnel. Raises Unreachable if the proxy refuses."""
        where = f"proxy {proxy.host}:{proxy.port}"
        cast(asyncio.Transport, self._transport).write(_connect_request(authority, proxy.secret))
        try:
            status = await self._answered
        except MalformedResponse as error:
            raise Unreachable(f"{where}: {error}") from None
        if not 200 <= status < 300:
            raise Unreachable(f"{where}: refused a tunnel to {authority}: {status}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
        except MalformedResponse as error:
            self._settle(error)
            return
        if self._reader.status >= 200:
            self._settle(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle(MalformedResponse("closed the connection without an answer"))

    def _settle(self, error: MalformedResponse | None) -> None:
        if self._answered.done():
            return
        if error is not None:
            self._answered.set_exception(error)
            self._answered.exception()  # marks it as read: the caller may have been cancelled
        else:
            self._answered.set_result(self._reader.status)


def _connect_request(authority: str, secret: str) -> bytes:
    request = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n"
    if secret:
        request += f"Proxy-Authorization: Basic {base64.b64encode(secret.encode()).decode()}\r\n"
    return request.encode() + b"\r\n"


def _stay_alert(transport: asyncio.BaseTransport) -> None:
    sock = transport.get_extra_info("socket")
    with contextlib.suppress(OSError):  # a socket just closed, or one that is not TCP
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _in_words(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "the host's name cannot be resolved"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return error.strerror or str(error) or type(error).__name__
