"""Calls of one namespace that hang leave connections to the others."""

import asyncio
from typing import Any

import pytest

from kubenexus.base.clock import Sleep, VirtualClock
from kubenexus.client.calls import ApiError, Call, NoConnection, Uncertain, Unreachable
from kubenexus.client.client_config import ClientConfig
from kubenexus.client.credentials import StaticCredentials
from kubenexus.client.dial import ServerAddress
from kubenexus.client.fair_queue import LATE_SECONDS
from kubenexus.client.fair_slots import FairSlots
from kubenexus.client.http_response import HttpResponse
from kubenexus.client.pool import ConnectionPool
from kubenexus.client.rate_limiter import RateLimiter
from kubenexus.client.tls import TlsContextFactory
from kubenexus.client.transport import ApiClient
from kubenexus.sim.virtual.loop import run
from tests.sim.virtual.virtual_time import elapse

TIMEOUT = 5.0
SLOTS = 8
EVIL = Call("POST", "/api/v1/namespaces/evil/pods/web/binding", b"{}")
GOOD = Call("POST", "/api/v1/namespaces/good/pods/web/binding", b"{}")


class Line:
    """A connection on which calls about the namespace "evil" are never answered."""

    used, idle_since, open, busy = True, 0.0, True, False

    async def request(self, request: bytes) -> HttpResponse:
        if b"/evil/" in request:
            self.busy = True
            await asyncio.Event().wait()
        return HttpResponse(201, {}, b"{}")

    def abort(self) -> None:
        self.open = False


class Refusing(Line):
    """A connection on which all calls are answered with a 429 that asks for a second."""

    async def request(self, request: bytes) -> HttpResponse:
        return HttpResponse(429, {b"retry-after": b"1"}, b'{"kind":"Status","code":429,"message":"later"}')


def a_client(line: type[Line] = Line, sleep: Sleep = asyncio.sleep) -> ApiClient:
    access, clock = (
        ClientConfig(ServerAddress("server", 80, tls=False), TlsContextFactory(), StaticCredentials("")),
        VirtualClock(),
    )
    client = ApiClient(access, clock, rate_limiter=RateLimiter(clock, qps=-1.0), connections=SLOTS, sleep=sleep)

    async def dial() -> Any:
        return line()

    client._pool = ConnectionPool(dial, size=2 * SLOTS)
    return client


def test_calls_that_hang_leave_connections_to_other_namespaces() -> None:
    async def life() -> None:
        client, loop = a_client(), asyncio.get_running_loop()
        hanging = [asyncio.ensure_future(client.send(EVIL, timeout=TIMEOUT)) for _ in range(10 * SLOTS)]
        await elapse(0.0)
        await client.send(GOOD, timeout=TIMEOUT)
        assert loop.time() == pytest.approx(LATE_SECONDS), "until it is known that the others hang"
        for _ in range(20):
            before = loop.time()
            await asyncio.gather(*(client.send(GOOD, timeout=TIMEOUT) for _ in range(100)))
            assert loop.time() == before
            assert client._pool.count <= 2 * SLOTS
            await elapse(0.1)
        ends = await asyncio.gather(*hanging, return_exceptions=True)
        sent = SLOTS - SLOTS // 8  # all but those for namespaces that were answered, until it is known that they hang
        assert [type(each) for each in ends] == [Uncertain] * sent + [NoConnection] * (10 * SLOTS - sent)
        assert client._slots.queue.in_flight == 0

    run(life())


@pytest.mark.parametrize("in_line", [False, True], ids=["while it pauses", "while it waits for a connection again"])
def test_a_call_whose_time_ends_after_a_429_ends_with_that_429(in_line: bool) -> None:
    """A tenant's webhook may answer so. Unreachable would say that the server is away."""

    async def life() -> None:
        async def late(seconds: float) -> None:
            if in_line:
                client._slots = FairSlots(1, trials=False)
                await client._slots.acquire("other")
            else:
                await elapse(seconds + TIMEOUT)

        client = a_client(Refusing, late)
        with pytest.raises(ApiError, match="later") as caught:
            await client.send(EVIL, timeout=TIMEOUT)
        assert caught.value.code == 429
        assert asyncio.get_running_loop().time() == pytest.approx(TIMEOUT)

    run(life())


@pytest.mark.parametrize(
    ("waited", "error"),
    [
        pytest.param(0.0, Unreachable, id="it dialled all the time"),
        pytest.param(TIMEOUT - 0.01, NoConnection, id="it got its slot at the last moment"),
    ],
)
def test_a_call_that_waited_for_a_slot_until_its_deadline_says_nothing_about_the_server(
    waited: float, error: type[Unreachable]
) -> None:
    """After Unreachable the dispatcher decides nothing for a second, for all tenants."""

    async def life() -> None:
        async def dial() -> Any:
            await asyncio.Event().wait()

        client, loop = a_client(), asyncio.get_running_loop()
        client._pool = ConnectionPool(dial, size=1)
        client._slots = FairSlots(1, trials=False)
        slot = await client._slots.acquire("other")
        loop.call_later(waited, client._slots.release, slot)
        with pytest.raises(Unreachable) as caught:
            await client.send(GOOD, timeout=TIMEOUT)
        assert type(caught.value) is error
        assert loop.time() == pytest.approx(TIMEOUT)

    run(life())
