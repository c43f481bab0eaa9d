"""What queues promise, on a real API server: limits by tier, guarantees while others take back, expected starts, and
sums of usage that follow every way in which a pod can leave."""

import datetime
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubenexus.base.clock import WallClock
from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess, Object, Objects
from kubenexus.testing.controlplane.plane import free_ports
from tests.e2e.scheduling import Start, a_node, a_pod, condition, make_nodes, node_of, placed, pods
from tests.e2e.test_queues import a_queue, kind
from tests.e2e.test_serving import get

__all__ = ["kind"]  # a fixture
CLOCK = WallClock()
GPU = "nvidia.com/gpu"
ALL_PODS = "/api/v1/pods"
SETTINGS = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: kubenexus-scheduler
  pluginConfig:
  - name: GangPreemption
    args: {reclaim: true}
  - name: KubeNexus
    args: {queueUsageHalfLifeSeconds: 60}
"""


def a_gpu_node(name: str, gpus: str, tier: str) -> Object:
    node = a_node(name, **{"hardware.kubenexus.io/tier": tier})
    for field in ("capacity", "allocatable"):
        node["status"][field] = {**node["status"][field], GPU: gpus}
    return node


def a_gpu_pod(name: str) -> Object:
    pod = a_pod(name)
    pod["spec"]["containers"][0]["resources"] = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    return pod


def another_namespace(cluster: ClusterClient, name: str) -> str:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


class Metrics:
    """The figures of queues that a running scheduler shows."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token

    def figure(self, name: str, **labels: str) -> float | None:
        """Returns the value of the first line with these labels, None if there is none."""
        try:
            text = get(self._port, "/metrics", self._token)[1]
        except OSError:
            return None
        for line in text.splitlines():
            if line.startswith(f"{name}{{") and all(f'{key}="{value}"' in line for key, value in labels.items()):
                return float(line.rsplit(" ", 1)[1])
        return None


@pytest.fixture
def shown(scheduler: Start, plane: ControlPlane, kind: Path, tmp_path: Path) -> Callable[[], tuple[Any, ...]]:
    """Starts a scheduler that takes back and remembers; returns it with its secured port and its metrics."""

    def start() -> tuple[ManagedProcess, int, Metrics]:
        (port,) = free_ports(1)
        config = tmp_path / "config.yaml"
        config.write_text(SETTINGS, encoding="utf-8")
        program = scheduler(
            f"--config={config}", f"--secure-port={port}", "--bind-address=127.0.0.1", kubeconfig=str(kind)
        )
        return program, port, Metrics(port, plane.token())

    return start


def test_a_limit_of_a_tier_keeps_jobs_from_its_nodes_and_is_named(
    scheduler: Start, cluster: ClusterClient, namespace: str, kind: Path
) -> None:
    make_nodes(cluster, a_gpu_node("prem", "4", "premium"), a_gpu_node("eco", "1", "economy"))
    cluster.create(a_queue("ml", namespaces=[namespace], tiers={"premium": {"limit": {GPU: "1"}}}))
    scheduler(kubeconfig=kind)
    for i in range(3):
        cluster.create(a_gpu_pod(f"p{i}"), namespace)
    said = f"queue ml is at its limit on premium nodes: 1 {GPU} of 1 {GPU} in use, and the job asks for 1 {GPU}"
    waits = cluster.until(
        pods(namespace),
        lambda all: len(placed(all)) == 2 and any(said in condition(all, name).get("message", "") for name in all),
        "two are bound, and the third names the limit",
    )
    assert sorted(placed(waits).values()) == ["eco", "prem"]
    (third,) = set(waits) - set(placed(waits))
    (premium,) = [name for name in waits if node_of(waits, name) == "prem"]
    cluster.delete(f"{pods(namespace)}/{premium}", grace=0)
    found = cluster.until(pods(namespace), lambda all: third in placed(all), "the third is bound")
    assert node_of(found, third) == "prem"


def test_taking_back_ends_at_the_guarantee_of_the_queue_that_borrowed(
    shown: Callable[[], tuple[Any, ...]], agents: Start, cluster: ClusterClient, namespace: str
) -> None:
    other = another_namespace(cluster, f"{namespace}-owner")
    agents("--nodes=2", "--cpu=4", "--memory=16Gi")
    cluster.create(a_queue("borrower", guaranteed={"cpu": "3"}, namespaces=[namespace]))
    cluster.create(a_queue("owner", guaranteed={"cpu": "5"}, namespaces=[other]))
    program, _, metrics = shown()
    grace: dict[str, Any] = {"terminationGracePeriodSeconds": 1}
    for i in range(8):
        cluster.create(a_pod(f"b{i}", "1", **grace), namespace)
    cluster.until(pods(namespace), lambda all: len(placed(all)) == 8, "the borrower has all")
    for i in range(7):
        cluster.create(a_pod(f"o{i}", "1", **grace), other)
    fewest, reasons = 8, set[str]()

    def is_settled(all: Objects) -> bool:
        nonlocal fewest
        live = [each for name, each in all.items() if name.startswith(f"{namespace}/")]
        fewest = min(fewest, sum("deletionTimestamp" not in each["metadata"] for each in live))
        reasons.update(condition(all, name, "DisruptionTarget").get("reason", "") for name in all)
        waiting = [name for name in all if name.startswith(f"{other}/") and not node_of(all, name)]
        return len(waiting) == 2

    cluster.until(ALL_PODS, is_settled, "the owner has its five, and two wait", seconds=60)
    left = cluster.objects(pods(namespace))
    assert (fewest, len(left)) == (3, 3), "what is guaranteed to the borrower stays"
    assert reasons & {"EvictionByEvictionAPI", "PreemptionByScheduler"}
    assert metrics.figure("kubenexus_queue_reclaimed_pods_total", queue="borrower") == 5.0
    program.until(lambda: metrics.figure("kubenexus_queue_used", queue="owner", resource="cpu") == 5.0)
    assert metrics.figure("kubenexus_preemptions_ended_total", end="failed") is None


