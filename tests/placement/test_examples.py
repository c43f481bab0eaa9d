"""The files of examples/placement, applied to the embedded server with controllers and scheduled over HTTP."""

import asyncio
import random
from pathlib import Path
from typing import Any

import yaml

from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import EmbeddedClusterSpec, open_embedded_cluster
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from tests.app.embedded_story import Pods, node_of, scheduled, until
from tests.placement.gpu_cluster import GPU
from tests.placement.mixed_cluster import H100, T4, running

FOLDER = Path(__file__).parents[2] / "examples" / "placement"
RESOURCES = {
    each.kind: each
    for each in (
        kinds.NAMESPACES,
        kinds.PODS,
        ApiResource("Job", "jobs", group="batch"),
        ApiResource("Deployment", "deployments", group="apps"),
    )
}
PLAIN = {"cpu": "32", "memory": "128Gi", "pods": "110"}


async def apply(client: ApiClient, file: Path) -> None:
    for thing in yaml.safe_load_all(file.read_text(encoding="utf-8")):
        await client.send(create(RESOURCES[thing["kind"]], thing, thing["metadata"].get("namespace", "")))


async def placed() -> Pods:
    """All files applied to three nodes without GPUs, of which one is half full, and two with."""
    clock = WallClock()
    templates = (
        (NodeTemplate(prefix="cpu-", capacity=PLAIN), 3),
        (NodeTemplate(prefix="t4-", capacity={**PLAIN, GPU: "4"}, labels=T4), 1),
        (NodeTemplate(prefix="h100-", capacity={**PLAIN, GPU: "8"}, labels=H100), 1),
    )
    nodes = [call for template, count in templates for call in template.nodes(count, clock.now())]
    spec = EmbeddedClusterSpec(nodes, AgentSettings(), controllers=True)
    async with open_embedded_cluster(ServingOptions(), clock, random.Random(5), spec) as box:
        there: dict[str, Any] = running("cpu-1", "16", "64Gi", namespace="default")
        await box.client.send(create(kinds.PODS, there, "default"))
        async with scheduled(box):
            await apply(box.client, FOLDER / "namespaces.yaml")
            for file in sorted(FOLDER.glob("*.yaml")):
                if file.name != "namespaces.yaml":
                    await apply(box.client, file)
            pods = await until(box.client, lambda pods: len(pods) == 12 and all(map(node_of, pods.values())))
    del pods[there["metadata"]["name"]]
    assert {pod["metadata"]["labels"]["example"] for pod in pods.values()} == {"placement"}, "as the page selects them"
    return pods


def test_every_example_is_where_the_page_says() -> None:
    pods = asyncio.run(placed())
    nodes: dict[str, list[str]] = {}
    for name, pod in sorted(pods.items()):
        nodes.setdefault(name.partition("-")[0], []).append(node_of(pod))
    assert nodes.keys() == {"chat", "report", "shuffle", "training", "web"}
    for spread in ("web", "shuffle"):
        assert len(set(nodes[spread])) > 1
        assert {each.partition("-")[0] for each in nodes[spread]} == {"cpu"}
    assert nodes["report"] == ["cpu-1"] * 3, "the one that is half full"
    assert nodes["training"] == ["h100-0"]
    assert nodes["chat"] == ["t4-0"]
