"""The proxy between schedulers and the API server: passes on, and does what the plan says to what it passes on.

    proxy.start()
    door = proxy.open("r0.1")     # a port of its own for each process, so that we know who speaks
    ...
    proxy.calm()                  # from now on it only passes on
    proxy.close()

It runs in a thread of its own; everybody else may call the methods of `Proxy`.
"""

import asyncio
import contextlib
import ssl
import threading
import urllib.parse
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from kubenexus.base.clock import WallClock
from tests.chaos import http_messages
from tests.chaos.faults import Plan
from tests.chaos.proxied_connection import ProxiedConnection
from tests.chaos.request_log import Asked, RequestLog
from tests.chaos.watch_log import WatchLog

LOOPBACK = "127.0.0.1"
BEAT = 0.02  # seconds
Result = TypeVar("Result")
Strike = Callable[[Asked], None]


class Proxy:
    """`journal` has what was seen. `trust` is None where the server speaks plain HTTP."""

    def __init__(self, server: str, trust: ssl.SSLContext | None, plan: Plan) -> None:
        self.journal, self.plan, self.clock = RequestLog(), plan, WallClock()
        self.calmed = asyncio.Event()
        self._host, self._trust = urllib.parse.urlsplit(server), trust
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._servers: list[asyncio.Server] = []
        self._passages: set[asyncio.Task[None]] = set()
        self._strikes: list[tuple[str, int, Strike]] = []
        self._counts = Counter[str]()  # binds and evictions
        self._deafened = ""
        self._broken: dict[str, str] = {}
        self.watches: dict[WatchLog, Asked] = {}  # those that are open

    # --- for everybody --------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._loop.set_exception_handler(_unexpected)
        self._thread.start()
        self._loop.call_soon_threadsafe(self._beat)

    def open(self, who: str) -> int:
        """A port for the process `who`."""
        return self._do(self._open(who))

    def calm(self) -> None:
        """No fault begins any more, and what was frozen goes on."""
        self._loop.call_soon_threadsafe(self.calmed.set)

    def strike(self, count: int, what: Strike, sort: str = "bind") -> None:
        """Call `what` when so many more binds have been asked for (evictions, with the sort `evict`), before the last
        one is passed on. It must be quick."""
        self._strikes.append((sort, self._counts[sort] + count, what))

    def deafen(self, who: str) -> None:
        """No renewal of this process comes through any more; "" ends it."""
        self._deafened = who

    def break_kind(self, path: str, how: str) -> None:
        """Whatever begins with this path cannot be read any more, even when all else is calm: a code such as 500,
        `hang` for no answer at all, `garbage` for one that is not JSON. Watches that are open end."""
        self._broken = {**self._broken, path: how}
        self._loop.call_soon_threadsafe(self._end_watches, path)

    def broken(self, asked: Asked) -> str:
        """How a request fails because its kind is broken, "" if it is not."""
        if asked.method != "GET":
            return ""
        return next((how for path, how in self._broken.items() if asked.path.startswith(path)), "")

    def _end_watches(self, path: str) -> None:
        for watching, asked in self.watches.items():
            if asked.path.startswith(path):
                watching.end()

    def hold_back(self, leader: str) -> None:
        """Whoever does not lead hears nothing more of pods on the watches that it has: a standby that is behind."""
        for watching, asked in self.watches.items():
            if asked.sort == "watch pods" and asked.who != leader:
                watching.held = True
                self.journal.struck["watch-freeze"] += 1

    @property
    def binds(self) -> int:
        """How many binds were asked for so far."""
        return self._counts["bind"]

    @property
    def evictions(self) -> int:
        """How many evictions were asked for so far."""
        return self._counts["evict"]

    @property
    def leader(self) -> str:
        """The process that was last told that the lease is its own; "" if it gave it up."""
        for asked in reversed(self.journal.requests):
            if asked.sort == "lease" and asked.method != "GET" and 0 < asked.code < 300:
                return asked.who if asked.holder else ""
        return ""

    def close(self) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # --- for a passage --------------------------------------------------------------------------------------------

    def asked(self, who: str, request: http_messages.Request) -> Asked:
        """A request has come: it is written down, and whoever waits for it acts."""
        method, path = request.line
        asked = self.journal.ask(who, method, path, request.body, self.clock.now())
        if asked.sort in ("bind", "evict"):
            self._counts[asked.sort] += 1
            due = [each for each in self._strikes if each[0] == asked.sort and each[1] <= self._counts[asked.sort]]
            self._strikes = [each for each in self._strikes if each not in due]
            for _, _, what in due:
                what(asked)
        return asked

    def is_deaf_to(self, asked: Asked) -> bool:
        return asked.sort == "lease" and asked.who == self._deafened

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To the API server. Raises OSError while it is away."""
        host = self._host
        return await asyncio.open_connection(host.hostname, host.port, ssl=self._trust, limit=http_messages.LIMIT)

    # --- within ---------------------------------------------------------------------------------------------------

    async def _open(self, who: str) -> int:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._passages.add(task)
            with contextlib.suppress(asyncio.CancelledError):  # the end of all: nobody else waits for it
                await ProxiedConnection(self, who, reader, writer).run()
            self._passages.discard(task)

        server = await asyncio.start_server(serve, LOOPBACK, 0, limit=http_messages.LIMIT)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        passages = list(self._passages)
        for task in passages:
            task.cancel()
        await asyncio.gather(*passages, return_exceptions=True)

    def _beat(self) -> None:
        self.journal.beats.append(self.clock.now())
        self._loop.call_later(BEAT, self._beat)

    def _do(self, what: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(10)


def _unexpected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """uvloop complains when a connection that we have hung up had something left to say; all else is a mistake."""
    if "the handler is closed" not in str(context.get("exception")):
        loop.default_exception_handler(context)
