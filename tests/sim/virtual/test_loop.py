"""Virtual time: asyncio as it is, without the waiting."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.base.clock import WallClock
from kubenexus.sim.virtual.loop import START, DeadlockError, LoopClock, run
from tests.sim.virtual.virtual_time import elapse

WEEK = 7 * 24 * 3600.0


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_week_takes_no_time() -> None:
    async def scenario() -> tuple[float, float]:
        clock = LoopClock(asyncio.get_running_loop())
        began = clock.now()
        await elapse(WEEK)
        return began, clock.now()

    stopwatch = WallClock()
    real = stopwatch.now()
    assert run(scenario()) == (START, START + WEEK)
    assert stopwatch.now() - real < 60


def test_a_timeout_ends_at_its_time_and_not_later() -> None:
    async def scenario() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.5):
                await elapse(WEEK)
        return now()

    assert run(scenario()) == pytest.approx(2.5)


def test_what_is_done_in_time_is_not_interrupted() -> None:
    async def scenario() -> tuple[str, float]:
        async with asyncio.timeout(10):
            await elapse(9)
        async with asyncio.timeout(5):
            return await elapse(3, "done"), now()

    assert run(scenario()) == ("done", 12.0)


def test_one_that_fails_ends_the_group_at_once() -> None:
    ended: list[float] = []

    async def patient() -> None:
        try:
            await elapse(WEEK)
        finally:
            ended.append(now())

    async def fails() -> None:
        await elapse(1)
        raise ValueError("bad")

    async def scenario() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(patient())
            tasks.create_task(fails())

    with pytest.raises(ExceptionGroup):
        run(scenario())
    assert ended == [1.0]


@given(st.lists(st.sampled_from([0.0, 0.001, 0.002, 1.0, 1.5]), min_size=2, max_size=40))
def test_timers_run_by_time_and_then_in_the_order_they_were_set(delays: list[float]) -> None:
    ran: list[int] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        for number, delay in enumerate(delays):
            loop.call_later(delay, ran.append, number)
        await elapse(2)

    run(scenario())
    assert ran == sorted(range(len(delays)), key=lambda number: (delays[number], number))


def test_a_timer_that_was_cancelled_moves_nobody() -> None:
    async def scenario() -> float:
        asyncio.get_running_loop().call_later(5, print).cancel()
        await elapse(0.5)
        return now()

    assert run(scenario()) == 0.5


def test_many_share_few_slots_in_turn() -> None:
    async def scenario() -> float:
        slots = asyncio.Semaphore(4)

        async def work() -> None:
            async with slots:
                await elapse(1)

        await asyncio.gather(*(work() for _ in range(10)))
        return now()

    assert run(scenario()) == 3.0


def test_a_wait_for_nothing_is_told() -> None:
    async def scenario() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match="nothing is planned"):
        run(scenario())


def test_there_are_no_threads() -> None:
    async def scenario() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(RuntimeError, match="no threads in virtual time"):
        run(scenario())
