"""`ApiClient`: sends calls to one API server, with credentials, at a bounded rate and in bounded time."""

import asyncio
import contextlib
import platform
import re
import ssl
from typing import Final

from kubenexus import __version__
from kubenexus.base.clock import Clock, Sleep
from kubenexus.client.calls import ApiError, Call, NoConnection, Uncertain, Unreachable
from kubenexus.client.client_config import ClientConfig
from kubenexus.client.credentials import ClientConfigError
from kubenexus.client.dial import Dialer
from kubenexus.client.fair_slots import FairSlots
from kubenexus.client.http_connection import ConnectionLost, HttpConnection, ResponseStream
from kubenexus.client.http_response import HttpResponse, ResponseLimits
from kubenexus.client.pool import IDLE, ConnectionPool
from kubenexus.client.rate_limiter import RateLimiter
from kubenexus.client.status import READS, response_body

USER_AGENT: Final = f"kubenexus/{__version__} ({platform.system().lower()}/{platform.machine()})"
_PATH: Final = re.compile(r"/[!-~]*")
CONNECTIONS = 128  # calls in flight: more than all callers have together, so that calls rarely wait here
_KNOWN = 1.0  # seconds for which an answer shows that the server accepts the credentials
_DIAL_SHARE: Final = 0.5  # of its timeout, that a call needs for a dial to show that the server is away
_STALE = 3  # kept connections in a row that may be dead before the call fails


class CallProgress:
    """How far a call has come. Decides whether a timeout is NoConnection, Unreachable, Uncertain or a 429.

    Its time is measured by the event loop, which wakes the task, and by the clock. The event loop's time stops while
    the machine is suspended, and a write that began before must not be sent afterwards.

    `in_line`: the call waits for a slot, waited for most of its time, or has a connection. If its time ends then, that
    does not show that the server is away."""

    __slots__ = ("_clock", "_until", "deadline", "in_line", "refusal", "sent", "timeout")

    def __init__(self, timeout: float, clock: Clock) -> None:
        self.timeout, self.deadline = timeout, asyncio.get_running_loop().time() + timeout
        self.sent = self.in_line = False
        self.refusal: ApiError | None = None  # the 429 after which the call is to be sent again
        self._clock, self._until = clock, clock.now() + timeout

    def left(self) -> float:
        return min(self.deadline - asyncio.get_running_loop().time(), self._until - self._clock.now())


