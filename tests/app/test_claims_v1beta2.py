"""Device claims on a server that has them as `resource.k8s.io/v1beta2` only, as Kubernetes 1.33 does."""

import asyncio
from typing import Any

import msgspec
import pytest

from kubenexus.client import kinds
from kubenexus.client.calls import ApiError
from kubenexus.client.kinds import ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, list_call
from kubenexus.sim.apiserver.serving import ServingOptions
from kubenexus.sim.embedded_cluster import EmbeddedCluster
from tests.app.embedded_story import cluster, member, node_of, scheduled, until, why
from tests.app.test_claims_embedded import DRIVER, results

BETA = ServingOptions(versions={"resource.k8s.io/v1": False, "resource.k8s.io/v1beta2": True})


async def make(client: ApiClient, plural: str, kind: str, name: str, spec: dict[str, Any], namespace: str = "") -> None:
    resource = ApiResource(kind, plural, "v1beta2", "resource.k8s.io", bool(namespace))
    body = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
    await client.send(create(resource, body, namespace))


async def furnish(box: EmbeddedCluster) -> None:
    """A class that backs a resource, two devices on each of two nodes, and a template for one device."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    named = {"selectors": [selector], "extendedResourceName": "example.com/gpu"}
    await make(box.client, "deviceclasses", "DeviceClass", "gpu", named)
    for n in range(2):
        pool = {"name": f"n{n}", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"d{i}"} for i in range(2)]
        spec = {"driver": DRIVER, "nodeName": f"n{n}", "pool": pool, "devices": devices}
        await make(box.client, "resourceslices", "ResourceSlice", f"s{n}", spec)
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    wanted = {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
    await make(box.client, "resourceclaimtemplates", "ResourceClaimTemplate", "t", wanted, "default")


async def pod(client: ApiClient, name: str, *, extended: bool = False) -> None:
    made = member(name, {})
    if extended:
        made["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
    else:
        made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    await client.send(create(kinds.PODS, made, "default"))


def test_claims_are_read_and_written_in_the_version_that_is_served() -> None:
    async def story() -> None:
        async with cluster(2, "8", BETA, controllers=True) as box, scheduled(box):
            await furnish(box)
            for i in range(3):
                await pod(box.client, f"p-{i}")
            await pod(box.client, "extended", extended=True)
            there = await until(box.client, lambda pods: len(pods) == 4 and all(map(node_of, pods.values())))
            listed = msgspec.json.decode(await box.client.send(list_call(kinds.RESOURCE_CLAIMS_BETA)))
            assert listed["apiVersion"] == "resource.k8s.io/v1beta2"
            held = {each["status"]["reservedFor"][0]["name"]: results(each)[0] for each in listed["items"]}
            assert len(set(held.values())) == 4
            assert {name: pool for name, (pool, _) in held.items()} == {n: node_of(p) for n, p in there.items()}
            with pytest.raises(ApiError, match="404"):
                await box.client.send(list_call(kinds.RESOURCE_CLAIMS))

    asyncio.run(story())


def test_rules_for_taints_are_read_in_that_version_too() -> None:
    async def story() -> None:
        async with cluster(2, "8", BETA, controllers=True) as box, scheduled(box):
            await furnish(box)
            rule = {"taint": {"key": "broken", "effect": "NoSchedule"}, "deviceSelector": {"driver": DRIVER}}
            await make(box.client, "devicetaintrules", "DeviceTaintRule", "all", rule)
            await pod(box.client, "p")
            waiting = await until(box.client, lambda pods: bool(why(pods["p"])) and "claims" in why(pods["p"]))
            assert "2 cannot allocate all claims" in why(waiting["p"])

    asyncio.run(story())
