"""Pods with extended resources that a DeviceClass backs, on the embedded server: the scheduler makes their claim."""

import asyncio
from typing import Any

import pytest

from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Call
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create
from tests.app.embedded_story import cluster, member, node_of, scheduled, until, why
from tests.app.test_claims_embedded import DRIVER, claims, devices, make, results

RESOURCE = "example.com/gpu"
REFUSAL = ApiError(403, "Forbidden", "exceeded quota: claims, requested: count/resourceclaims=1, limited: 0")


async def pod_with_extended_resource(client: ApiClient) -> None:
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}], "extendedResourceName": RESOURCE}
    await make(client, kinds.DEVICE_CLASSES, "by-name", spec)
    made = member("p", {})
    amounts = {"cpu": "10m", RESOURCE: "1"}
    made["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": {RESOURCE: "1"}}
    await client.send(create(kinds.PODS, made, "default"))


def test_a_claim_is_made_for_an_extended_resource_and_named_in_the_pod() -> None:
    async def story() -> None:
        async with cluster(1, "8") as box, scheduled(box):
            await devices(box.client, 1, 1)
            await pod_with_extended_resource(box.client)
            pods = await until(box.client, lambda pods: all(map(node_of, pods.values())))
            (made,) = (await claims(box.client)).values()
            assert made["metadata"]["name"].startswith("p-extended-resources-")
            assert results(made) == [("n0", "gpu-0")]
            named = pods["p"]["status"]["extendedResourceClaimStatus"]
            assert named["resourceClaimName"] == made["metadata"]["name"]

    asyncio.run(story())


def test_f13_a_claim_that_admission_refuses_is_a_reason_and_holds_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with cluster(1, "8") as box:
            refused: list[str] = []

            async def send(call: Call, *, timeout: float = 10.0) -> bytes:
                if call.method == "POST" and call.path.endswith("/resourceclaims"):
                    refused.append(call.path)
                    raise REFUSAL
                return await sent(call, timeout=timeout)

            await devices(box.client, 1, 1)
            await pod_with_extended_resource(box.client)
            sent = box.client.send
            monkeypatch.setattr(box.client, "send", send)
            async with scheduled(box) as scheduler:
                waiting = await until(box.client, lambda pods: "exceeded quota" in "".join(map(why, pods.values())))
                assert "create claim for extended resources" in why(waiting["p"])
                assert refused
                assert not await _taken(box.client)
                assert not scheduler.ledger.nodes.claims.allocated.in_pool((DRIVER, "n0"))
                monkeypatch.setattr(box.client, "send", sent)
                await until(box.client, lambda pods: all(map(node_of, pods.values())))

    asyncio.run(story())


async def _taken(client: ApiClient) -> list[Any]:
    return [result for each in (await claims(client)).values() for result in results(each)]