class ApiClient:
    """An `Api` over HTTP/1.1, for one event loop. Repeats no write that may have happened. The lease has a client of
    its own, so that no burst of binds delays it.

    Namespaces share the `connections` calls that may be in flight. Those whose calls hang (a tenant's admission
    webhook) leave half of them to the others. The rate limit comes after that, so no more calls than these wait for it,
    and namespaces share it, too."""

    def __init__(
        self,
        access: ClientConfig,
        clock: Clock,
        *,
        rate_limiter: RateLimiter | None = None,
        limits: ResponseLimits | None = None,
        connections: int = CONNECTIONS,
        idle: float = IDLE,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.access = access
        self._sleep = sleep
        self._clock = clock
        self._credentials = access.credentials
        self._rate_limiter = rate_limiter or RateLimiter(clock)
        self._dial = Dialer(access.address, self._context, limits or ResponseLimits())
        # Callers begin with few calls for each namespace. To do the same here would delay binds once more.
        self._slots = FairSlots(connections, first=connections, trials=False, delay=lambda: self._rate_limiter.delay)
        self._pool = ConnectionPool(self._dial, size=2 * connections, idle=idle)
        self._streams: set[ResponseStream] = set()
        self._fields = _common_fields(access)
        self._closed = False
        # Since when the server has refused the credentials (401); None while it accepts them. For readiness.
        self.unauthorized_since: float | None = None
        self._known_at = float("-inf")
        self._answered_at = clock.now()

    @property
    def unanswered_seconds(self) -> float:
        """Seconds since the API server last answered, or since the start. A 5xx does not count: a load balancer answers
        so for a server that is away. Nor do the lines of a watch: a server that stands still leaves it open. For
        readiness."""
        return self._clock.now() - self._answered_at

    @property
    def delay(self) -> float:
        """Seconds for which the rate limit holds back a call that is sent now."""
        return self._rate_limiter.delay

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        """See `Api`. A GET is repeated on a new connection if a kept one is dead; a write never is."""
        attempt = CallProgress(timeout, self._clock)
        try:
            async with asyncio.timeout_at(attempt.deadline):
                return await self._sent(call, attempt)
        except TimeoutError:
            raise _given_up(call, attempt, f"no answer within {timeout:g} s") from None

    async def stream(self, path: str, *, timeout: float = 30.0) -> ResponseStream:
        """Sends a GET whose answer is lines without end. `timeout` is for its head; the caller must `close` the stream.

        Raises as `send` does. The stream has a connection of its own, outside the pool's bound.
        """
        call, attempt = Call("GET", path), CallProgress(timeout, self._clock)
        try:
            async with asyncio.timeout_at(attempt.deadline):
                return await self._begun(call, attempt)
        except TimeoutError:
            raise _given_up(call, attempt, f"no answer within {timeout:g} s") from None

    async def close(self) -> None:
        """Closes all connections. Calls under way fail; later calls are Unreachable."""
        self._closed = True
        self._pool.close()
        for stream in list(self._streams):
            stream.close()
        self._streams.clear()
        await asyncio.sleep(0)  # so that the event loop closes the transports

    # One call, sent again after a 429 or a 401.

    async def _sent(self, call: Call, attempt: CallProgress) -> bytes:
        known = True
        while True:
            authorization = await self._authorization(call, attempt)
            answer = await self._answered(call, authorization, attempt)
            self._heard(answer)
            if answer.status != 401:
                self._note(known=True)
            elif await self._confirmed(call, authorization, attempt):
                if known and await self._somebody_else(authorization):
                    known = False
                    continue
                self._note(known=False)
            try:
                return response_body(call, answer)
            except ApiError as error:
                await self._patience(error, attempt)

    async def _begun(self, call: Call, attempt: CallProgress) -> ResponseStream:
        known = True
        while True:
            authorization = await self._authorization(call, attempt)
            await self._token(call, attempt)
            answer = await self._followed(self._request(call, authorization), attempt)
            self._heard(answer)
            unknown = isinstance(answer, HttpResponse) and answer.status == 401
            if unknown and known and await self._somebody_else(authorization):
                known = False
                continue
            self._note(known=not unknown)
            if isinstance(answer, ResponseStream):
                return answer
            try:
                response_body(call, answer)
                raise Uncertain(f"{call}: the answer is not a stream")
            except ApiError as error:
                await self._patience(error, attempt)

    async def _authorization(self, call: Call, attempt: CallProgress) -> str:
        """Returns the `Authorization` field. Nothing has been sent, or the server refused it."""
        attempt.sent = False
        if self._closed:
            raise Unreachable(f"{call}: the client is closed")
        authorization = self._credentials.current()
        if authorization is None:
            await self._fetch()
            authorization = self._credentials.current() or ""
        return authorization

    async def _token(self, call: Call, attempt: CallProgress) -> None:
        if not self._rate_limiter.try_acquire() and not await self._rate_limiter.acquire(attempt.left()):
            raise NoConnection(f"{call}: not sent, the rate limit leaves no room in time")

    async def _fetch(self) -> None:
        try:
            await self._credentials.fetch()
        except ClientConfigError as error:
            raise Unreachable(str(error)) from None

    async def _somebody_else(self, authorization: str) -> bool:
        with contextlib.suppress(ClientConfigError):
            if await self._credentials.refused(authorization):
                self._pool.discard()  # a client certificate belongs to its connection
                return True
        return False

    async def _confirmed(self, call: Call, authorization: str, attempt: CallProgress) -> bool:
        """Whether a 401 is the server's. For an object of a namespace it may come from an admission webhook, and a
        tenant's webhook must not have the credentials changed, nor end the process. A path that passes no webhook
        shows it, unless an answer of the last second did."""
        if not call.namespace:
            return True
        if self._clock.now() < self._known_at + _KNOWN:
            return False
        asked = Call("GET", "/version")
        await self._token(asked, attempt)
        answer = await self._exchanged(asked, self._request(asked, authorization), attempt)
        if answer.status != 401:
            self._note(known=True)
        return answer.status == 401

    def _heard(self, answer: HttpResponse | ResponseStream) -> None:
        if isinstance(answer, ResponseStream) or answer.status < 500:
            self._answered_at = self._clock.now()

    def _note(self, *, known: bool) -> None:
        now = self._clock.now()
        if known:
            self.unauthorized_since, self._known_at = None, now
        elif self.unauthorized_since is None:
            self.unauthorized_since = now

    async def _patience(self, error: ApiError, attempt: CallProgress) -> None:
        """Waits for the `Retry-After` of a 429. Raises any other error, or if that is longer than the time left."""
        if error.code != 429 or error.retry_after is None or error.retry_after >= attempt.left():
            raise error
        attempt.sent, attempt.refusal = False, error  # refused before it had any effect
        await self._sleep(error.retry_after)

    # One exchange.

    async def _answered(self, call: Call, authorization: str, attempt: CallProgress) -> HttpResponse:
        attempt.in_line = True
        slot, answer = await self._slots.acquire(call.namespace), None
        try:
            await self._token(call, attempt)
            # A server that is away is noticed by calls that had time to dial.
            attempt.in_line = attempt.left() < attempt.timeout * _DIAL_SHARE
            answer = await self._exchanged(call, self._request(call, authorization), attempt)
            return answer
        finally:
            self._slots.release(slot, answered=answer is not None)

    async def _exchanged(self, call: Call, request: bytes, attempt: CallProgress) -> HttpResponse:
        for trial in range(_STALE):
            connection = await self._pool.acquire(fresh=trial > 0)
            kept = connection.used
            try:
                if attempt.left() <= 0:
                    attempt.in_line = True
                    raise TimeoutError  # the process was stopped for a while, and may no longer be the leader
                attempt.sent = True
                return await connection.request(request)
            except ConnectionLost as lost:
                if not (kept and lost.silent and call.method in READS):
                    raise Uncertain(f"{call}: {lost}") from None
            except Uncertain as error:
                raise Uncertain(f"{call}: {error}") from None
            finally:
                self._pool.release(connection)
            attempt.sent = False
        raise Uncertain(f"{call}: connection after connection was closed without an answer")

    async def _followed(self, request: bytes, attempt: CallProgress) -> HttpResponse | ResponseStream:
        connection: HttpConnection = await self._dial()
        answer: HttpResponse | ResponseStream | None = None
        try:
            attempt.sent = True
            answer = await connection.stream(request)
        finally:
            if not isinstance(answer, ResponseStream):
                connection.abort()
        if isinstance(answer, ResponseStream):
            self._streams = {each for each in self._streams if not each.ended} | {answer}
        return answer

    def _request(self, call: Call, authorization: str) -> bytes:
        path = self.access.address.prefix + call.path
        if _PATH.fullmatch(path) is None:
            raise ValueError(f"not a path that can be asked for: {path!r}")  # a bug: names are quoted in `kinds`
        head = f"{call.method} {path} HTTP/1.1\r\n{self._fields}"
        if authorization:
            head += f"Authorization: {authorization}\r\n"
        if call.body or call.method not in READS:
            head += f"Content-Type: {call.content_type}\r\nContent-Length: {len(call.body)}\r\n"
        return head.encode("latin-1") + b"\r\n" + call.body

    def _context(self) -> ssl.SSLContext:
        return self.access.trust.context(self._credentials.certificate())


def _common_fields(access: ClientConfig) -> str:
    fields = [("Host", access.address.authority), ("User-Agent", USER_AGENT), ("Accept", "application/json")]
    return "".join(f"{name}: {value}\r\n" for name, value in [*fields, *access.headers])


def _given_up(call: Call, attempt: CallProgress, why: str) -> Uncertain | Unreachable | ApiError:
    """The error of a call whose time is over. A call that waits after a 429 ends with that: the server was reached, and
    Unreachable would stop the decisions for all tenants."""
    if attempt.sent:
        return Uncertain(f"{call}: {why}")
    if attempt.refusal is not None:
        return attempt.refusal
    return NoConnection(f"{call}: not sent, {why}") if attempt.in_line else Unreachable(f"{call}: not sent, {why}")
