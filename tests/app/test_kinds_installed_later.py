"""A kind of our own that is installed while the scheduler runs is found soon; others cost a call a minute at most."""

import asyncio
import random

import pytest

from kubenexus.app.wakeup import Wakeup
from kubenexus.app.watch.watches import Watches
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Call
from kubenexus.client.kinds import ApiResource
from kubenexus.sim.virtual.loop import LoopClock, run
from tests.app.scheduler_fixture import SchedulerFixture
from tests.sim.virtual.virtual_time import elapse

INSTALLED_AT = 1000.0


class LateServer:
    """An API server that serves no optional kind before a time."""

    def __init__(self) -> None:
        self.calls = 0

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        self.calls += 1
        if asyncio.get_running_loop().time() < INSTALLED_AT:
            raise ApiError(404)
        return b'{"metadata": {"resourceVersion": "5"}, "items": []}'

    async def stream(self, path: str, *, timeout: float = 10.0) -> "LateServer":
        return self

    async def batch(self, most: int = 0) -> list[bytes]:
        await elapse(3600.0)
        return []

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("kind", "seconds", "calls"),
    [
        pytest.param(kinds.QUEUES, 10.0, 210, id="queues within ten seconds"),
        pytest.param(kinds.RESOURCE_RESERVATIONS, 10.0, 210, id="reservations, too"),
        pytest.param(kinds.RESOURCE_SLICES, 60.0, 140, id="kinds of others within a minute"),
    ],
)
def test_a_kind_that_is_installed_later_is_found(kind: ApiResource, seconds: float, calls: int) -> None:
    async def found() -> tuple[float, int]:
        server, loop = LateServer(), asyncio.get_running_loop()
        watches = Watches(server, LoopClock(loop, 0.0), random.Random(3), Wakeup())
        watches.add(kind, SchedulerFixture().handlers)
        task = loop.create_task(watches.run())
        await elapse(INSTALLED_AT - 0.5)
        before = server.calls
        while not watches.serves(kind):
            await elapse(0.5)
        task.cancel()
        return loop.time() - INSTALLED_AT, before

    late, before = run(found())
    assert late <= seconds + 1.0
    assert before <= calls, "at little cost"
