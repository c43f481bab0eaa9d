"""One soak from beginning to end: a server, a scheduler, pods and nodes in turmoil, and somebody who takes notes."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from bench.soak.churn import Churn
from bench.soak.flaps import Flaps
from bench.soak.lookout import CLOCK
from bench.soak.programs import SERVERS, Scheduler, Server, scheduler
from bench.soak.report import Plan, Soak
from bench.soak.samples import Page, Sample, read_page, sample
from kubenexus.client.client_config import ClientOptions, load_client_config
from kubenexus.client.rate_limiter import RateLimiter
from kubenexus.client.transport import ApiClient

Say = Callable[[str], None]


class Notes:
    """Samples of one scheduler, kept in `taken`."""

    def __init__(self, which: Scheduler, token: str, churn: Churn, say: Say) -> None:
        self._which, self._token, self._churn, self._say = which, token, churn, say
        self._began, self._before = CLOCK.now(), Page("")
        self.taken: list[Sample] = []

    async def run(self, every: float) -> None:
        """Until cancelled."""
        while True:
            await self.take()
            await asyncio.sleep(every)

    async def take(self) -> Sample:
        """A page that cannot be had (the scheduler asks a busy server who we are) is asked for again."""
        while True:
            with contextlib.suppress(OSError):
                return self._noted(await asyncio.to_thread(read_page, self._which.address, self._token))
            await asyncio.sleep(1.0)

    def _noted(self, page: Page) -> Sample:
        at = CLOCK.now() - self._began
        noted = sample(page, self._before, self._which.program.pid, at, self._churn.done)
        self._before = page
        self.taken.append(noted)
        waiting = sum(noted.queues.values())
        self._say(f"{at:7.0f} s  {noted.done:>7} pods  {noted.rss_mb:6.1f} MB  {waiting:>5} wait")
        return noted


async def soak(folder: Path, plan: Plan, say: Say) -> Soak:
    """Two halves; after each everything is deleted, and what the process still holds is what it keeps. Who interrupts
    gets what there is."""
    with SERVERS[plan.server](folder) as server:
        async with connected(server) as client:
            flaps, churn = Flaps(client, plan.nodes), Churn(client, plan.alive, plan.job)
            await flaps.furnish()
            ours = scheduler(server)
            notes, halves = Notes(ours, server.token, churn, say), list[Sample]()
            await _serving(ours, server.token)
            _end_on_term()
            with contextlib.suppress(asyncio.CancelledError):
                async with beside(churn.run(), flaps.run(), notes.run(plan.every)):
                    for _ in range(2):
                        await churn.turn_over(plan.pods // 2)
                        await asyncio.sleep(plan.rest)
                        halves.append(await notes.take())
            return Soak(plan, flaps.count, notes.taken, halves)


def _end_on_term() -> None:
    """As Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


async def _serving(which: Scheduler, token: str) -> None:
    """Until its pages can be read."""
    while True:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(read_page, which.address, token)
            return
        if not which.program.running:
            raise SystemExit(f"the scheduler ended\n{which.program.tail()}")
        await asyncio.sleep(0.2)


@contextlib.asynccontextmanager
async def connected(server: Server) -> AsyncIterator[ApiClient]:
    access = load_client_config(ClientOptions(kubeconfig=str(server.kubeconfig)), CLOCK)
    client = ApiClient(access, CLOCK, rate_limiter=RateLimiter(CLOCK, qps=-1))
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def beside(*doings: "asyncio._CoroutineLike[None]") -> AsyncIterator[None]:
    """These go on while the body runs, and end with it; if one of them fails, so does the body."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in doings]
        yield
        for task in tasks:
            task.cancel()
