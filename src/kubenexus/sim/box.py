"""A whole cluster in the box: the server, its controllers, and agents for the nodes it is given."""

import asyncio
import contextlib
import random
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from kubenexus.base.clock import Clock
from kubenexus.client.access import Wish, find_access
from kubenexus.client.calls import Call
from kubenexus.client.transport import Client
from kubenexus.sim.agents import Agents, Settings
from kubenexus.sim.apiserver.serving import Door, Served, serve, write_kubeconfig
from kubenexus.sim.controllers.live import running
from kubenexus.sim.live import Live


class Wanted(NamedTuple):
    """What is in it: the calls that register nodes, how their agents behave, and whether there are controllers."""

    nodes: Iterable[Call] = ()
    agents: Settings | None = None  # None: nobody plays the nodes
    controllers: bool = True


class Box(NamedTuple):
    served: Served
    client: Client
    kubeconfig: Path  # in a folder that goes with the box

    @property
    def folder(self) -> Path:
        return self.kubeconfig.parent


@contextlib.asynccontextmanager
async def opened(
    door: Door,
    clock: Clock,
    rng: random.Random,
    wanted: Wanted,
    report: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Box]:
    """Open within the `with`; nothing is left of it afterwards. Raises KubeNexusError: a port in use, say."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubenexus-box-")))
        served = await serve(door, clock, rng)
        stack.push_async_callback(served.close)
        write_kubeconfig(served, folder / "kubeconfig")
        client = Client(find_access(Wish(kubeconfig=str(folder / "kubeconfig")), clock), clock)
        stack.push_async_callback(client.close)
        if wanted.controllers:
            await stack.enter_async_context(running(served.server, clock, token=door.token))
        if wanted.agents is not None:
            live = Live(client, Agents(wanted.agents), clock, rng=rng, report=report)
            await live.register(wanted.nodes)
            await stack.enter_async_context(background(live.run()))
        yield Box(served, client, folder / "kubeconfig")


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Goes on beside what is done within the `with`."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
