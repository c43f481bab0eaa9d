"""Calls of one namespace that hang leave connections to the others."""

import asyncio
from typing import Any

import pytest

from kubenexus.base.clock import VirtualClock
from kubenexus.client.access import Access
from kubenexus.client.answers import Answer
from kubenexus.client.calls import Call, NoConnection, Uncertain
from kubenexus.client.credentials import Fixed
from kubenexus.client.dial import Address
from kubenexus.client.fair_queue import LATE
from kubenexus.client.limits import Limiter
from kubenexus.client.pool import Pool
from kubenexus.client.tls import Trust
from kubenexus.client.transport import Client
from kubenexus.sim.virtual.loop import run
from tests.sim.virtual.passing import elapse

TIMEOUT = 5.0
SLOTS = 8
EVIL = Call("POST", "/api/v1/namespaces/evil/pods/web/binding", b"{}")
GOOD = Call("POST", "/api/v1/namespaces/good/pods/web/binding", b"{}")


class Line:
    """A connection on which calls about the namespace "evil" are never answered."""

    used, idle_since, open, busy = True, 0.0, True, False

    async def ask(self, request: bytes) -> Answer:
        if b"/evil/" in request:
            self.busy = True
            await asyncio.Event().wait()
        return Answer(201, {}, b"{}")

    def abort(self) -> None:
        self.open = False


def a_client() -> Client:
    access, clock = Access(Address("server", 80, tls=False), Trust(), Fixed("")), VirtualClock()
    client = Client(access, clock, limiter=Limiter(clock, qps=-1.0), connections=SLOTS)

    async def dial() -> Any:
        return Line()

    client._pool = Pool(dial, size=2 * SLOTS)
    return client


def test_calls_that_hang_leave_connections_to_other_namespaces() -> None:
    async def life() -> None:
        client, loop = a_client(), asyncio.get_running_loop()
        hanging = [asyncio.ensure_future(client.send(EVIL, timeout=TIMEOUT)) for _ in range(10 * SLOTS)]
        await elapse(0.0)
        await client.send(GOOD, timeout=TIMEOUT)
        assert loop.time() == pytest.approx(LATE), "until it is known that the others hang"
        for _ in range(20):
            before = loop.time()
            await asyncio.gather(*(client.send(GOOD, timeout=TIMEOUT) for _ in range(100)))
            assert loop.time() == before
            assert client._pool.count <= 2 * SLOTS
            await elapse(0.1)
        ends = await asyncio.gather(*hanging, return_exceptions=True)
        sent = SLOTS  # all connections, until it is known that they hang
        assert [type(each) for each in ends] == [Uncertain] * sent + [NoConnection] * (10 * SLOTS - sent)
        assert client._slots.queue.flights == 0

    run(life())
