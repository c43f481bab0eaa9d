"""The files of examples/numa, applied to the embedded server whose nodes admit pods by their NUMA nodes."""

import asyncio
import random
from pathlib import Path
from typing import Any

import yaml

from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, list_call
from kubenexus.plugins.numa.reasons import NO_ALIGNMENT
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import EmbeddedCluster, EmbeddedClusterSpec, open_embedded_cluster
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from kubenexus.sim.kubelets.node_topologies import NodeTopologies, NumaSettings
from tests.api.numa.builders import GPU
from tests.app.embedded_story import Pods, answered, node_of, scheduled, until, why

FOLDER = Path(__file__).parents[3] / "examples" / "numa"
RESOURCES = {
    each.kind: each
    for each in (
        kinds.PODS,
        ApiResource("Job", "jobs", group="batch"),
        ApiResource("CustomResourceDefinition", "customresourcedefinitions", group="apiextensions.k8s.io"),
    )
}
FILES = ("pod.yaml", "gang.yaml", "too-large.yaml", "isolated.yaml", "spread.yaml")
NODES = 4
SIZE = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: "8"}


async def apply(client: ApiClient, name: str) -> None:
    thing = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    namespace = "" if thing["kind"].startswith("Custom") else "default"
    await client.send(create(RESOURCES[thing["kind"]], thing, namespace))


def phase(pod: dict[str, Any]) -> str:
    return str(pod.get("status", {}).get("phase", ""))


async def all_placed(box: EmbeddedCluster) -> Pods:
    await apply(box.client, "crd.yaml")
    await answered(box.client, list_call(kinds.NODE_RESOURCE_TOPOLOGIES), lambda found: len(found["items"]) == NODES)
    async with scheduled(box):
        await apply(box.client, "too-large.yaml")  # before others make nodes refuse it for another reason
        await until(box.client, lambda pods: f"{NODES} {NO_ALIGNMENT.text}" in why(pods.get("too-large", {})))
        for name in FILES:
            if name != "too-large.yaml":
                await apply(box.client, name)
        return await until(
            box.client,
            lambda pods: (
                len(pods) == 9
                and sum(phase(pod) == "Running" for pod in pods.values()) == 8
                and bool(why(pods["too-large"]))
            ),
        )


async def placed() -> Pods:
    clock = WallClock()
    nodes = list(NodeTemplate(prefix="numa-", capacity=SIZE).nodes(NODES, clock.now()))
    topologies = NodeTopologies(NumaSettings(publish=0.2))
    spec = EmbeddedClusterSpec(nodes, AgentSettings(retry=0.1), controllers=True, topologies=topologies)
    async with open_embedded_cluster(ServingOptions(), clock, random.Random(5), spec) as box:
        return await all_placed(box)


def test_every_example_runs_but_the_one_that_is_too_large() -> None:
    pods = asyncio.run(placed())
    assert {file.name for file in FOLDER.iterdir()} == {"crd.yaml", *FILES}
    assert {pod["metadata"]["labels"]["example"] for pod in pods.values()} == {"numa"}
    waiting = [name for name, pod in pods.items() if phase(pod) != "Running"]
    assert waiting == ["too-large"]
    assert NO_ALIGNMENT.text in why(pods["too-large"])
    assert all(node_of(pod).startswith("numa-") for name, pod in pods.items() if name != "too-large")
    apart = [node_of(pod) for name, pod in pods.items() if name.startswith("apart")]
    assert len(set(apart)) == 2  # two members would share the first NUMA node of one machine