def test_an_expected_start_is_a_range_that_holds_the_start(
    shown: Callable[[], tuple[Any, ...]], plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1", cpu="1"))
    _, port, _ = shown()
    declared = {"annotations": {"scheduling.kubenexus.io/max-runtime": "10s"}}
    cluster.create(a_pod("busy", "1", metadata=declared, restartPolicy="Never"), namespace)
    cluster.until(pods(namespace), lambda all: "busy" in placed(all), "busy is bound")
    cluster.create(a_pod("next", "1"), namespace)
    cluster.until(pods(namespace), lambda all: "message" in condition(all, "next"), "next is refused")
    (found,) = eta(plane, port, namespace)
    assert found["basis"] == "jobs that run: 1 with a declared runtime"
    early, likely, late = (_seconds(found[key]) for key in ("early", "likely", "late"))
    assert early < likely < late
    while CLOCK.now() < likely:  # the cluster is watched meanwhile: nothing may start
        for all in cluster.states(pods(namespace), seconds=likely - CLOCK.now()):
            assert "next" not in placed(all)
    cluster.patch(f"{pods(namespace)}/busy/status", {"status": {"phase": "Succeeded"}})
    started = cluster.until(pods(namespace), lambda all: "next" in placed(all), "next is bound")
    at = _seconds(condition(started, "next")["lastTransitionTime"])
    assert early - 1 <= at <= late + 1


def eta(plane: ControlPlane, port: int, namespace: str) -> list[Object]:
    """What `kubenexus eta pod/next` says."""
    command = [sys.executable, "-m", "kubenexus", "eta", "pod/next", f"--namespace={namespace}", "--output=json"]
    command += [f"--kubeconfig={plane.kubeconfig()}", f"--scheduler=https://127.0.0.1:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr + done.stdout
    return list(json.loads(done.stdout)["items"])


def _seconds(stamp: str) -> float:
    return datetime.datetime.fromisoformat(stamp).timestamp()


def test_the_sum_of_usage_follows_every_way_in_which_a_pod_leaves(
    shown: Callable[[], tuple[Any, ...]], cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1", cpu="8"))
    cluster.create(a_queue("ml", guaranteed={"cpu": "2"}, namespaces=[namespace]))
    program, _, metrics = shown()
    names = ["deleted", "succeeded", "failed", "evicted", "gone-meanwhile", "kept"]
    for name in names:
        cluster.create(a_pod(name, "1", restartPolicy="Never", terminationGracePeriodSeconds=0), namespace)
    cluster.until(pods(namespace), lambda all: len(placed(all)) == len(names), "all are bound")

    def uses(cpus: float) -> None:
        program.until(lambda: metrics.figure("kubenexus_queue_used", queue="ml", resource="cpu") == cpus, 60)

    uses(6.0)
    assert metrics.figure("kubenexus_queue_borrowed", queue="ml", resource="cpu") == 4.0
    program.until(lambda: (metrics.figure("kubenexus_queue_past_share", queue="ml") or 0.0) > 0.0, 20)
    cluster.delete(f"{pods(namespace)}/deleted", grace=0)
    uses(5.0)
    for name, phase in (("succeeded", "Succeeded"), ("failed", "Failed")):
        cluster.patch(f"{pods(namespace)}/{name}/status", {"status": {"phase": phase}})
    uses(3.0)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted", "namespace": namespace}}
    cluster.send("POST", f"{pods(namespace)}/evicted/eviction", eviction)
    uses(2.0)
    program.kill()
    cluster.delete(f"{pods(namespace)}/gone-meanwhile", grace=0)
    program.start()
    uses(1.0)
    cluster.delete(f"{pods(namespace)}/kept", grace=0)
    program.until(lambda: metrics.figure("kubenexus_queue_share", queue="ml") == 0.0, 60)
    assert metrics.figure("kubenexus_queue_used", queue="ml", resource="cpu") is None
    cluster.create(a_pod("after", "8"), namespace)
    cluster.until(pods(namespace), lambda all: "after" in placed(all), "a pod that needs the whole node is bound")
