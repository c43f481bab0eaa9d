"""ResourceReservations on the embedded server: the kind as it is installed, over HTTP, with the scheduler as it is."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from kubenexus.base.clock import WallClock
from kubenexus.cli import main
from kubenexus.client.kinds import PODS, RESOURCE_RESERVATIONS, ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, get, list_call
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import (
    EmbeddedCluster,
    EmbeddedClusterSpec,
    open_embedded_cluster,
)
from kubenexus.sim.kubelets.agents import AgentSettings
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from tests.app.embedded_story import answered, scheduled

ROOT = Path(__file__).parents[2]
DEFINITIONS = ApiResource("CustomResourceDefinition", "customresourcedefinitions", "v1", "apiextensions.k8s.io", False)
NAMESPACES = ApiResource("Namespace", "namespaces", namespaced=False)
(DEFINITION,) = [
    each
    for each in yaml.safe_load_all((ROOT / "deploy" / "resourcereservations.yaml").read_text(encoding="utf-8"))
    if each["kind"] == "CustomResourceDefinition"
]
SYSTEM, GPU = "kubenexus-system", "nvidia.com/gpu"


@contextlib.asynccontextmanager
async def gpu_cluster(count: int) -> AsyncIterator[EmbeddedCluster]:
    clock = WallClock()
    template = NodeTemplate(prefix="n", capacity={"cpu": "16", "memory": "64Gi", "pods": "110", GPU: "8"})
    spec = EmbeddedClusterSpec(template.nodes(count, clock.now()), AgentSettings(), controllers=False)
    async with open_embedded_cluster(ServingOptions(), clock, random.Random(5), spec) as box:
        for name in (SYSTEM, "team-a", "ml"):
            await box.client.send(create(NAMESPACES, {"metadata": {"name": name}}))
        await box.client.send(create(DEFINITIONS, DEFINITION))
        yield box


async def command(box: EmbeddedCluster, *words: str) -> str:
    """What `kubenexus reserve` prints."""
    said = ["reserve", *words, "--kubeconfig", str(box.kubeconfig)]
    result = await asyncio.to_thread(CliRunner().invoke, main, said)
    assert result.exit_code == 0, result.output
    return result.output


def a_pod(name: str, gpus: int, **metadata: Any) -> dict[str, Any]:
    amounts = {"limits": {GPU: gpus}, "requests": {GPU: gpus}}
    spec = {"schedulerName": "kubenexus-scheduler", "containers": [{"name": "c", "image": "i", "resources": amounts}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def a_reservation(name: str, **spec: Any) -> dict[str, Any]:
    kind = RESOURCE_RESERVATIONS
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}


async def phase(client: ApiClient, name: str, wanted: str, namespace: str = SYSTEM) -> Any:
    call = get(RESOURCE_RESERVATIONS, namespace, name)
    return await answered(client, call, lambda each: each.get("status", {}).get("phase") == wanted)


async def nodes(client: ApiClient, number: int) -> dict[str, str]:
    """The nodes of pods, when so many are bound."""
    placed = await answered(client, list_call(PODS), lambda all: len(_bound(all)) >= number)
    return _bound(placed)


def _bound(pods: Any) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each["spec"]["nodeName"] for each in pods["items"] if each["spec"].get("nodeName")
    }


def test_a_team_has_its_nodes_others_wait_and_get_says_it_all() -> None:
    async def story() -> None:
        async with gpu_cluster(2) as box, scheduled(box):
            client = box.client
            made = await command(box, "create", "training", "--resource", f"{GPU}=8", "--for-namespace", "team-a")
            assert made == "resourcereservation.scheduling.kubenexus.io/training created\n"
            active = await phase(client, "training", "Active")
            (kept,) = active["status"]["nodes"].values()
            await client.send(create(PODS, a_pod("other", 8), "ml"))
            assert (await nodes(client, 1))["other"] != kept
            await client.send(create(PODS, a_pod("late", 1), "ml"))
            await client.send(create(PODS, a_pod("own", 8), "team-a"))
            assert (await nodes(client, 2))["own"] == kept
            call = get(RESOURCE_RESERVATIONS, SYSTEM, "training")
            claimed = await answered(client, call, lambda each: each["status"]["pods"] == {"team-a/own": "Bound"})
            assert claimed["status"]["phase"] == "Claimed"
            assert claimed["status"]["conditions"][0]["type"] == "ReservationActive"
            assert "finalizers" not in claimed["metadata"]
            listed = await command(box, "list")
            assert listed.splitlines()[1].split()[:7] == [SYSTEM, "training", "Claimed", "team-a", "1", "1", "1"]
            await command(box, "delete", "training")
            assert await command(box, "list") == "No reservations.\n"

    asyncio.run(story())


def test_the_next_scheduler_goes_on_before_it_places_anything() -> None:
    async def story() -> None:
        async with gpu_cluster(2) as box:
            client = box.client
            body = a_reservation("training", count=1, resources={GPU: 8}, owner={"namespaces": ["team-a"]})
            async with scheduled(box):
                await client.send(create(RESOURCE_RESERVATIONS, body, SYSTEM))
                (kept,) = (await phase(client, "training", "Active"))["status"]["nodes"].values()
            for i in range(3):
                await client.send(create(PODS, a_pod(f"other-{i}", 8), "ml"))
            async with scheduled(box):
                assert kept not in (await nodes(client, 1)).values()
                await client.send(create(PODS, a_pod("own", 8), "team-a"))
                assert (await nodes(client, 2))["own"] == kept

    asyncio.run(story())
