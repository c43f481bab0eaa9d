"""The files of examples/tenants, applied to the embedded server and scheduled over HTTP."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.calls import MERGE_PATCH
from kubenexus.client.kinds import ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, patch
from kubenexus.config import load
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import EmbeddedClusterSpec, open_embedded_cluster
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from tests.app.embedded_story import Pods, node_of, scheduled, until, why

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "tenants"
CAPACITY = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
DEFINITIONS = ApiResource(
    "CustomResourceDefinition", "customresourcedefinitions", group="apiextensions.k8s.io", namespaced=False
)
QUEUES = {
    "v1beta2": (kinds.CLUSTER_QUEUES, kinds.LOCAL_QUEUES),
    "v1beta1": (kinds.CLUSTER_QUEUES_OLD, kinds.LOCAL_QUEUES_OLD),
}


def definition(resource: ApiResource) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"plural": resource.plural, "kind": resource.kind},
            "versions": [{"name": resource.version, "served": True, "storage": True, "schema": schema}],
        },
    }


async def apply(client: ApiClient, name: str, resources: dict[str, ApiResource]) -> None:
    for thing in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")):
        resource, meta = resources[thing["kind"]], thing["metadata"]
        if resource is kinds.NODES:  # it is there, and gets what the file has
            await client.send(patch(resource, "", meta["name"], thing, content_type=MERGE_PATCH))
        else:
            await client.send(create(resource, thing | {"apiVersion": resource.api_version}, meta.get("namespace", "")))


async def placed(version: str) -> Pods:
    """All files applied, the queues last: what waits for them is woken by them."""
    clock, queues = WallClock(), QUEUES[version]
    resources = {each.kind: each for each in (kinds.NAMESPACES, kinds.NODES, kinds.PODS, *queues)}
    nodes = list(NodeTemplate(prefix="gpu-gold-", capacity=CAPACITY).nodes(2, clock.now()))[1:]
    spec = EmbeddedClusterSpec(nodes, AgentSettings(), controllers=False)
    async with open_embedded_cluster(ServingOptions(), clock, random.Random(5), spec) as box:
        for queue in queues:
            await box.client.send(create(DEFINITIONS, definition(queue)))
        for name in ("namespaces.yaml", "reserved-node.yaml", "pods.yaml"):
            await apply(box.client, name, resources)
        async with scheduled(box):
            await until(
                box.client, lambda pods: bool(node_of(pods["trains"]) and why(pods["tries"]) and why(pods["pays"]))
            )
            await apply(box.client, "kueue.yaml", resources)
            return await until(box.client, lambda pods: bool(node_of(pods["pays"])))


@pytest.mark.parametrize("version", QUEUES)
def test_every_example_is_scheduled_by_the_tier_of_its_tenant(version: str) -> None:
    pods = asyncio.run(placed(version))
    assert {name: node_of(pod) for name, pod in pods.items()} == {
        "trains": "gpu-gold-1",
        "tries": "",
        "pays": "gpu-gold-1",
    }
    assert "reserved for tenants of a higher tier" in why(pods["tries"])


def test_the_configuration_can_be_loaded() -> None:
    args = load(FOLDER / "scheduler-config.yaml", BUILT_IN).args["kubenexus-scheduler"]["KubeNexus"]
    assert (args["tierBoosts"]["gold"], args["namespacePriorities"]) == (50, {"nightly": -10})


def test_the_page_names_every_example() -> None:
    page = (ROOT / "docs" / "tenants.md").read_text(encoding="utf-8")
    assert [file.name for file in FOLDER.glob("*.yaml") if f"../examples/tenants/{file.name}" not in page] == []
