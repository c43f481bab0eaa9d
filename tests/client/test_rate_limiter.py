"""How often we may call: on average, at once, in the order of asking; and what a 429 changes."""

import asyncio

import pytest

from kubenexus.base.clock import VirtualClock
from kubenexus.client.calls import ApiError, Call, Unreachable
from kubenexus.client.rate_limiter import RateLimiter
from tests.async_helpers import FakeSleep, wait_until, yield_to_loop
from tests.client.server import answering, calling, http, run, status

POST = Call("POST", "/x", b"{}")
BUSY = http(status(429, "TooManyRequests", "busy"), "429 X", Retry_After="0")


def test_a_burst_at_once_then_so_many_a_second_in_the_order_of_asking() -> None:
    async def main() -> None:
        time, done = FakeSleep(), []
        rate_limiter = RateLimiter(time.clock, qps=10, burst=3, sleep=time.sleep)

        async def call(i: int) -> None:
            assert await rate_limiter.acquire(60.0)
            done.append((i, round(time.clock.now() - 100.0, 3)))

        tasks = [asyncio.ensure_future(call(i)) for i in range(8)]
        await asyncio.sleep(0)
        await time.advance(2.0)
        await asyncio.gather(*tasks)
        assert done == [(0, 0), (1, 0), (2, 0), (3, 0.1), (4, 0.2), (5, 0.3), (6, 0.4), (7, 0.5)]

    run(main())


def test_an_idle_minute_saves_no_more_than_a_burst() -> None:
    time = FakeSleep()
    rate_limiter = RateLimiter(time.clock, qps=10, burst=3, sleep=time.sleep)
    time.clock.advance(60.0)
    assert [rate_limiter.try_acquire() for _ in range(5)] == [True, True, True, False, False]


def test_who_is_cancelled_has_taken_nothing() -> None:
    async def main() -> None:
        time = FakeSleep()
        rate_limiter = RateLimiter(time.clock, qps=1, burst=1, sleep=time.sleep)
        assert rate_limiter.try_acquire()
        waiting = [asyncio.ensure_future(rate_limiter.acquire(60.0)) for _ in range(5)]
        await asyncio.sleep(0)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await time.advance(1.0)
        assert rate_limiter.try_acquire()

    run(main())


def test_who_could_not_be_served_in_time_is_told_at_once() -> None:
    async def main() -> None:
        time = FakeSleep()
        rate_limiter = RateLimiter(time.clock, qps=1, burst=1, sleep=time.sleep)
        assert rate_limiter.try_acquire()
        assert not await rate_limiter.acquire(0.5)
        assert time.sleeping == []

    run(main())


@pytest.mark.parametrize(("qps", "sent"), [(-1.0, 50), (0.0, 2)])
def test_no_limit_and_nothing_at_all(qps: float, sent: int) -> None:
    rate_limiter = RateLimiter(VirtualClock(), qps=qps, burst=2)
    assert sum(rate_limiter.try_acquire() for _ in range(50)) == sent


def test_a_call_beyond_the_limit_was_certainly_not_sent() -> None:
    async def main() -> None:
        rate_limiter = RateLimiter(VirtualClock(), qps=0.01, burst=1)
        async with calling(answering(then=http()), rate_limiter=rate_limiter) as (client, served):
            await client.send(POST)
            with pytest.raises(Unreachable, match="the rate limit leaves no room in time"):
                await client.send(POST, timeout=1.0)
            assert len(served.requests) == 1

    run(main())


def test_a_429_is_obeyed_and_the_call_sent_again() -> None:
    async def main() -> None:
        async with calling(answering(BUSY, BUSY, http(b"done"))) as (client, served):
            assert await client.send(POST) == b"done"
            assert len(served.requests) == 3

    run(main())


def test_a_429_that_asks_for_real_time_gets_it() -> None:
    async def main() -> None:
        slow, time = http(status(429, "TooManyRequests"), "429 X", Retry_After="1"), FakeSleep()
        async with calling(answering(slow, http(b"done")), sleep=time.sleep) as (client, served):
            call = asyncio.ensure_future(client.send(POST, timeout=5.0))
            await wait_until(lambda: time.sleeping)
            await yield_to_loop()
            assert len(served.requests) == 1
            assert not call.done()
            await time.advance(1.0)
            assert await call == b"done"

    run(main())


@pytest.mark.parametrize(
    ("answer", "after"),
    [
        pytest.param(http(status(429, "TooManyRequests"), "429 X", Retry_After="30"), 30.0, id="longer than we have"),
        pytest.param(
            http(status(429, "TooManyRequests"), "429 X"), None, id="a budget that does not allow an eviction"
        ),
        pytest.param(http(status(503, "X"), "503 X", Retry_After="1"), 1.0, id="no 429, whatever it asks for"),
        pytest.param(http(status(429, "X"), "429 X", Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"), None, id="a date"),
    ],
)
def test_what_is_not_waited_for_is_told_with_the_time_it_asks_for(answer: bytes, after: float | None) -> None:
    async def main() -> None:
        async with calling(answering(answer)) as (client, _):
            with pytest.raises(ApiError) as caught:
                await client.send(POST, timeout=2.0)
            assert caught.value.retry_after == after

    run(main())
