"""GPUs on the embedded server, scheduled over HTTP by the scheduler as it is; judged from the API objects alone."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import EmbeddedCluster, EmbeddedClusterSpec, open_embedded_cluster
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from tests.api.gangs.builders import LEAST, NAME
from tests.app.embedded_story import Pods, member, node_of, scheduled, until, why

DEVICES, FRACTION = "scheduling.kubenexus.io/devices", "scheduling.kubenexus.io/gpu-fraction"
NVLINK = "gpu.kubenexus.io/prefer-nvlink"
GPU = "nvidia.com/gpu"


@contextlib.asynccontextmanager
async def cluster(count: int, gpus: int, labels: dict[str, str]) -> AsyncIterator[EmbeddedCluster]:
    clock = WallClock()
    capacity = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
    nodes = NodeTemplate(prefix="g", capacity=capacity, labels=labels).nodes(count, clock.now())
    spec = EmbeddedClusterSpec(nodes, AgentSettings(), controllers=False)
    async with open_embedded_cluster(ServingOptions(), clock, random.Random(5), spec) as box:
        yield box


def a_pod(name: str, gpus: int = 0, annotations: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:
    made = member(name, labels)
    made["metadata"]["annotations"] = annotations or {}
    if gpus:
        made["spec"]["containers"][0]["resources"] = {"limits": {GPU: str(gpus)}}
    return made


def held(pod: dict[str, Any]) -> list[tuple[str, int]]:
    entries = msgspec.json.decode(pod["metadata"].get("annotations", {}).get(DEVICES, "[]"))
    return [(entry["device"], entry["share"]) for entry in entries]


def shares(pods: Pods) -> Counter[tuple[str, str]]:
    """What pods hold of each card, in thousandths."""
    total = Counter[tuple[str, str]]()
    for pod in pods.values():
        for device, share in held(pod):
            total[node_of(pod), device] += share
    return total


async def made(client: ApiClient, pods: list[dict[str, Any]]) -> None:
    for pod in pods:
        await client.send(create(kinds.PODS, pod, "default"))


def everywhere(pods: Pods, count: int) -> bool:
    return len(pods) == count and all(map(node_of, pods.values()))


def test_f17_halves_that_come_at_once_are_two_a_card_also_over_a_restart() -> None:
    async def story() -> None:
        labels = {"gpu.kubenexus.io/shared": "true", "nvidia.com/gpu.memory": "81559"}
        async with cluster(2, 8, labels) as box:
            halves = [a_pod(f"half-{i}", annotations={FRACTION: "0.5"}) for i in range(32)]
            async with scheduled(box):
                await made(box.client, halves[:9])
                await until(box.client, lambda pods: sum(map(bool, map(node_of, pods.values()))) >= 3)
            async with scheduled(box):
                await made(box.client, halves[9:])
                there = await until(box.client, lambda pods: everywhere(pods, 32))
            assert len(shares(there)) == 16
            assert set(shares(there).values()) == {1000}

    asyncio.run(story())


def test_each_member_of_a_gang_gets_cards_of_one_island() -> None:
    async def story() -> None:
        gang = {NAME: "llama", LEAST: "8"}
        async with cluster(4, 8, {"gpu.kubenexus.io/islands": "0-3_4-7"}) as box, scheduled(box):
            members = [a_pod(f"m-{i}", 4, {NVLINK: "required"}, **gang) for i in range(8)]
            await made(box.client, members)
            there = await until(box.client, lambda pods: everywhere(pods, 8))
            assert set(shares(there).values()) == {1000}
            for pod in there.values():
                numbers = {int(device.removeprefix("gpu-")) // 4 for device, _ in held(pod)}
                assert len(numbers) == 1, held(pod)

    asyncio.run(story())


def test_broken_islands_are_named_as_the_reason() -> None:
    async def story() -> None:
        async with cluster(1, 8, {"gpu.kubenexus.io/islands": "0-3_4-7"}) as box, scheduled(box):
            await made(box.client, [a_pod(f"three-{i}", 3) for i in range(2)])
            await until(box.client, lambda pods: everywhere(pods, 2))
            await made(box.client, [a_pod("two", 2, {NVLINK: "required"})])
            pods = await until(box.client, lambda pods: bool(why(pods.get("two", {}))))
            assert "1 node(s) didn't have 2 free GPUs joined by NVLink" in why(pods["two"])

    asyncio.run(story())
