"""The files of examples/queues, applied to the embedded server and scheduled over HTTP."""

import asyncio
import random
from pathlib import Path

import yaml

from kubenexus.api.queues.settings import queue_settings
from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.calls import MERGE_PATCH
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, patch
from kubenexus.config import load
from kubenexus.config.queue_settings import configured_queues
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import EmbeddedClusterSpec, open_embedded_cluster
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from tests.app.embedded_story import Pods, node_of, scheduled, until, why
from tests.app.test_tenant_examples import DEFINITIONS
from tests.state.queues.queue_objects import a_queue

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "queues"
DEFINITION = ROOT / "deploy" / "queues.yaml"
CAPACITY = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
RESOURCES = {each.kind: each for each in (kinds.NAMESPACES, kinds.PODS, kinds.QUEUES)}


async def apply(client: ApiClient, name: str) -> None:
    for thing in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")):
        await client.send(create(RESOURCES[thing["kind"]], thing, thing["metadata"].get("namespace", "")))


async def placed() -> tuple[Pods, Pods]:
    """All pods when those of research are settled, and when that of production has come."""
    clock = WallClock()
    nodes = list(NodeTemplate(prefix="gpu-", capacity=CAPACITY).nodes(1, clock.now()))
    spec = EmbeddedClusterSpec(nodes, AgentSettings(), controllers=False)
    async with open_embedded_cluster(ServingOptions(), clock, random.Random(5), spec) as box:
        await box.client.send(create(DEFINITIONS, yaml.safe_load(DEFINITION.read_text(encoding="utf-8"))))
        for name in ("queues.yaml", "namespaces.yaml", "pods.yaml"):
            await apply(box.client, name)
        async with scheduled(box):
            waiting = ("nlp-2", "train-2")
            settled = await until(
                box.client,
                lambda pods: all(why(pod) if name in waiting else node_of(pod) for name, pod in pods.items()),
            )
            await apply(box.client, "production.yaml")
            return settled, await until(box.client, lambda pods: bool(node_of(pods.get("site", {"spec": {}}))))


def test_every_example_is_scheduled_by_its_queue() -> None:
    settled, last = asyncio.run(placed())
    assert why(settled["nlp-2"]) == (
        "queue language is at its limit: 2 nvidia.com/gpu of 3 nvidia.com/gpu in use, and the job asks for "
        "2 nvidia.com/gpu"
    )
    assert why(settled["train-2"]) == (
        "waits for 2 nvidia.com/gpu: 6 nvidia.com/gpu of 8 nvidia.com/gpu are in use, and other queues do not lend "
        "1 nvidia.com/gpu"
    )
    assert {name for name, pod in last.items() if node_of(pod)} == {"nlp-1", "train-1", "site"}


async def in_order() -> tuple[str, str]:
    """Why the second pod waits, and its node when the first has succeeded."""
    clock = WallClock()
    nodes = list(NodeTemplate(prefix="gpu-", capacity=CAPACITY).nodes(1, clock.now()))
    spec = EmbeddedClusterSpec(nodes, AgentSettings(), controllers=False)
    async with open_embedded_cluster(ServingOptions(), clock, random.Random(5), spec) as box:
        await box.client.send(
            create(kinds.NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision-train"}})
        )
        await apply(box.client, "after.yaml")
        async with scheduled(box):
            first = await until(
                box.client, lambda pods: bool(pods["prepare"]["status"]["phase"] == "Running" and why(pods["train"]))
            )
            await box.client.send(
                patch(
                    kinds.PODS,
                    "vision-train",
                    "prepare",
                    {"status": {"phase": "Succeeded"}},
                    part="status",
                    content_type=MERGE_PATCH,
                )
            )
            last = await until(box.client, lambda pods: bool(node_of(pods["train"])))
            return why(first["train"]), node_of(last["train"])


def test_a_pod_is_tried_when_the_one_before_it_has_succeeded() -> None:
    assert asyncio.run(in_order()) == ("waits for job prepare to succeed", "gpu-0")


def test_the_configuration_has_the_same_tree() -> None:
    configuration = load(FOLDER / "scheduler-config.yaml", BUILT_IN)
    objects = yaml.safe_load_all((FOLDER / "queues.yaml").read_text(encoding="utf-8"))
    found = [queue_settings(queue.metadata.name, queue.spec) for queue in configured_queues(configuration.args)]
    assert found == [a_queue(each["metadata"]["name"], **each["spec"]) for each in objects]


def test_the_example_of_tiers_is_accepted_by_the_schema_and_read_in_full() -> None:
    (queue,) = yaml.safe_load_all((FOLDER / "tiers.yaml").read_text(encoding="utf-8"))
    version = yaml.safe_load(DEFINITION.read_text(encoding="utf-8"))["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["tiers"]["properties"]
    assert all(set(each) <= set(schema[tier]["properties"]) for tier, each in queue["spec"]["tiers"].items())
    found = a_queue("vision", **queue["spec"])
    gpu = "nvidia.com/gpu"
    assert found.most == {gpu: 16, f"{gpu}@premium": 4, f"{gpu}@standard": 0}
    assert found.guaranteed == {gpu: 4}
    assert found.kept == found.guaranteed_by_tier == {f"{gpu}@premium": 4}


def test_the_page_names_every_example() -> None:
    page = (ROOT / "docs" / "queues.md").read_text(encoding="utf-8")
    assert [file.name for file in FOLDER.glob("*.yaml") if f"../examples/queues/{file.name}" not in page] == []
