"""`ConnectionPool`: connections that are kept open. A handshake costs more than a hundred calls.

The pool has at most `size` connections. The client bounds calls in flight, so that a burst of binds does not become a
burst of handshakes. The connection used last is used first. The others grow old, and the pool closes them before the
server does: a call on a connection that is just being closed may or may not have happened.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from kubenexus.client.calls import Unreachable
from kubenexus.client.http_connection import HttpConnection

SIZE = 128  # twice as many as are used while all calls are answered in time (`client.fair_queue`)
IDLE = 60.0  # seconds; the API server closes after 90


class ConnectionPool:
    """The client acquires a connection for each call and releases it, also after a call that failed."""

    def __init__(self, dial: Callable[[], Awaitable[HttpConnection]], *, size: int = SIZE, idle: float = IDLE) -> None:
        self._dial = dial
        self._size = size
        self._idle_limit = idle
        self._idle: list[HttpConnection] = []
        self._count = 0  # idle, in use or being opened
        self._waiters: deque[asyncio.Future[HttpConnection | None]] = deque()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def count(self) -> int:
        """How many connections are open or being opened."""
        return self._count

    async def acquire(self, *, fresh: bool = False) -> HttpConnection:
        """Returns a connection for one caller, first come, first served. `fresh`: a new one, after a stale one."""
        if fresh:
            self.discard()
        while not self._closed:
            connection = self._kept()
            if connection is None and self._count >= self._size:
                connection = await self._turn()
            if connection is None and self._count < self._size:
                return await self._opened()
            if connection is not None:
                return connection
        raise Unreachable("the client is closed")

    def release(self, connection: HttpConnection) -> None:
        """Takes a connection back after a call. If its answer is still to come, the connection is closed."""
        if connection.busy or self._closed:
            connection.abort()
        if not connection.open:
            self._count -= 1
            self._pass_on(None)
        elif not self._pass_on(connection):
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
            self._watch_age()

    def discard(self) -> None:
        """Closes idle connections: the server or the credentials have changed."""
        for connection in self._idle:
            connection.abort()
        self._count -= len(self._idle)
        self._idle.clear()

    def close(self) -> None:
        """Closes the pool. Connections in use are closed when they are released."""
        self._closed = True
        self.discard()
        if self._sweeper is not None:
            self._sweeper.cancel()
        while self._waiters:
            self._pass_on(None)

    def _kept(self) -> HttpConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
            self._count -= 1
        return None

    async def _opened(self) -> HttpConnection:
        self._count += 1
        try:
            return await self._dial()
        except BaseException:
            self._count -= 1
            self._pass_on(None)
            raise

    async def _turn(self) -> HttpConnection | None:
        waiter: asyncio.Future[HttpConnection | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            return await waiter
        except BaseException:
            self._leave(waiter)
            raise

    def _leave(self, waiter: "asyncio.Future[HttpConnection | None]") -> None:
        """Removes a waiter that was cancelled. A connection that it got meanwhile goes to the next."""
        if waiter.cancelled() or not waiter.done():
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            return
        handed = waiter.result()
        if handed is not None:
            self.release(handed)
        else:
            self._pass_on(None)

    def _pass_on(self, connection: HttpConnection | None) -> bool:
        """Gives a connection to the oldest waiter; None means that a new one may be opened."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return True
        return False

    def _watch_age(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(self._idle_limit, self._sweep)

    def _sweep(self) -> None:
        """Closes connections that have been idle for too long."""
        self._sweeper = None
        oldest = asyncio.get_running_loop().time() - self._idle_limit
        kept = [each for each in self._idle if each.open and each.idle_since > oldest]
        for connection in set(self._idle).difference(kept):
            connection.abort()
        self._count -= len(self._idle) - len(kept)
        self._idle = kept
        if kept:
            self._watch_age()
