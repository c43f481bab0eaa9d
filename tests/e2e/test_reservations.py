"""ResourceReservations on a real API server: the kind as it is installed, with the rights that deploy/ gives."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, Objects, RequestRefused
from tests.e2e.scheduling import Start, a_node, a_pod, make_nodes, placed, pods

DEFINITION = Path(__file__).parents[2] / "deploy" / "resourcereservations.yaml"
EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "reservations").glob("*.yaml"))
ROOT = "/apis/scheduling.kubenexus.io/v1alpha1/namespaces"
SYSTEM = "kubenexus-system"
LABELS = {"pod-group.scheduling.kubenexus.io/name": "llama", "pod-group.scheduling.kubenexus.io/min-available": "2"}


def reservations(namespace: str = SYSTEM) -> str:
    return f"{ROOT}/{namespace}/resourcereservations"


@pytest.fixture
def kind(plane: ControlPlane, installed: Path) -> Iterator[Path]:
    """The kind is installed, and so is the scheduler's account, whose kubeconfig this is."""
    plane.kubectl("apply", "--validate=strict", f"--filename={DEFINITION}")
    plane.kubectl("wait", "--for=condition=Established", "crd/resourcereservations.scheduling.kubenexus.io")
    yield installed
    plane.kubectl("delete", "--ignore-not-found", f"--filename={DEFINITION}")


def a_reservation(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.kubenexus.io/v1alpha1",
        "kind": "ResourceReservation",
        "metadata": {"name": name},
        "spec": spec,
    }


def phases(objects: Objects) -> dict[str, str]:
    return {name: each.get("status", {}).get("phase", "") for name, each in objects.items()}


def reserve(plane: ControlPlane, *words: str) -> str:
    """What `kubenexus reserve` prints."""
    command = [sys.executable, "-m", "kubenexus", "reserve", *words, f"--kubeconfig={plane.kubeconfig()}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_team_has_its_node_and_a_scheduler_that_was_killed_goes_on(
    scheduler: Start, plane: ControlPlane, cluster: ClusterClient, namespace: str, kind: Path
) -> None:
    make_nodes(cluster, a_node("n1", cpu="4"), a_node("n2", cpu="4"))
    first = scheduler(kubeconfig=kind)
    made = reserve(plane, "create", "training", "--resource", "cpu=4", "--for-namespace", namespace, "--duration", "1h")
    assert made == "resourcereservation.scheduling.kubenexus.io/training created\n"
    seen = cluster.until(reservations(), lambda all: phases(all) == {"training": "Active"}, "it is active")
    (kept,) = seen["training"]["status"]["nodes"].values()
    header, line = plane.kubectl("get", "rr", f"--namespace={SYSTEM}").splitlines()
    assert header.split() == ["NAME", "PHASE", "OWNER", "EXPIRES", "AGE"]
    assert line.split()[:3] == ["training", "Active", namespace]
    first.kill()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "others"}})
    for i in range(2):
        cluster.create(a_pod(f"other-{i}", "3"), "others")
    scheduler(kubeconfig=kind)
    others = cluster.until(pods("others"), lambda all: len(placed(all)) == 1, "one of the others is bound")
    assert kept not in placed(others).values()
    cluster.create(a_pod("own", "4"), namespace)
    own = cluster.until(pods(namespace), lambda all: len(placed(all)) == 1, "the owner's pod is bound")
    assert placed(own) == {"own": kept}
    used = {f"{namespace}/own": "Bound"}
    claimed = cluster.until(
        reservations(), lambda all: all["training"]["status"].get("pods") == used, "the pod is shown on it"
    )
    assert phases(claimed) == {"training": "Claimed"}
    assert "training" in reserve(plane, "list")
    reserve(plane, "delete", "training")
    cluster.until(reservations(), lambda all: all == {}, "it is gone, without a finalizer")


def test_what_the_first_gang_keeps_is_shown_and_goes_with_it(
    scheduler: Start, cluster: ClusterClient, namespace: str, kind: Path
) -> None:
    make_nodes(cluster, a_node("n1", cpu="2"), a_node("n2", cpu="2"))
    cluster.create(a_pod("runs", "1", nodeName="n1", restartPolicy="Never"), namespace)
    scheduler(kubeconfig=kind)
    for i in range(2):
        cluster.create(a_pod(f"m{i}", "2", metadata={"labels": LABELS}), namespace)
    name = "llama-reservation"
    seen = cluster.until(
        reservations(namespace), lambda all: phases(all).get(name) == "Active", "what the gang keeps is shown"
    )
    assert seen[name]["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    assert seen[name]["status"]["conditions"][0]["reason"] == "FirstInLine"
    cluster.delete(f"{pods(namespace)}/runs", grace=0)
    cluster.until(pods(namespace), lambda all: len(placed(all)) == 2, "the gang is bound")
    cluster.until(reservations(namespace), lambda all: all == {}, "its object is gone")


def test_the_server_accepts_the_examples_and_refuses_what_names_nothing(
    plane: ControlPlane, cluster: ClusterClient, kind: Path
) -> None:
    for path in EXAMPLES:
        if path.name != "scheduler-config.yaml":
            plane.kubectl("apply", "--validate=strict", "--dry-run=server", f"--filename={path}")
    for spec in ({}, {"count": 2}, {"count": 2, "reservations": {"a": {"cpu": 1}}}):
        with pytest.raises(RequestRefused, match="resources"):
            cluster.create(a_reservation("bad", **spec), SYSTEM)
