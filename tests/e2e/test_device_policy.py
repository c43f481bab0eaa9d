"""The admission policy of docs/devices.md does on a real API server what the page says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, RequestRefused
from tests.e2e.scheduling import Start, a_node, a_pod, make_nodes, node_of, pods

PAGE = Path(__file__).parents[2] / "docs" / "devices.md"
GIVEN = "scheduling.kubenexus.io/devices"
PART = {"scheduling.kubenexus.io/gpu-fraction": "0.5"}


@pytest.fixture
def policy(plane: ControlPlane, cluster: ClusterClient, namespace: str) -> Iterator[None]:
    """Applied, and in force: it takes the server a moment. Nothing is made meanwhile."""
    (text,) = re.findall(r"^```yaml\n([^`]*ValidatingAdmissionPolicy\n.*?)^```", PAGE.read_text(), re.M | re.S)
    plane.kubectl("apply", "--validate=strict", "--filename=-", stdin=text)
    for _ in range(5_000):
        try:
            cluster.send("POST", f"{pods(namespace)}?dryRun=All", annotated("probe", PART))
        except RequestRefused:
            break
    yield
    plane.kubectl("delete", "--filename=-", stdin=text)


def annotated(name: str, annotations: dict[str, str]) -> Any:
    pod = a_pod(name, "100m")
    pod["metadata"]["annotations"] = annotations
    return pod


def test_only_the_scheduler_writes_what_was_given_and_only_some_namespaces_take_parts(
    policy: None, scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    with pytest.raises(RequestRefused, match="may not take parts of GPUs"):
        cluster.create(annotated("part", PART), namespace)
    with pytest.raises(RequestRefused, match="only the scheduler writes"):
        cluster.create(annotated("forged", {GIVEN: "[]"}), namespace)
    cluster.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {"example.com/gpu-parts": "allowed"}}})
    node = a_node("n1", cpu="2", **{"gpu.kubenexus.io/shared": "true"})
    node["status"]["capacity"]["nvidia.com/gpu"] = node["status"]["allocatable"]["nvidia.com/gpu"] = "1"
    make_nodes(cluster, node)
    assert any(_made(cluster, namespace) for _ in range(5_000)), "parts are allowed"
    program = scheduler()
    seen = cluster.until(pods(namespace), lambda all: bool(node_of(all, "part")), "the part has a node")
    assert '"share":500' in seen["part"]["metadata"]["annotations"][GIVEN]
    with pytest.raises(RequestRefused, match="only the scheduler writes"):
        cluster.patch(f"{pods(namespace)}/part", {"metadata": {"annotations": {GIVEN: None}}})
    cluster.patch(f"{pods(namespace)}/part", {"metadata": {"labels": {"other": "change"}}})
    program.stop()


def _made(cluster: ClusterClient, namespace: str) -> bool:
    try:
        cluster.create(annotated("part", PART), namespace)
    except RequestRefused:
        return False
    return True
