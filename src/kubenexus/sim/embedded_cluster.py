"""An embedded cluster: the API server, its controllers, and agents for its nodes."""

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
from kubenexus.sim.kubelets.node_topologies import NodeTopologies


class EmbeddedClusterSpec(NamedTuple):
    """The content of the cluster: calls that register nodes, settings of their agents, and whether controllers run.
    With `topologies` the nodes have NUMA nodes; their reports need the CustomResourceDefinition."""

    nodes: Iterable[Call] = ()
    agents: AgentSettings | None = None  # None: the nodes have no agents
    controllers: bool = True
    topologies: NodeTopologies | None = None


class EmbeddedCluster(NamedTuple):
    served: ServedCluster
    client: ApiClient
    kubeconfig: Path  # in a temporary folder of the cluster

    @property
    def folder(self) -> Path:
        return self.kubeconfig.parent


@contextlib.asynccontextmanager
async def open_embedded_cluster(
    options: ServingOptions,
    clock: Clock,
    rng: random.Random,
    wanted: EmbeddedClusterSpec,
    report: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[EmbeddedCluster]:
    """Runs a cluster within the `with` and removes it afterwards. Raises KubeNexusError, e.g. for a port in use."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubenexus-box-")))
        served = await serve(options, clock, rng)
        stack.push_async_callback(served.close)
        write_kubeconfig(served, folder / "kubeconfig")
        client = ApiClient(load_client_config(ClientOptions(kubeconfig=str(folder / "kubeconfig")), clock), clock)
        stack.push_async_callback(client.close)
        if wanted.controllers:
            await stack.enter_async_context(running(served.server, clock, token=options.token))
        if wanted.agents is not None:
            live = AgentRunner(
                client, Agents(wanted.agents, topologies=wanted.topologies), clock, rng=rng, report=report
            )
            await live.register(wanted.nodes)
            await stack.enter_async_context(run_in_background(live.run()))
        yield EmbeddedCluster(served, client, folder / "kubeconfig")


@contextlib.asynccontextmanager
async def run_in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs the coroutine beside the body of the `with`."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
