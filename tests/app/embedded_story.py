"""The scheduler as it is on the embedded server, over HTTP, and what tests of it wait for."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from kubenexus.app.scheduler import Scheduler
from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.calls import Call
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import list_call
from kubenexus.config import defaults, load
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import (
    EmbeddedCluster,
    EmbeddedClusterSpec,
    open_embedded_cluster,
    run_in_background,
)
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from tests.async_helpers import HANGS

PLAIN = ServingOptions()
Pods = dict[str, dict[str, Any]]


def member(name: str, labels: dict[str, str]) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "kubenexus-scheduler", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def node_of(pod: dict[str, Any]) -> str:
    return str(pod["spec"].get("nodeName", ""))


def why(pod: dict[str, Any]) -> str:
    said = [each for each in pod.get("status", {}).get("conditions", ()) if each["type"] == "PodScheduled"]
    return str(said[0].get("message", "")) if said and said[0]["status"] == "False" else ""


async def answered(client: ApiClient, call: Call, true: Callable[[Any], bool]) -> Any:
    """The answer to a call, once it is as it should be."""
    async with asyncio.timeout(HANGS):
        while not true(found := msgspec.json.decode(await client.send(call))):
            await asyncio.sleep(0)  # the server and the scheduler live in this loop, too
    return found


async def until(client: ApiClient, true: Callable[[Pods], bool]) -> Pods:
    """All pods by name, once they are as they should be."""
    listed = await answered(client, list_call(kinds.PODS), lambda found: true(_by_name(found)))
    return _by_name(listed)


def _by_name(listed: Any) -> Pods:
    return {each["metadata"]["name"]: each for each in listed["items"]}


@contextlib.asynccontextmanager
async def cluster(
    count: int, cpu: str, options: ServingOptions = PLAIN, *, controllers: bool = False
) -> AsyncIterator[EmbeddedCluster]:
    """So many nodes of so many CPUs."""
    clock = WallClock()
    nodes = NodeTemplate(prefix="n", capacity={"cpu": cpu, "memory": "8Gi", "pods": "110"}).nodes(count, clock.now())
    async with open_embedded_cluster(
        options, clock, random.Random(5), EmbeddedClusterSpec(nodes, AgentSettings(), controllers=controllers)
    ) as box:
        yield box


def a_scheduler(client: ApiClient, config: str = "") -> Scheduler:
    plugins = load_plugins(BUILT_IN)
    configuration = load(config, plugins) if config else defaults(plugins)
    return Scheduler(configuration, plugins, client, WallClock(), random.Random(5))


@contextlib.asynccontextmanager
async def running(scheduler: Scheduler) -> AsyncIterator[Scheduler]:
    async with run_in_background(scheduler.watches.run()):
        await scheduler.watches.listed()
        await scheduler.watches.wait_until_current()
        async with run_in_background(scheduler.schedule()):
            yield scheduler


@contextlib.asynccontextmanager
async def scheduled(box: EmbeddedCluster, config: str = "") -> AsyncIterator[Scheduler]:
    async with running(a_scheduler(box.client, config)) as scheduler:
        yield scheduler
