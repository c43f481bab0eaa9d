"""A whole cluster in the box: the server, its controllers, and agents for the nodes it is given."""

import asyncio
import contextlib
import random
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from kubenexus.base.clock import Clock
from kubenexus.client.calls import Call
from kubenexus.client.client_config import ClientOptions, load_client_config
from kubenexus.client.transport import ApiClient
from kubenexus.sim.apiserver.serving import ServedCluster, ServingOptions, serve, write_kubeconfig
from kubenexus.sim.controllers.runner import running
from kubenexus.sim.kubelets.agent_runner import AgentRunner
from kubenexus.sim.kubelets.agents import Agents, AgentSettings


class EmbeddedClusterSpec(NamedTuple):
    """What is in it: the calls that register nodes, how their agents behave, and whether there are controllers."""

    nodes: Iterable[Call] = ()
    agents: AgentSettings | None = None  # None: nobody plays the nodes
    controllers: bool = True


class EmbeddedCluster(NamedTuple):
    served: ServedCluster
    client: ApiClient
    kubeconfig: Path  # in a folder that goes with the box

    @property
    def folder(self) -> Path:
        return self.kubeconfig.parent


@contextlib.asynccontextmanager
async def open_embedded_cluster(
    door: ServingOptions,
    clock: Clock,
    rng: random.Random,
    wanted: EmbeddedClusterSpec,
    report: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[EmbeddedCluster]:
    """Open within the `with`; nothing is left of it afterwards. Raises KubeNexusError: a port in use, say."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubenexus-box-")))
        served = await serve(door, clock, rng)
        stack.push_async_callback(served.close)
        write_kubeconfig(served, folder / "kubeconfig")
        client = ApiClient(load_client_config(ClientOptions(kubeconfig=str(folder / "kubeconfig")), clock), clock)
        stack.push_async_callback(client.close)
        if wanted.controllers:
            await stack.enter_async_context(running(served.server, clock, token=door.token))
        if wanted.agents is not None:
            live = AgentRunner(client, Agents(wanted.agents), clock, rng=rng, report=report)
            await live.register(wanted.nodes)
            await stack.enter_async_context(run_in_background(live.run()))
        yield EmbeddedCluster(served, client, folder / "kubeconfig")


@contextlib.asynccontextmanager
async def run_in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Goes on beside what is done within the `with`."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
