"""Restarts, outages, other people's writes: no pod is lost, no node is overbooked."""

import os
import signal
from collections import Counter
from pathlib import Path

from kubenexus.base.clock import WallClock
from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess, Objects
from tests.e2e.scheduling import Start, a_node, a_pod, make_nodes, placed, pods, schedules

CLOCK = WallClock()
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
ELECT = (
    "--leader-elect=true",
    "--leader-elect-resource-namespace=kube-system",
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)


def fill(cluster: ClusterClient, namespace: str, count: int, first: int = 0) -> None:
    for i in range(first, first + count):
        cluster.create(a_pod(f"p{i}", "1"), namespace)


def overbooked(objects: Objects, most: int) -> dict[str, int]:
    """Nodes with more pods than they take."""
    return {node: count for node, count in Counter(placed(objects).values()).items() if count > most}


def test_an_api_server_that_is_killed_midway(
    scheduler: Start, plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, *(a_node(f"n{i}", cpu="10") for i in range(4)))
    fill(cluster, namespace, 20)
    program = scheduler(wait=False)
    cluster.until(pods(namespace), lambda all: len(placed(all)) >= 3, "it has begun")
    plane.kill_apiserver()
    plane.start_apiserver()
    fill(cluster, namespace, 20, first=20)
    seen = cluster.until(pods(namespace), lambda all: len(placed(all)) == 40, "all are bound", seconds=40)
    assert overbooked(seen, 10) == {}
    assert program.running


def test_a_scheduler_that_is_killed_and_started_again(scheduler: Start, cluster: ClusterClient, namespace: str) -> None:
    make_nodes(cluster, *(a_node(f"n{i}", cpu="10") for i in range(3)))
    fill(cluster, namespace, 30)
    program = scheduler(wait=False)
    cluster.until(pods(namespace), lambda all: len(placed(all)) >= 3, "it has begun")
    program.kill()
    fill(cluster, namespace, 5, first=30)
    scheduler()
    seen = cluster.until(pods(namespace), lambda all: len(placed(all)) == 30, "as many as fit")
    assert overbooked(seen, 10) == {}
    cluster.delete(f"{pods(namespace)}/{next(iter(placed(seen)))}", grace=0)
    seen = cluster.until(pods(namespace), lambda all: len(placed(all)) == 30, "a place that becomes free is taken")
    assert overbooked(seen, 10) == {}


def leader(cluster: ClusterClient) -> str:
    holder = cluster.objects(LEASES).get("kubenexus-scheduler", {}).get("spec", {}).get("holderIdentity", "")
    return str(holder)


def leading(programs: list[ManagedProcess]) -> list[ManagedProcess]:
    return [each for each in programs if each.running and schedules(each)]


def test_f16_of_two_replicas_one_leads_and_the_other_follows_without_overbooking(
    scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, *(a_node(f"n{i}", cpu="10") for i in range(4)))
    replicas = [scheduler(*ELECT, wait=False) for _ in range(2)]
    cluster.until(LEASES, lambda all: bool(all["kubenexus-scheduler"]["spec"]["holderIdentity"]), "one leads")
    fill(cluster, namespace, 20)
    cluster.until(pods(namespace), lambda all: len(placed(all)) >= 10, "it has begun")
    (first,) = leading(replicas)
    first.kill()
    fill(cluster, namespace, 25, first=20)
    seen = cluster.until(pods(namespace), lambda all: len(placed(all)) == 40, "the other goes on", seconds=30)
    assert overbooked(seen, 10) == {}
    assert len(leading(replicas)) == 1


def test_a_replica_that_is_asked_to_end_hands_over_at_once(
    scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1"))
    first = scheduler(*ELECT)
    second = scheduler(*ELECT, wait=False)
    os.kill(first.pid, signal.SIGTERM)
    asked = CLOCK.now()
    second.until(lambda: schedules(second))
    assert CLOCK.now() - asked < 3.5, "sooner than the lease would have ended"
    first.stop()
    assert first.code == 0
    fill(cluster, namespace, 1)
    cluster.until(pods(namespace), lambda all: len(placed(all)) == 1, "the second schedules")
    second.stop()
    assert leader(cluster) == "", "and gives the lease up"


def test_who_loses_the_lease_ends_with_an_error(scheduler: Start, cluster: ClusterClient) -> None:
    program = scheduler(*ELECT)
    stolen = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}}
    cluster.patch(f"{LEASES}/kubenexus-scheduler", stolen)
    program.ended(10)
    assert program.code == 1
    assert "Error: lease kubenexus-scheduler is held by thief" in program.said()
    cluster.delete(f"{LEASES}/kubenexus-scheduler")


def test_f27_a_foreign_binder_on_the_same_nodes_is_noticed(
    scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    """Somebody else binds our very pods, and pods of its own, as fast as it can."""
    make_nodes(cluster, *(a_node(f"n{i}", cpu="20") for i in range(2)))
    program = scheduler()
    for i in range(20):
        cluster.create(a_pod(f"foreign{i}", "1", "somebody-else", nodeName=f"n{i % 2}"), namespace)
        cluster.create(a_pod(f"p{i}", "1"), namespace)
    seen = cluster.until(pods(namespace), lambda all: len(placed(all)) == 40, "all are bound")
    assert overbooked(seen, 20) == {}
    assert program.running


def test_f19_a_pod_its_kubelet_refuses_is_not_sent_there_again(
    agents: Start, scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    agents("--nodes=2")
    for name in ("agent-0", "agent-1"):
        cluster.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"nice": name[-1]}}})
    cluster.patch("/api/v1/nodes/agent-0", {"metadata": {"annotations": {"sim.kubenexus.io/refuse": "OutOfcpu"}}})
    term = {"matchExpressions": [{"key": "nice", "operator": "In", "values": ["0"]}]}
    likes = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
    program = scheduler()
    cluster.create(a_pod("first", "1", affinity={"nodeAffinity": likes}), namespace)
    cluster.until(pods(namespace), lambda all: all["first"]["status"]["phase"] == "Failed", "it is refused")
    program.until(lambda: "Kubelet refused pod" in program.said())
    cluster.create(a_pod("second", "1", affinity={"nodeAffinity": likes}), namespace)
    seen = cluster.until(pods(namespace), lambda all: len(placed(all)) == 2, "its successor is bound")
    assert placed(seen) == {"first": "agent-0", "second": "agent-1"}


def test_f66_whose_account_is_gone_ends(installed: Path, scheduler: Start, cluster: ClusterClient) -> None:
    """A token of a deleted account is 401 for ever; a process that stays would only look alive."""
    program = scheduler(*ELECT[:1], *ELECT[2:], kubeconfig=installed)
    cluster.delete("/api/v1/namespaces/kubenexus-system/serviceaccounts/kubenexus-scheduler")
    assert program.ended(40) == 1
    assert "Error: lease kubenexus-scheduler could not be renewed" in program.said(), program.tail()
    assert 'err="Unauthorized"' in program.said(), program.tail()
