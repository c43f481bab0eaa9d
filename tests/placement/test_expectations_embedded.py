"""The eight expectations on the embedded server, scheduled over HTTP by the scheduler as it is."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.calls import MERGE_PATCH
from kubenexus.client.kinds import ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, list_call, patch
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import EmbeddedClusterSpec, open_embedded_cluster
from tests.app.embedded_story import scheduled, until
from tests.placement import gpu_cluster
from tests.placement.expectations import (
    EXPECTATIONS,
    FILLED,
    FILLING,
    Cluster,
    Expectation,
    judge,
    models_of,
    node_of,
    settled,
)

STAYS = 1.0  # seconds for which a pod that waits is watched


async def served(client: ApiClient, kind: ApiResource) -> dict[str, Any]:
    items = msgspec.json.decode(await client.send(list_call(kind)))["items"]
    return {each["metadata"]["name"]: each for each in items}


@contextlib.asynccontextmanager
async def gpu_hall() -> AsyncIterator[ApiClient]:
    """The eight nodes on an embedded server, and the scheduler with no configuration."""
    spec = EmbeddedClusterSpec(controllers=False)
    async with open_embedded_cluster(ServingOptions(), WallClock(), random.Random(5), spec) as box:
        for kind, objects in (
            (kinds.NAMESPACES, gpu_cluster.namespaces()),
            (kinds.NODES, gpu_cluster.nodes()),
            (kinds.RESOURCE_SLICES, gpu_cluster.slices()),
        ):
            for each in objects:
                await box.client.send(create(kind, each))
        for name in await served(box.client, kinds.NODES):  # there is no agent that removes the taint of new nodes
            await box.client.send(patch(kinds.NODES, "", name, {"spec": {"taints": None}}, content_type=MERGE_PATCH))
        async with scheduled(box):
            yield box.client


async def add(client: ApiClient, *pods: dict[str, Any]) -> None:
    for each in pods:
        await client.send(create(kinds.PODS, each, each["metadata"]["namespace"]))


@pytest.mark.parametrize("expectation", EXPECTATIONS, ids=lambda each: each.name)
def test_the_expectation_holds_as_it_is_named(expectation: Expectation) -> None:
    async def story() -> None:
        async with gpu_hall() as client:
            await add(client, *expectation.pods)
            await until(client, lambda pods: settled(expectation, pods))
            if expectation.waiting:
                await asyncio.sleep(STAYS)
            nodes, slices = await served(client, kinds.NODES), await served(client, kinds.RESOURCE_SLICES)
            assert judge(expectation, Cluster(await served(client, kinds.PODS), nodes, slices)) == []

    asyncio.run(story())


def test_a_bronze_tenant_gets_the_best_gpus_only_when_there_are_no_others() -> None:
    async def story() -> None:
        async with gpu_hall() as client:
            for number, each in enumerate(FILLING, 1):

                def bound(pods: dict[str, Any], number: int = number) -> bool:
                    return sum(bool(node_of(pods, name)) for name in pods) == number

                await add(client, each)
                pods = await until(client, bound)
            assert models_of(pods, await served(client, kinds.NODES)) == list(FILLED)

    asyncio.run(story())
