"""Runs the demo: server, controllers and agents in this process, the scheduler in its own, then the steps in order."""

import asyncio
import contextlib
import random
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple

from kubenexus.base.clock import Clock, WallClock
from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.demo import demo_nodes
from kubenexus.sim.demo.cluster_state import ClusterState
from kubenexus.sim.demo.demo_client import DemoClient, ExpectationFailed
from kubenexus.sim.demo.schedulers import KUBE, OURS, SchedulerProcess, scheduling
from kubenexus.sim.demo.screen import DemoOutput, shown
from kubenexus.sim.demo.steps import STORY, DemoStep
from kubenexus.sim.demo.summary import summary
from kubenexus.sim.demo.view import Caption
from kubenexus.sim.embedded_cluster import (
    EmbeddedCluster,
    EmbeddedClusterSpec,
    open_embedded_cluster,
    run_in_background,
)
from kubenexus.sim.kubelets.agents import AgentSettings

READING = 3.0  # seconds for a human to read the result of a step
STARTING = STOPPING = 0.3  # seconds that pods take, if a human watches


class DemoFailed(KubeNexusError):
    """A step did not have the expected outcome, or the scheduler ended."""


class DemoOptions(NamedTuple):
    """What is run, and how. `pace` 0: without pauses; 1: for a human; 0.5: twice as fast."""

    nodes: int = 12
    seed: int = 1
    patience: float = 30.0
    scheduler: str = OURS
    port: int = 0
    pace: float = 0.0
    draws: bool = False
    story: Sequence[DemoStep] = STORY


# Serves a page about the cluster of a kubeconfig within the `with`, from the scheduler at an address, "" if there is
# none. Returns the page's address.
ServePage = Callable[[Path, str], AbstractAsyncContextManager[str]]


class DemoRun:
    """`told` is true after the last step. `out` gets plain lines; `screen` replaces the default output. With `page` the
    cluster is served as a web page, too."""

    def __init__(
        self,
        plan: DemoOptions,
        out: Callable[[str], None],
        clock: Clock | None = None,
        screen: DemoOutput | None = None,
        page: ServePage | None = None,
    ) -> None:
        self._plan, self._out, self._clock, self._screen = plan, out, clock or WallClock(), screen
        self._page = page
        self.state = ClusterState(self._clock)
        self.told = False

    async def play(self, keep: asyncio.Event | None = None) -> None:
        """Runs all steps; with `keep` the cluster stays until it is set. Raises DemoFailed and KubeNexusError."""
        plan, rng = self._plan, random.Random(self._plan.seed)
        agents = AgentSettings(renew=0, start=STARTING * plan.pace, stop=STOPPING * plan.pace)
        wanted = EmbeddedClusterSpec(demo_nodes.nodes(plan.nodes, self._clock.now()), agents)
        async with contextlib.AsyncExitStack() as stack:
            embedded = await stack.enter_async_context(
                open_embedded_cluster(ServingOptions("127.0.0.1", plan.port), self._clock, rng, wanted)
            )
            answers = self._page is not None and plan.scheduler == OURS and shutil.which("openssl") is not None
            port = (
                free_port() if answers else 0
            )  # without openssl there may be no certificate: the page reads the cluster
            scheduler = await stack.enter_async_context(scheduling(plan.scheduler, embedded.kubeconfig, port))
            await stack.enter_async_context(self._watched(embedded, rng))
            join = f"kubectl --server={embedded.served.address} get pods -o wide"
            if self._page is not None:
                url = f"https://127.0.0.1:{port}" if port else ""
                page = await stack.enter_async_context(self._page(embedded.kubeconfig, url))
                join += f"\n  {page}"
            await self._shown(embedded, scheduler, join)
            if keep is not None:
                self._out(f"\nThe cluster stays; Ctrl-C ends it. From another terminal:\n  {join}")
                await keep.wait()

    @contextlib.asynccontextmanager
    async def _watched(self, embedded: EmbeddedCluster, rng: random.Random) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for watch in self.state.watches(embedded.client, rng):
                await stack.enter_async_context(run_in_background(watch.run()))
            yield

    async def _shown(self, embedded: EmbeddedCluster, scheduler: SchedulerProcess, join: str) -> None:
        plan = self._plan
        own = contextlib.nullcontext(self._screen) if self._screen else None
        async with own or shown(self.state, self._clock, self._out, draws=plan.draws) as screen:
            size = plan.nodes + demo_nodes.GPU_NODES
            screen.say(f"A cluster of {size} nodes; scheduler: {scheduler}. From another terminal:")
            screen.say(f"  {join}\n")
            packs = plan.scheduler != KUBE
            client = DemoClient(embedded.client, self.state, plan.patience, plan.pace, packs=packs)
            await self._or_else(self._acts(screen, client, join), scheduler)
            self.told = True
            for line in summary(self.state, client.moved, self._clock.now()):
                screen.say(line)

    async def _or_else(self, acts: Coroutine[Any, Any, None], scheduler: SchedulerProcess) -> None:
        """Runs the steps, and fails if the scheduler ends before them."""
        story = asyncio.ensure_future(acts)
        gone = asyncio.ensure_future(scheduler.ended())
        try:
            await asyncio.wait({story, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not story.done():
                raise DemoFailed(f"the story broke off: {gone.result()}")
            story.result()
        finally:
            for task in (story, gone):
                task.cancel()
            await asyncio.gather(story, gone, return_exceptions=True)

    async def _acts(self, screen: DemoOutput, client: DemoClient, join: str) -> None:
        story, told = self._plan.story, list[str]()
        await client.until("nodes", lambda: "" if self.state.nodes else "none")
        for number, act in enumerate(story, 1):
            screen.caption(Caption(tuple(told), f"{number}. {act.title}", number, len(story), join))
            line = f"{number}. {act.title}: {await self._act(number, act, client)}"
            told.append(line)
            screen.say(line)
            screen.caption(Caption(tuple(told), "", number, len(story), join))
            await client.pause(READING)

    async def _act(self, number: int, act: DemoStep, client: DemoClient) -> str:
        if act.only and self._plan.scheduler == KUBE:
            return f"not told: {act.only}"
        try:
            return await act.play(client)
        except ExpectationFailed as why:
            raise DemoFailed(f"act {number} ({act.title}) failed: {why}") from None


def free_port() -> int:
    """Returns a port of the loopback address that nothing listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
