"""PodGroups with device claims on the embedded server, with its controllers and the scheduler as they are."""

import asyncio
from typing import Any

import msgspec
import pytest

from kubenexus.client import kinds
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, list_call
from kubenexus.sim.apiserver.serving import ServingOptions
from tests.app.embedded_story import answered, cluster, member, node_of, scheduled, until, why
from tests.app.test_claims_embedded import claims, devices, make, results

GATES = ServingOptions(gates=("GenericWorkload", "DRAWorkloadResourceClaims"))
CLAIM = {"name": "fabric", "resourceClaimTemplateName": "t"}


async def a_group(client: ApiClient, policy: dict[str, Any], devices: int) -> None:
    """A template for so many devices, and the PodGroup `g` with a claim of it."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": devices}
    spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
    await make(client, kinds.RESOURCE_CLAIM_TEMPLATES, "t", spec, "default")
    body = {
        "apiVersion": kinds.POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": policy, "resourceClaims": [CLAIM]},
    }
    await client.send(create(kinds.POD_GROUPS, body, "default"))


async def a_member(client: ApiClient, name: str) -> None:
    made = member(name, {})
    made["spec"] |= {"resourceClaims": [CLAIM], "schedulingGroup": {"podGroupName": "g"}}
    await client.send(create(kinds.PODS, made, "default"))


@pytest.mark.parametrize(
    "policy", [pytest.param({"gang": {"minCount": 4}}, id="gang"), pytest.param({"basic": {}}, id="each by itself")]
)
def test_pods_of_a_group_share_its_claim(policy: dict[str, Any]) -> None:
    async def story() -> None:
        async with cluster(3, "8", GATES, controllers=True) as box, scheduled(box):
            await devices(box.client, 3, 2)
            await a_group(box.client, policy, 2)
            for i in range(4):
                await a_member(box.client, f"m-{i}")
            there = await until(box.client, lambda pods: len(pods) == 4 and all(map(node_of, pods.values())))
            (found,) = (await claims(box.client)).values()
            assert {node_of(each) for each in there.values()} == {pool for pool, _ in results(found)}
            group = msgspec.json.decode(await box.client.send(list_call(kinds.POD_GROUPS)))["items"][0]
            (user,) = found["status"]["reservedFor"]
            assert user == {
                "apiGroup": "scheduling.k8s.io",
                "resource": "podgroups",
                "name": "g",
                "uid": group["metadata"]["uid"],
            }

    asyncio.run(story())


def test_the_gang_is_placed_as_a_whole_or_not_at_all_and_nothing_stays_allocated() -> None:
    async def story() -> None:
        async with cluster(2, "3", GATES, controllers=True) as box, scheduled(box):
            await devices(box.client, 2, 2)
            await a_group(box.client, {"gang": {"minCount": 4}}, 1)
            for i in range(4):
                await a_member(box.client, f"m-{i}")
            refused = await until(box.client, lambda pods: len(pods) == 4 and all(map(why, pods.values())))
            assert not any(map(node_of, refused.values()))
            call = list_call(kinds.RESOURCE_CLAIMS)
            left = await answered(box.client, call, lambda found: len(found["items"]) == 1)
            assert results(left["items"][0]) == []

    asyncio.run(story())
