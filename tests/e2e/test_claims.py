"""Device claims on a real API server: slices of a driver, claims from templates, judged from the API objects alone.

`CLAIM_NODES=200` plays the drain at full size: 1,600 GPUs, then 100 gangs of 8 that take them all.
"""

import os
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, Object, Objects
from tests.e2e.scheduling import Start, a_node, a_pod, condition, make_nodes, node_of, pods

GROUP = "/apis/resource.k8s.io/v1"
DRIVER = "gpu.example.com"
NAME, LEAST = "pod-group.scheduling.kubenexus.io/name", "pod-group.scheduling.kubenexus.io/min-available"
NODES, GPUS = int(os.environ.get("CLAIM_NODES", "20")), 8
GANGS = NODES // 2  # of 8 members with two GPUs each
AT_ONCE = 8
PATIENCE = 600.0
EXAMPLES = Path(__file__).parents[2] / "examples" / "claims"
SLICES = EXAMPLES / "slices.yaml"  # for clusters without the driver, which these tests play


def many(do: Callable[[int], object], count: int) -> None:
    """Everything from 0 to `count`, a few at a time."""
    with ThreadPoolExecutor(AT_ONCE) as workers:
        list(workers.map(do, range(count)))


def gpu_slice(node: str, gpus: int = GPUS, **pool: int) -> Object:
    """What a driver publishes: every two GPUs share a root, every four an NVLink domain."""
    devices = [
        {
            "name": f"gpu-{i}",
            "attributes": {
                "root": {"string": f"{node}-{i // 2}"},
                "domain": {"string": f"{node}-{i // 4}"},
                "uuid": {"string": f"{node}-{i}"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for i in range(gpus)
    ]
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-{DRIVER}"}}
    described = {"name": node, "generation": 1, "resourceSliceCount": 1, **pool}
    return {**kind, "spec": {"driver": DRIVER, "nodeName": node, "pool": described, "devices": devices}}


def device_class() -> Object:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": DRIVER}}
    return {**kind, "spec": {"selectors": [selector]}}


def template(name: str, count: int, match: str = "") -> Object:
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": count}
    devices: dict[str, Any] = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if match:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/{match}"}]
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name}}
    return {**kind, "spec": {"spec": {"devices": devices}}}


def a_claiming_pod(name: str, source: str, **labels: str) -> Object:
    claims = [{"name": "gpu", "resourceClaimTemplateName": source}]
    made = a_pod(name, "10m", resourceClaims=claims, metadata={"labels": labels})
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return made


def held(claims: Objects) -> Counter[tuple[str, str]]:
    """How many claims hold each device, by pool and name."""
    allocations = (each.get("status", {}).get("allocation") or {} for each in claims.values())
    results = (each for found in allocations for each in found.get("devices", {}).get("results", ()))
    return Counter((each["pool"], each["device"]) for each in results)


class Observer:
    """Watches claims by itself, and keeps every device that two of them held at one moment."""

    def __init__(self, cluster: ClusterClient, namespace: str) -> None:
        self.twice: list[tuple[str, str]] = []
        self._cluster, self._namespace = cluster, namespace
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._owners: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._held: dict[str, set[tuple[str, str]]] = {}

    def _watch(self) -> None:
        while not self._ended.is_set():
            for name, claim in self._cluster.changes(claims_of(self._namespace), seconds=5.0, known=self._held):
                for device in self._held.pop(name, ()):
                    self._owners[device].discard(name)
                self._held[name] = devices = set(held({name: claim or {}}))
                for device in devices:
                    self._owners[device].add(name)
                    if len(self._owners[device]) > 1:
                        self.twice.append(device)

    def __enter__(self) -> "Observer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


@pytest.fixture
def gpus(plane: ControlPlane, cluster: ClusterClient) -> Iterator[ClusterClient]:
    """A cluster with the controller that makes claims from templates, and the one that removes them after their pods.
    No other controller runs: nodes without agents would be judged."""
    wanted = "--controllers=resourceclaim-controller,garbage-collector-controller"
    program = plane.start_controllers(wanted, "--kube-api-qps=2000", "--kube-api-burst=2000")
    cluster.create(device_class())
    yield cluster
    program.stop()


def claims_of(namespace: str) -> str:
    return f"{GROUP}/namespaces/{namespace}/resourceclaims"


def wait_for(cluster: ClusterClient, path: str, number: int, count: Callable[[Object], bool], what: str) -> None:
    """Until so many objects count. Looks at each change alone: there are thousands."""
    counted = {name for name, found in cluster.objects(path).items() if count(found)}
    if len(counted) == number:
        return
    for name, found in cluster.changes(path, seconds=PATIENCE, known=counted):
        (counted.add if found is not None and count(found) else counted.discard)(name)
        if len(counted) == number:
            return
    raise AssertionError(f"after {PATIENCE:g} s {len(counted)} of {number}: {what}")


def until_bound(cluster: ClusterClient, namespace: str, number: int) -> Objects:
    wait_for(cluster, pods(namespace), number, lambda pod: "nodeName" in pod["spec"], "pods are bound")
    return cluster.objects(pods(namespace))


def make_machines(cluster: ClusterClient, number: int) -> None:
    names = [f"gpu-{i:03d}" for i in range(number)]
    many(lambda i: make_nodes(cluster, a_node(names[i], cpu="64")), number)
    many(lambda i: cluster.create(gpu_slice(names[i])), number)


def test_f15_each_device_once_at_full_speed_then_gangs_and_a_kill_in_between(
    scheduler: Start, gpus: ClusterClient, namespace: str
) -> None:
    make_machines(gpus, NODES)
    gpus.create(template("one", 1), namespace)
    gpus.create(template("pair", 2, "root"), namespace)
    first = scheduler()
    with Observer(gpus, namespace) as observer:
        for half in range(2):
            names = [f"one-{half}-{i:04d}" for i in range(NODES * GPUS // 2)]
            many(partial(_create_claiming, gpus, namespace, names), len(names))
            if not half:
                first.kill()
                second = scheduler()
        until_bound(gpus, namespace, NODES * GPUS)
        given = held(gpus.objects(claims_of(namespace)))
        assert len(given) == NODES * GPUS
        assert set(given.values()) == {1}

        names = list(gpus.objects(pods(namespace)))
        many(lambda i: gpus.delete(f"{pods(namespace)}/{names[i]}", grace=0), len(names))
        wait_for(gpus, claims_of(namespace), 0, lambda claim: True, "claims are there")
        for half in range(2):
            labels = [{NAME: f"gang-{half}-{i // 8}", LEAST: "8"} for i in range(GANGS * 4)]
            many(partial(_create_member, gpus, namespace, half, labels), GANGS * 4)
            if not half:
                second.kill()
                scheduler()
        found = until_bound(gpus, namespace, GANGS * 8)
        claims = gpus.objects(claims_of(namespace))
    assert not observer.twice
    assert len(held(claims)) == GANGS * 16
    assert set(held(claims).values()) == {1}
    for claim in claims.values():
        devices = held({"": claim})
        owner = claim["metadata"]["ownerReferences"][0]["name"]
        assert {pool for pool, _ in devices} == {node_of(found, owner)}
        assert len({int(device.removeprefix("gpu-")) // 2 for _, device in devices}) == 1  # on one root
        assert [each["name"] for each in claim["status"]["reservedFor"]] == [owner]


def _create_claiming(cluster: ClusterClient, namespace: str, names: list[str], number: int) -> None:
    cluster.create(a_claiming_pod(names[number], "one"), namespace)


def _create_member(
    cluster: ClusterClient, namespace: str, half: int, labels: list[dict[str, str]], number: int
) -> None:
    cluster.create(a_claiming_pod(f"m-{half}-{number:04d}", "pair", **labels[number]), namespace)


WITH_PODS = sorted(set(EXAMPLES.glob("*.yaml")) - {SLICES})


@pytest.mark.parametrize("example", WITH_PODS, ids=lambda path: path.stem)
def test_the_examples_run_on_a_real_server(
    example: Path, scheduler: Start, gpus: ClusterClient, namespace: str
) -> None:
    make_machines(gpus, 2)
    scheduler()
    made = gpus.apply(example.read_text(encoding="utf-8"), namespace)
    number = sum(each["kind"] == "Pod" for each in made)
    found = until_bound(gpus, namespace, number)
    claims = gpus.objects(claims_of(namespace))
    assert set(held(claims).values()) == {1}
    assert {pool for pool, _ in held(claims)} <= {node_of(found, name) for name in found}


def test_a_pod_whose_claim_cannot_be_served_waits_and_says_so(
    scheduler: Start, gpus: ClusterClient, namespace: str
) -> None:
    make_machines(gpus, 2)
    scheduler()
    gpus.create(template("too-many", 16), namespace)
    gpus.create(a_claiming_pod("large", "too-many"), namespace)
    told = gpus.until(
        pods(namespace),
        lambda all: "cannot allocate all claims" in condition(all, "large")["message"],
        "it is told that the devices are too few",
    )
    assert "0/2 nodes are available: 2 cannot allocate all claims" in condition(told, "large")["message"]


def test_a_device_taint_rule_keeps_claims_away_until_it_goes(
    scheduler: Start, gpus: ClusterClient, namespace: str
) -> None:
    make_machines(gpus, 1)
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "maintenance"}}
    taint = {"key": "example.com/maintenance", "effect": "NoSchedule"}
    gpus.create({**kind, "spec": {"deviceSelector": {"driver": DRIVER}, "taint": taint}})
    scheduler()
    gpus.create(template("one", 1), namespace)
    gpus.create(a_claiming_pod("waits", "one"), namespace)
    gpus.until(
        pods(namespace),
        lambda all: "cannot allocate all claims" in condition(all, "waits")["message"],
        "all devices are tainted",
    )
    gpus.delete(f"{GROUP}/devicetaintrules/maintenance")
    until_bound(gpus, namespace, 1)
