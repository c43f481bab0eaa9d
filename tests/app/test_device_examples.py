"""The files of examples/devices, applied to the embedded server and scheduled over HTTP."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import yaml

from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.calls import MERGE_PATCH
from kubenexus.client.kinds import ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, patch
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import EmbeddedClusterSpec, open_embedded_cluster
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from tests.app.embedded_story import Pods, node_of, scheduled, until

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "devices"
JOBS = ApiResource("Job", "jobs", group="batch")
KINDS = {"Pod": kinds.PODS, "Job": JOBS, "Node": kinds.NODES}
CAPACITY = {"cpu": "64", "memory": "512Gi", "pods": "110"}
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
L4 = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "23034"}


async def apply(client: ApiClient, file: Path) -> None:
    thing = yaml.safe_load(file.read_text(encoding="utf-8"))
    kind, name = KINDS[thing["kind"]], thing["metadata"]["name"]
    if kind is kinds.NODES:  # it is there, and gets what the file has
        await client.send(patch(kind, "", name, thing, content_type=MERGE_PATCH))
    else:
        await client.send(create(kind, thing, "default"))


def held(pod: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(pod["metadata"]["annotations"]["scheduling.kubenexus.io/devices"])
    return found


def names(pod: dict[str, Any]) -> list[str]:
    return [each["device"] for each in held(pod)]


async def placed() -> Pods:
    """All files applied, and all their pods on nodes."""
    clock = WallClock()
    nodes = [
        *NodeTemplate(prefix="h100-", capacity={**CAPACITY, "nvidia.com/gpu": "8"}, labels=H100).nodes(3, clock.now()),
        *NodeTemplate(prefix="gpu-shared-", capacity={**CAPACITY, "nvidia.com/gpu": "2"}, labels=L4).nodes(
            2, clock.now()
        ),
    ]
    spec = EmbeddedClusterSpec(nodes, AgentSettings(), controllers=True)
    async with open_embedded_cluster(ServingOptions(), clock, random.Random(5), spec) as box:
        for file in sorted(FOLDER.glob("*.yaml"), key=lambda file: "node" not in file.name):
            await apply(box.client, file)
        async with scheduled(box):
            return await until(box.client, lambda pods: len(pods) == 7 and all(map(node_of, pods.values())))


def test_every_example_is_scheduled_and_gets_its_cards() -> None:
    pods = asyncio.run(placed())
    half = pods["half-gpu"]
    assert node_of(half) == "gpu-shared-1"
    assert [(each["device"], each["share"]) for each in held(half)] == [("gpu-0", 500)]
    assert half["metadata"]["annotations"]["scheduling.kubenexus.io/visible-devices"] == "0"
    assert len(names(pods["joined-gpus"])) == 4
    assert node_of(pods["vram-request"]).startswith("h100-")
    members = [pod for name, pod in pods.items() if name.startswith("train-")]
    assert [len(names(pod)) for pod in members] == [4] * 4
    taken = [(node_of(pod), name) for pod in pods.values() for name in names(pod)]
    assert len(taken) == len(set(taken)), "no card is given twice"


def test_the_page_names_every_example() -> None:
    page = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
    assert [file.name for file in FOLDER.glob("*.yaml") if f"../examples/devices/{file.name}" not in page] == []
