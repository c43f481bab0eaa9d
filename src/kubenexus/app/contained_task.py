"""Runs tasks beside the loop, so that none of them ends the process: jobs are placed without them.

An API server may answer with anything, and what a tenant writes is read in many places. An unexpected
exception costs one step of one task: it is logged, and the task begins again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from kubenexus.base.clock import Sleep
from kubenexus.observe import logs

PAUSE: Final = 5.0  # seconds until a task that failed begins again

log = logs.get("tasks")


async def contained(name: str, run: Callable[[], Awaitable[object]], sleep: Sleep = asyncio.sleep) -> None:
    """Runs a task until it returns or is cancelled, again and again if it fails."""
    while True:
        try:
            await run()
        except Exception as error:
            log.error("A task failed; it begins again", error, task=name)  # noqa: PLE1205 - our own log
            await sleep(PAUSE)
        else:
            return
