"""Connections that are kept: used again, bounded in number, closed when old, and never trusted with a write twice."""

import asyncio

import pytest

from kubenexus.client.calls import Call, Uncertain, Unreachable
from tests.async_helpers import wait_until, yield_to_loop
from tests.client.server import Talk, answering, both_loops, calling, http, run

GET = Call("GET", "/x")
POST = Call("POST", "/x", b"{}")


async def one_each(talk: Talk) -> None:
    """Answers once and hangs up without having said so: what a server does with a connection that grew old."""
    await talk.request()
    await talk.say(http())
    if talk.number == 0:
        await talk.request()  # the second call is read, and never answered


@both_loops
def test_a_read_on_a_connection_that_proves_dead_is_sent_again(run) -> None:
    async def main() -> None:
        async with calling(one_each) as (client, served):
            await client.send(GET)
            assert await client.send(GET) == b"{}"
            assert len(served.requests) == 3

    run(main())


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_write_on_a_connection_that_proves_dead_is_uncertain(method: str) -> None:
    async def main() -> None:
        async with calling(one_each) as (client, served):
            await client.send(POST)
            with pytest.raises(Uncertain):
                await client.send(Call(method, "/x", b"{}"))
            assert len(served.requests) == 2, "sent once"

    run(main())


def test_a_read_that_is_never_answered_is_not_sent_for_ever() -> None:
    async def hangs_up(talk: Talk) -> None:
        await talk.request()

    async def main() -> None:
        async with calling(hangs_up) as (client, served):
            with pytest.raises(Uncertain):
                await client.send(GET)
            assert len(served.requests) == 1

    run(main())


def test_a_connection_found_closed_before_the_call_is_simply_replaced() -> None:
    async def main() -> None:
        async with calling(answering(http(), then=None)) as (client, served):
            await client.send(POST)
            served.talks[0].writer.close()
            await wait_until(lambda: not client._pool._idle[0].open)
            with pytest.raises(Uncertain):  # the second has no answer; what matters is that it got there
                await client.send(POST)
            assert len(served.talks) == 2

    run(main())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(http(Connection="close"), id="the server wants it closed"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", id="an older protocol"),
        pytest.param(http() + b"HTTP/1.1 200 OK\r\n", id="more than was asked for"),
    ],
)
def test_not_every_connection_may_be_used_again(answer: bytes) -> None:
    async def main() -> None:
        async with calling(answering(then=answer)) as (client, served):
            assert await client.send(GET) == b"{}"
            assert await client.send(GET) == b"{}"
            assert len(served.talks) == 2

    run(main())


@pytest.mark.parametrize("most", [1, 3])
@both_loops
def test_no_more_connections_than_allowed_and_none_overtaken(run, most: int) -> None:
    async def slow(talk: Talk) -> None:
        while await talk.request():
            await yield_to_loop()
            await talk.say(http())

    async def main() -> None:
        async with calling(slow, connections=most) as (client, served):
            await asyncio.gather(*(client.send(Call("GET", f"/{i}")) for i in range(20)))
            assert len(served.talks) == most
            order = [int(request.path[1:]) for request in served.requests]
            # Those under way at the same time may arrive in any order.
            assert all(abs(place - number) < most for place, number in enumerate(order))

    run(main())


def test_who_gives_up_waiting_does_not_take_a_connection_along() -> None:
    async def silent_first(talk: Talk) -> None:
        while request := await talk.request():
            if request.path != "/slow":
                await talk.say(http())

    async def main() -> None:
        async with calling(silent_first, connections=1) as (client, served):
            slow = asyncio.ensure_future(client.send(Call("GET", "/slow")))
            await wait_until(lambda: served.requests)
            with pytest.raises(Unreachable, match="not sent"):
                await client.send(POST, timeout=0.005)
            impatient = asyncio.ensure_future(client.send(POST))
            patient = asyncio.ensure_future(client.send(GET))
            await yield_to_loop()
            impatient.cancel()
            slow.cancel()
            assert await patient == b"{}"
            assert client._pool.count == 1

    run(main())


def test_a_call_that_is_cancelled_takes_its_connection_with_it() -> None:
    cancelled = asyncio.Event()

    async def late(talk: Talk) -> None:
        request = await talk.request()
        await cancelled.wait()
        await talk.say(http(request.path.encode() if request else b""))

    async def main() -> None:
        async with calling(late) as (client, served):
            first = asyncio.ensure_future(client.send(Call("GET", "/first")))
            await wait_until(lambda: served.requests)
            first.cancel()
            cancelled.set()
            assert await client.send(Call("GET", "/second")) == b"/second", "never the answer to another call"
            assert len(served.talks) == 2

    run(main())


def test_a_connection_nobody_uses_is_closed() -> None:
    async def main() -> None:
        async with calling(answering(then=http()), idle=0.005) as (client, served):
            await asyncio.gather(*(client.send(GET) for _ in range(4)))
            assert client._pool.count == 4
            await wait_until(lambda: not client._pool.count)
            await client.send(GET)
            assert len(served.talks) == 5

    run(main())


def test_a_failed_connection_makes_room_for_the_next() -> None:
    async def main() -> None:
        async with calling(answering(then=http()), connections=1) as (client, _served):
            real, client._pool._dial = client._pool._dial, _refused
            results = await asyncio.gather(*(client.send(GET) for _ in range(3)), return_exceptions=True)
            assert [type(each) for each in results] == [Unreachable] * 3
            client._pool._dial = real
            assert await client.send(GET) == b"{}"

    run(main())


async def _refused():
    await asyncio.sleep(0)
    raise Unreachable("connection refused")
