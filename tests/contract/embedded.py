"""The embedded server on a port of its own, in a thread of its own."""

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable, Iterator

from kubenexus.base.clock import WallClock
from kubenexus.sim.apiserver.listening import listen
from kubenexus.sim.apiserver.server import ApiServer
from tests.contract.http import Http

Alter = Callable[[ApiServer], None]


@contextlib.contextmanager
def embedded(alter: Alter = lambda _: None, **options: object) -> Iterator[str]:
    """Its address. `alter` may change the server before it listens: mutants are made so."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    options.setdefault("housekeeping", False)  # as a real server without its controllers
    server = ApiServer(WallClock(), random.Random(7), **options)  # type: ignore[arg-type]
    alter(server)
    listener = asyncio.run_coroutine_threadsafe(listen(server, "127.0.0.1", 0), loop).result(10)
    try:
        yield f"http://127.0.0.1:{listener.port}"
    finally:
        asyncio.run_coroutine_threadsafe(listener.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@contextlib.contextmanager
def client(alter: Alter = lambda _: None, **options: object) -> Iterator[Http]:
    with embedded(alter, **options) as server:
        http = Http(server)
        yield http
        http.close()
