"""Full nodes on a real API server, and pods and gangs of higher priority: these all run, and each victim is needed."""

import os
import ssl
import urllib.parse
from typing import Any

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, Object
from tests.chaos.api_client import ChaosClient, Wish
from tests.e2e.eviction_observer import EvictionObserver
from tests.e2e.scheduling import Start, a_pod, placed, pods

CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "e2e-high"}, "value": 1000}
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"
NODES = int(os.environ.get("PREEMPTION_NODES", "24"))  # 1000 for the size of a cluster
SINGLES, GANGS, MEMBERS = max(4, NODES // 2), max(1, NODES // 50), 8
GUARDED = len(range(0, NODES * 4, 5))
GRACE: dict[str, Any] = {"terminationGracePeriodSeconds": 1}


def low(number: int) -> Object:
    labels = {"app": "guarded" if number % 5 == 0 else "free"}
    return a_pod(f"low-{number}", "1", metadata={"labels": labels}, **GRACE)


def high(name: str, cpu: str, **metadata: Any) -> Object:
    return a_pod(name, cpu, metadata=metadata, priorityClassName="e2e-high", **GRACE)


def member(gang: int, number: int) -> Object:
    prefix = "pod-group.scheduling.kubenexus.io"
    return high(
        f"gang-{gang}-{number}", "1", labels={f"{prefix}/name": f"gang-{gang}", f"{prefix}/min-available": str(MEMBERS)}
    )


@pytest.mark.usefixtures("controllers")
def test_all_of_high_priority_run_and_every_victim_was_needed(
    plane: ControlPlane, agents: Start, scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    trust, host = ssl.create_default_context(cafile=str(plane.authority)), urllib.parse.urlsplit(plane.server).netloc
    agents(f"--nodes={NODES}", "--cpu=4", "--memory=16Gi")
    scheduler()
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard"},
        "spec": {"selector": {"matchLabels": {"app": "guarded"}}, "minAvailable": GUARDED - 1},
    }
    try:
        with ChaosClient(host, plane.token(), trust) as hands, EvictionObserver(host, plane.token(), trust) as seen:
            path = pods(namespace)
            hands.do([Wish("POST", path, low(number)) for number in range(NODES * 4)])
            cluster.until(path, lambda all: len(placed(all)) == NODES * 4, "all nodes are full", seconds=60 + NODES)
            cluster.create(budget, namespace)
            cluster.create(CLASS)
            allows = lambda all: all["guard"].get("status", {}).get("disruptionsAllowed") == 1  # noqa: E731
            cluster.until(BUDGETS.format(namespace), allows, "the budget allows one", seconds=60)
            hands.do([Wish("POST", path, high(f"high-{number}", "2")) for number in range(SINGLES)])
            hands.do([Wish("POST", path, member(gang, i)) for gang in range(GANGS) for i in range(MEMBERS)])
            wanted = {f"high-{number}" for number in range(SINGLES)}
            wanted |= {f"gang-{gang}-{i}" for gang in range(GANGS) for i in range(MEMBERS)}
            cluster.until(path, lambda all: wanted <= set(placed(all)), "all run", seconds=120 + NODES)
            assert seen.sees(wanted)
            assert seen.useless() == []
            assert len(seen.evicted) == 2 * SINGLES + GANGS * MEMBERS
            assert len({each.name for each in seen.evicted.values()}) == len(seen.evicted)
    finally:
        cluster.delete(f"{CLASSES}/e2e-high")
