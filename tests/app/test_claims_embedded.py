"""Device claims on the embedded server, scheduled over HTTP by the scheduler as it is; judged from the API objects."""

import asyncio
from collections import Counter
from typing import Any

import msgspec

from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, list_call, patch_pod_status
from tests.api.gangs.builders import LEAST, NAME
from tests.app.embedded_story import cluster, member, node_of, scheduled, until, why

GROUP = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"


async def make(client: ApiClient, resource: ApiResource, name: str, spec: dict[str, Any], namespace: str = "") -> None:
    body = {"apiVersion": GROUP, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
    await client.send(create(resource, body, namespace))


async def devices(client: ApiClient, nodes: int, each: int) -> None:
    """A class, and so many devices on each node; every two of them share a root."""
    expression = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    await make(client, kinds.DEVICE_CLASSES, "gpu", {"selectors": [expression]})
    for n in range(nodes):
        held = [
            {"name": f"gpu-{i}", "attributes": {"root": {"string": f"{n}-{i // 2}"}, "uuid": {"string": f"{n}-{i}"}}}
            for i in range(each)
        ]
        pool = {"name": f"n{n}", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": f"n{n}", "pool": pool, "devices": held}
        await make(client, kinds.RESOURCE_SLICES, f"slice-{n}", spec)


async def claim(client: ApiClient, name: str, count: int = 1, **more: Any) -> None:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}], **more}}
    await make(client, kinds.RESOURCE_CLAIMS, name, spec, "default")


async def pod(client: ApiClient, name: str, claim_name: str, **labels: str) -> None:
    made = member(name, labels)
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "10m"
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim_name}]
    await client.send(create(kinds.PODS, made, "default"))


async def claims(client: ApiClient) -> dict[str, dict[str, Any]]:
    items = msgspec.json.decode(await client.send(list_call(kinds.RESOURCE_CLAIMS)))["items"]
    return {each["metadata"]["name"]: each for each in items}


def results(found: dict[str, Any]) -> list[tuple[str, str]]:
    allocation = found.get("status", {}).get("allocation") or {"devices": {"results": []}}
    return [(each["pool"], each["device"]) for each in allocation["devices"]["results"]]


def test_f15_no_device_is_given_twice_at_full_speed_and_over_a_restart() -> None:
    async def story() -> None:
        async with cluster(3, "8") as box:
            await devices(box.client, 3, 8)
            for i in range(24):
                await claim(box.client, f"c-{i}")
            async with scheduled(box):
                for i in range(12):
                    await pod(box.client, f"p-{i}", f"c-{i}")
                await until(box.client, lambda pods: sum(map(bool, map(node_of, pods.values()))) >= 4)
            async with scheduled(box):
                for i in range(12, 24):
                    await pod(box.client, f"p-{i}", f"c-{i}")
                there = await until(box.client, lambda pods: len(pods) == 24 and all(map(node_of, pods.values())))
            held = await claims(box.client)
            taken = Counter(device for each in held.values() for device in results(each))
            assert len(taken) == 24
            assert set(taken.values()) == {1}
            for i in range(24):
                found = held[f"c-{i}"]
                assert found["status"]["reservedFor"] == [
                    {"resource": "pods", "name": f"p-{i}", "uid": there[f"p-{i}"]["metadata"]["uid"]}
                ]
                assert found["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
                assert results(found)[0][0] == node_of(there[f"p-{i}"])

    asyncio.run(story())


def test_a_pod_waits_for_its_claim_and_says_so() -> None:
    async def story() -> None:
        async with cluster(1, "8") as box, scheduled(box):
            await devices(box.client, 1, 1)
            await pod(box.client, "p", "later")
            waiting = await until(box.client, lambda pods: bool(pods) and all(map(why, pods.values())))
            assert 'could not find ResourceClaim "default/later"' in why(waiting["p"])
            await claim(box.client, "later")
            await until(box.client, lambda pods: all(map(node_of, pods.values())))

    asyncio.run(story())


def test_a_pod_with_a_template_waits_for_the_claim_that_is_made_of_it() -> None:
    async def story() -> None:
        async with cluster(1, "8") as box, scheduled(box):
            await devices(box.client, 1, 1)
            made = member("p", {})
            made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
            await box.client.send(create(kinds.PODS, made, "default"))
            waiting = await until(box.client, lambda pods: bool(pods) and all(map(why, pods.values())))
            assert why(waiting["p"]).endswith("ResourceClaim not created yet.")
            uid = waiting["p"]["metadata"]["uid"]
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
            exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
            body = {
                "apiVersion": GROUP,
                "kind": "ResourceClaim",
                "metadata": {"name": "p-gpu", "ownerReferences": [owner]},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
            }
            await box.client.send(create(kinds.RESOURCE_CLAIMS, body, "default"))
            statuses = [{"name": "gpu", "resourceClaimName": "p-gpu"}]
            await box.client.send(patch_pod_status("default", "p", uid, {"resourceClaimStatuses": statuses}))
            await until(box.client, lambda pods: all(map(node_of, pods.values())))
            assert results((await claims(box.client))["p-gpu"]) == [("n0", "gpu-0")]

    asyncio.run(story())


def test_f10_a_gang_that_shares_one_claim_goes_where_its_devices_are() -> None:
    async def story() -> None:
        async with cluster(3, "8") as box, scheduled(box):
            await devices(box.client, 3, 2)
            await claim(box.client, "shared", 2, constraints=[{"matchAttribute": f"{DRIVER}/root"}])
            for i in range(4):
                await pod(box.client, f"m-{i}", "shared", **{NAME: "gang", LEAST: "4"})
            there = await until(box.client, lambda pods: len(pods) == 4 and all(map(node_of, pods.values())))
            found = (await claims(box.client))["shared"]
            assert {node_of(each) for each in there.values()} == {pool for pool, _ in results(found)}
            users = {each["uid"] for each in found["status"]["reservedFor"]}
            assert users == {each["metadata"]["uid"] for each in there.values()}

    asyncio.run(story())


def test_f11_members_with_claims_of_their_own_are_placed_together_or_not_at_all() -> None:
    async def story(members: int) -> dict[str, str]:
        async with cluster(2, "8") as box, scheduled(box):
            await devices(box.client, 2, 4)
            for i in range(members):
                await claim(box.client, f"c-{i}", 2, constraints=[{"matchAttribute": f"{DRIVER}/root"}])
                await pod(box.client, f"m-{i}", f"c-{i}", **{NAME: "gang", LEAST: str(members)})
            there = await until(
                box.client,
                lambda pods: len(pods) == members and all(node_of(each) or why(each) for each in pods.values()),
            )
            taken = [device for each in (await claims(box.client)).values() for device in results(each)]
            assert len(taken) == len(set(taken)) == 2 * sum(map(bool, map(node_of, there.values())))
            return {name: node_of(each) for name, each in there.items()}

    placed = asyncio.run(story(4))
    assert Counter(placed.values()) == {"n0": 2, "n1": 2}
    assert not any(asyncio.run(story(5)).values())
