"""Queues and jobs after jobs on a real API server: the kind as it is installed, with the rights that deploy/ gives."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, RequestRefused
from tests.e2e.scheduling import Start, a_node, a_pod, condition, events, make_nodes, placed, pods

DEFINITION = Path(__file__).parents[2] / "deploy" / "queues.yaml"
EXAMPLES = Path(__file__).parents[2] / "examples" / "queues"
QUEUES = "/apis/scheduling.kubenexus.io/v1alpha1/queues"


@pytest.fixture
def kind(plane: ControlPlane, installed: Path) -> Iterator[Path]:
    """The kind is installed, and so is the scheduler's account, whose kubeconfig this is."""
    plane.kubectl("apply", "--validate=strict", f"--filename={DEFINITION}")
    plane.kubectl("wait", "--for=condition=Established", "crd/queues.scheduling.kubenexus.io")
    yield installed
    plane.kubectl("delete", "--ignore-not-found", f"--filename={DEFINITION}")


def a_queue(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.kubenexus.io/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_a_limit_holds_and_a_change_of_the_queue_lets_the_next_pod_in(
    scheduler: Start, plane: ControlPlane, cluster: ClusterClient, namespace: str, kind: Path
) -> None:
    make_nodes(cluster, a_node("n1", cpu="8"))
    cluster.create(a_queue("ml", limit={"cpu": "2"}, namespaces=[namespace]))
    scheduler(kubeconfig=kind)
    for i in range(3):
        cluster.create(a_pod(f"p{i}", "1"), namespace)
    waits = cluster.until(
        pods(namespace),
        lambda all: len(placed(all)) == 2 and any(condition(all, name).get("message") for name in all),
        "two are bound, and the third says why it waits",
    )
    (last,) = set(waits) - set(placed(waits))
    found = condition(waits, last)
    assert found["reason"] == "SchedulingGated"
    assert found["message"] == "queue ml is at its limit: 2 cpu of 2 cpu in use, and the job asks for 1 cpu"
    assert "Rejected" in {each["reason"] for each in events(cluster, namespace, last)}
    command = [sys.executable, "-m", "kubenexus", "top", "queues", f"--kubeconfig={plane.kubeconfig()}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    line = next(each for each in shown.splitlines() if each.startswith("ml "))
    assert line.split() == ["ml", "1", "25.0%", "2", "1", "cpu", "2", "-", "2", "2"]
    cluster.patch(f"{QUEUES}/ml", {"spec": {"limit": {"cpu": "3"}}})
    cluster.until(pods(namespace), lambda all: len(placed(all)) == 3, "the third is bound")


def test_a_pod_waits_for_the_success_of_another(
    scheduler: Start, cluster: ClusterClient, namespace: str, installed: Path
) -> None:
    make_nodes(cluster, a_node("n1", cpu="8"))
    scheduler(kubeconfig=installed)
    after = {"annotations": {"scheduling.kubenexus.io/after": "first"}}
    cluster.create(a_pod("second", "1", metadata=after), namespace)
    cluster.create(a_pod("first", "1", restartPolicy="Never"), namespace)
    cluster.until(pods(namespace), lambda all: list(placed(all)) == ["first"], "the first is bound")
    cluster.patch(f"{pods(namespace)}/first/status", {"status": {"phase": "Succeeded"}})
    cluster.until(pods(namespace), lambda all: "second" in placed(all), "the second is bound")


def test_the_server_accepts_the_examples_and_refuses_what_cannot_be(
    plane: ControlPlane, cluster: ClusterClient, kind: Path
) -> None:
    plane.kubectl("apply", "--validate=strict", "--dry-run=server", f"--filename={EXAMPLES / 'queues.yaml'}")
    for spec in ({"weight": -1}, {"parent": 5}, {"limit": {"cpu": [1]}}):
        with pytest.raises(RequestRefused):
            cluster.create(a_queue("bad", **spec))
