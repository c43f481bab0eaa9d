"""A burst of pods on nodes whose kubelets align them: agents admit from their own state, and report every ten seconds.

`NUMA_NODES=200 NUMA_PODS=5000` plays the size that docs/numa.md has figures of.
"""

import contextlib
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess, Object, Objects
from tests.e2e.scheduling import NAME, Start, pods

CRD = Path(__file__).parents[2] / "examples" / "numa" / "crd.yaml"
REPORTS = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
GPU = "nvidia.com/gpu"
NODES, PODS = int(os.environ.get("NUMA_NODES", "24")), int(os.environ.get("NUMA_PODS", "600"))
SIZE = ("--cpu=128", "--memory=512Gi", "--gpu=8")
PARTS = 20  # in which they are deleted
ALLOWED = 0.005  # of the pods that are bound
MANY = 5000  # pods, of which 1.04 % were rejected with kube-scheduler


def a_pod(number: int, chance: random.Random, scheduler: str) -> Object:
    """Guaranteed pods of many sizes, some with GPUs, some with two containers or an init container, some Burstable.
    They take seven of ten CPUs of all nodes, and three of five GPUs."""
    kind = chance.random()
    main = _container("main", chance.choice([1, 1, 1, 2, 2, 2, 4, 4, 8, 16]))
    spec: dict[str, Any] = {"schedulerName": scheduler, "containers": [main], "terminationGracePeriodSeconds": 0}
    if kind < 0.1:
        spec["containers"] = [_container("main", chance.choice([4, 8]), chance.choice([1, 2, 2, 3, 4]))]
    elif kind < 0.2:
        spec["containers"] = [main, _container("second", chance.choice([1, 1, 2]))]
    elif kind < 0.3:
        spec["initContainers"] = [_container("init", chance.choice([1, 2, 4]))]
    elif kind > 0.8:
        main["resources"] = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "labels": {"part": str(number % PARTS)}},
        "spec": spec,
    }


def _container(name: str, cpu: int, gpus: int = 0) -> dict[str, Any]:
    amounts = {"cpu": str(cpu), "memory": f"{2 * cpu}Gi"} | ({GPU: str(gpus)} if gpus else {})
    return {"name": name, "image": "app:1", "resources": {"requests": amounts, "limits": amounts}}


def rejected(seen: Objects) -> Counter[str]:
    return Counter(
        str(pod["status"].get("reason")) for pod in seen.values() if pod.get("status", {}).get("phase") == "Failed"
    )


def bound(seen: Objects) -> int:
    return sum(1 for pod in seen.values() if pod["spec"].get("nodeName"))


@pytest.fixture
def numa_agents(
    agents: Callable[..., ManagedProcess], cluster: ClusterClient, plane: ControlPlane
) -> Iterator[ManagedProcess]:
    plane.kubectl("apply", f"--filename={CRD}")
    plane.kubectl("wait", "--for=condition=Established", "crd/noderesourcetopologies.topology.node.k8s.io")
    plane.kubectl("get", "noderesourcetopologies")  # kubectl waits until the new kind can be listed
    started = agents(f"--nodes={NODES}", *SIZE, "--numa-nodes=2", "--renew-seconds=0")
    cluster.until(REPORTS, lambda found: len(found) == NODES, "all nodes report")
    yield started
    plane.kubectl("delete", f"--filename={CRD}")


@pytest.fixture
def waiting(numa_agents: ManagedProcess, cluster: ClusterClient, namespace: str) -> Iterator[Callable[[str], None]]:
    """`waiting(scheduler)`: makes all pods, for a scheduler that is not there yet."""

    def make(scheduler: str) -> None:
        chance = random.Random(20)
        made = [a_pod(number, chance, scheduler) for number in range(PODS)]
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda pod: cluster.create(pod, namespace), made))

    yield make
    for part in range(PARTS):
        cluster.send("DELETE", f"{pods(namespace)}?labelSelector=part%3D{part}")
    events = f"/api/v1/namespaces/{namespace}/events"
    for _ in range(1 + PODS // 1000):
        with contextlib.suppress(TimeoutError):  # what was deleted until then stays so
            cluster.send("DELETE", events)
            return


def admitted_or_rejected(cluster: ClusterClient, namespace: str) -> Objects:
    """The pods once each has a node and its kubelet has said what it does with it, or is known to fit nowhere."""
    return cluster.until(
        pods(namespace),
        lambda found: all(_is_decided(pod) for pod in found.values()),
        "all pods are bound and admitted or rejected",
        seconds=300,
    )


def _is_decided(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", ())
    if not pod["spec"].get("nodeName"):
        return any(each.get("reason") == "Unschedulable" for each in conditions)
    return bool(pod["status"].get("startTime"))


def test_hardly_any_pod_of_a_burst_is_rejected(
    waiting: Callable[[str], None], scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    waiting(NAME)
    scheduler()
    seen = admitted_or_rejected(cluster, namespace)
    found = rejected(seen)
    print(f"kubenexus: {bound(seen)} bound, {sum(found.values())} rejected {dict(found)}")
    assert bound(seen) >= 0.99 * PODS
    assert sum(found.values()) <= ALLOWED * bound(seen)


def test_the_default_profile_of_kube_scheduler_beside_it(
    waiting: Callable[[str], None], plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    """It looks at totals: the figure that the test above is compared with. Of few pods it may be any."""
    waiting("default-scheduler")
    program = plane.start_scheduler()
    try:
        seen = admitted_or_rejected(cluster, namespace)
    finally:
        program.stop()
    found = rejected(seen)
    print(f"kube-scheduler: {bound(seen)} bound, {sum(found.values())} rejected {dict(found)}")
    assert bound(seen) >= 0.99 * PODS
    if PODS >= MANY:
        assert sum(found.values()) > ALLOWED * bound(seen)
