"""The bench of the live API measures what it claims to."""

import asyncio
from collections import Counter
from types import SimpleNamespace

from bench.live_api import BusyScheduler, Figures, Spent, ThreadClock


def test_its_scheduler_is_never_idle_and_its_cluster_does_not_fill_up() -> None:
    async def story() -> None:
        shown = SimpleNamespace(value=0.0)
        busy = BusyScheduler(20, 40, ThreadClock(shown))
        tasks = [asyncio.create_task(each) for each in (busy.scheduler.schedule(), busy.feed())]
        before = busy.spent()
        async with asyncio.timeout(60):
            while busy.spent().since(before).decisions < 300:
                await asyncio.sleep(0)  # a turn of the scheduler
        assert not any(each.done() for each in tasks)
        assert shown.value > before.seconds
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(story())


def test_the_figure_is_the_median_of_neighbouring_phases() -> None:
    alone = Spent(1_000, 1.0, 0, 0)
    phases = [(Spent(decisions, 1.0, 0, 0), alone) for decisions in (100, 900, 950)]
    assert Figures(phases, Counter()).ratio == 0.9
