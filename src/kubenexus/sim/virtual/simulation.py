"""A simulation: the embedded API server, the real scheduler and one virtual clock. Scenarios are elsewhere."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

import msgspec

from kubenexus.app.scheduler import Scheduler, SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.config import Configuration
from kubenexus.framework.profile import Factory
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.controllers.resource_claim import ResourceClaimController
from kubenexus.sim.virtual.decisions import DecisionLog
from kubenexus.sim.virtual.in_process_client import LATENCY, InProcessClient
from kubenexus.sim.virtual.loop import LoopClock
from kubenexus.sim.virtual.pod_tracker import PodTracker
from kubenexus.sim.virtual.terminating import TerminatingPods

T = TypeVar("T")
CLAIMS_AT_ONCE = 50


class SimulationOptions(msgspec.Struct, frozen=True):
    """The parameters of a simulation. `without` names disabled admission plugins of its API server, `gates` the feature
    gates that are on there.

    `pace` is the duration of a decision in seconds. With 0, an idle scheduler would retry refused pods without end at
    one moment.
    """

    seed: int = 0
    latency: float = LATENCY
    pace: float = 0.0005
    without: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()


class Simulation:
    """Created inside a virtual loop; use it through `run_scenario`."""

    def __init__(
        self,
        configuration: Configuration,
        plugins: Mapping[str, Factory],
        options: SimulationOptions,
        log: DecisionLog,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.options, self.log, self.clock = options, log, LoopClock(self._loop)
        self.rng = self._chance("scenario")
        self.server = ApiServer(self.clock, self._chance("server"), without=options.without, gates=options.gates)
        self.tracker = PodTracker(self.server.core.store)
        self.api = InProcessClient(self.server, options.latency)
        self.terminating = TerminatingPods(self.server.core.store, self.api)
        self.claims = ResourceClaimController(self.server.core.store, self.api.now, self._wake_claims)
        loop = LoopOptions(
            on_decision=lambda decision: log.record(decision, self.seconds), seconds_per_decision=options.pace
        )
        self.scheduler = Scheduler(
            configuration,
            plugins,
            self.api,
            self.clock,
            self._chance("scheduler"),
            options=SchedulerOptions(loop=loop),
        )

    @property
    def seconds(self) -> float:
        """Virtual seconds since the start of the simulation."""
        return self._loop.time() - self._began

    def _wake_claims(self) -> None:
        self._loop.call_soon(self._make_claims)

    def _make_claims(self) -> None:
        """Lets the controller of claims work, a portion in each turn of the loop."""
        self.claims.run(CLAIMS_AT_ONCE)
        if not self.claims.idle:
            self._loop.call_soon(self._make_claims)

    async def ready(self) -> None:
        """Waits until the scheduler has listed all objects."""
        await self.scheduler.watches.listed(0.001)

    def _chance(self, whose: str) -> random.Random:
        """Returns a generator of its own for each part: a further draw of one must not change those of another."""
        return random.Random(f"{self.options.seed}/{whose}")


async def run_scenario(simulation: Simulation, scenario: Callable[[Simulation], Awaitable[T]]) -> T:
    """Runs the scheduler while the scenario runs, and ends it afterwards. A failed task ends both."""
    scheduler_tasks = [asyncio.ensure_future(simulation.scheduler.watches.run())]
    try:
        await _first(simulation.ready(), scheduler_tasks)
        scheduler_tasks.append(asyncio.ensure_future(simulation.scheduler.schedule()))
        return await _first(scenario(simulation), scheduler_tasks)
    finally:
        await _ended(scheduler_tasks)
        simulation.tracker.close()
        simulation.terminating.close()
        simulation.claims.close()


async def _first(play: Awaitable[T], scheduler_tasks: Collection["asyncio.Future[None]"]) -> T:
    playing = asyncio.ensure_future(play)
    try:
        tasks: list[asyncio.Future[Any]] = [playing, *scheduler_tasks]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in scheduler_tasks:
            if each.done():
                each.result()
        return await playing
    finally:
        await _ended([playing])


async def _ended(tasks: Collection["asyncio.Future[T]"]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
