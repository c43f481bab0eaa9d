"""Gangs on the embedded server, scheduled over HTTP by the scheduler as it is."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from kubenexus.app.scheduler import Scheduler
from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, list_call
from kubenexus.config import defaults
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN
from kubenexus.queue.gangs.gang_jobs import INCOMPLETE
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import (
    EmbeddedCluster,
    EmbeddedClusterSpec,
    open_embedded_cluster,
    run_in_background,
)
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from tests.api.gangs.builders import LEAST, NAME

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


async def until(client: ApiClient, true: Callable[[Pods], bool]) -> Pods:
    async with asyncio.timeout(20):
        while True:
            items = msgspec.json.decode(await client.send(list_call(kinds.PODS)))["items"]
            pods = {each["metadata"]["name"]: each for each in items}
            if true(pods):
                return pods
            await asyncio.sleep(0)  # the server and the scheduler live in this loop, too


async def play(story: Callable[[ApiClient], Any], count: int = 2, cpu: str = "2") -> None:
    """On so many nodes of so many CPUs."""
    async with cluster(count, cpu) as box, scheduled(box):
        await story(box.client)


@contextlib.asynccontextmanager
async def cluster(count: int, cpu: str) -> AsyncIterator[EmbeddedCluster]:
    clock = WallClock()
    nodes = NodeTemplate(prefix="n", capacity={"cpu": cpu, "memory": "8Gi", "pods": "110"}).nodes(count, clock.now())
    async with open_embedded_cluster(
        ServingOptions(), clock, random.Random(5), EmbeddedClusterSpec(nodes, AgentSettings(), controllers=False)
    ) as box:
        yield box


@contextlib.asynccontextmanager
async def scheduled(box: EmbeddedCluster) -> AsyncIterator[None]:
    plugins = load_plugins(BUILT_IN)
    scheduler = Scheduler(defaults(plugins), plugins, box.client, WallClock(), random.Random(5))
    async with run_in_background(scheduler.watch()):
        await scheduler.wait_until_current()
        async with run_in_background(scheduler.schedule()):
            yield


def test_a_gang_waits_on_the_server_and_starts_when_its_last_member_is_made() -> None:
    async def story(client: ApiClient) -> None:
        labels = {NAME: "llama", LEAST: "4"}
        for i in range(3):
            await client.send(create(kinds.PODS, member(f"llama-{i}", labels), "default"))
        waiting = await until(client, lambda pods: len(pods) == 3 and all(map(why, pods.values())))
        assert [why(waiting[f"llama-{i}"]).partition(": ")[0] for i in range(3)] == [INCOMPLETE] * 3
        assert why(waiting["llama-0"]).endswith(" of at least 4")
        assert not any(map(node_of, waiting.values()))
        await client.send(create(kinds.PODS, member("llama-3", labels), "default"))
        there = await until(client, lambda pods: len(pods) == 4 and all(map(node_of, pods.values())))
        assert len(set(map(node_of, there.values()))) == 2

    asyncio.run(play(story))


def test_of_two_gangs_that_need_the_whole_cluster_one_starts() -> None:
    async def story(client: ApiClient) -> None:
        for i in range(4):
            for gang in ("left", "right"):
                labels = {NAME: gang, LEAST: "4"}
                await client.send(create(kinds.PODS, member(f"{gang}-{i}", labels), "default"))

        def settled(pods: Pods) -> bool:
            return len(pods) == 8 and all(node_of(pod) or why(pod) for pod in pods.values())

        pods = await until(client, settled)
        counts = [sum(bool(node_of(pods[f"{gang}-{i}"])) for i in range(4)) for gang in ("left", "right")]
        assert sorted(counts) == [0, 4]

    asyncio.run(play(story))
