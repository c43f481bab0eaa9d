"""Runs the controllers beside a listening server, after each change and when something is due."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from kubenexus.base.clock import Clock
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.controllers.manager import ControllerManager

MAX_WAIT = 60.0  # seconds; then the clock is read again, which may differ from the loop's


@contextlib.asynccontextmanager
async def running(server: ApiServer, clock: Clock, *, token: str = "") -> AsyncIterator[ControllerManager]:
    """Runs the controllers within the `with`, in the server's event loop."""
    wake = asyncio.Event()
    wake.set()
    controllers = ControllerManager(server, clock, wake=wake.set, token=token)
    task = asyncio.create_task(_run(controllers, clock, wake))
    try:
        yield controllers
    finally:
        controllers.close()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _run(controllers: ControllerManager, clock: Clock, wake: asyncio.Event) -> None:
    while True:
        wake.clear()
        controllers.run()
        if not controllers.idle:
            await asyncio.sleep(0)
            continue
        due = controllers.next_due()
        wait = MAX_WAIT if due is None else min(max(due - clock.now(), 0.0), MAX_WAIT)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await wake.wait()
