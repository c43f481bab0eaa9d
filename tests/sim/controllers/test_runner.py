"""The loop around the controllers ends when it is cancelled, also if it is woken at that moment."""

import asyncio
import contextlib
from typing import Any

import pytest

from kubenexus.base.clock import VirtualClock
from kubenexus.sim.controllers.runner import _run
from tests.async_helpers import HANGS


class NothingToDo:
    """Controllers that are idle, and count how often they ran."""

    idle = True
    runs = 0

    def run(self) -> None:
        self.runs += 1

    def next_due(self) -> None:
        return None


@pytest.mark.parametrize("turns", range(6), ids=lambda turns: f"{turns} turns of the loop before it is cancelled")
def test_it_ends_although_it_is_woken_at_the_same_moment(turns: int) -> None:
    async def life() -> None:
        controllers: Any = NothingToDo()
        wake = asyncio.Event()
        task = asyncio.create_task(_run(controllers, VirtualClock(), wake))
        while not controllers.runs:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        wake.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=HANGS)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert done, "the cancellation was lost"

    asyncio.run(life())
