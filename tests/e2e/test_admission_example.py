"""The admission policy in examples/: a real API server accepts it, and refuses pods that would shut others out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.base.clock import WallClock
from kubenexus.testing.controlplane import ClusterClient, RequestRefused

POLICY = Path(__file__).parents[2] / "examples" / "admission" / "anti-affinity-within-namespace.yaml"
REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
NAME = "anti-affinity-within-namespace"
CLOCK = WallClock()
EVERYBODY: dict[str, Any] = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}


@pytest.fixture
def policy(cluster: ClusterClient, namespace: str) -> Iterator[str]:
    cluster.apply(POLICY.read_text(encoding="utf-8"))
    until = CLOCK.now() + 30.0
    while refusal(cluster, namespace, [EVERYBODY]) == "":  # the server reads its policies once in a while
        cluster.delete(f"/api/v1/namespaces/{namespace}/pods", grace=0)
        assert CLOCK.now() < until, "the policy does not take effect"
    yield namespace
    for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        cluster.delete(f"{REGISTRATIONS}/{kind}/{NAME}")


def refusal(cluster: ClusterClient, namespace: str, terms: list[dict[str, Any]], how: str = "required") -> str:
    """Creates a pod with these anti-affinity terms. Returns why it is refused, or ""."""
    rule: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    if how == "preferred":
        weighed = [{"weight": 1, "podAffinityTerm": term} for term in terms]
        rule = {"preferredDuringSchedulingIgnoredDuringExecution": weighed}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "x"}]}
    if terms:
        spec["affinity"] = {"podAntiAffinity": rule}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": spec}
    try:
        cluster.create(pod, namespace)
    except RequestRefused as refused:
        return str(refused)
    return ""


def test_required_anti_affinity_reaches_no_other_namespace(cluster: ClusterClient, policy: str) -> None:
    near: dict[str, Any] = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    assert "must not have a namespaceSelector" in refusal(cluster, policy, [near, EVERYBODY])
    assert "must not name other namespaces" in refusal(cluster, policy, [near | {"namespaces": [policy, "other"]}])
    assert refusal(cluster, policy, []) == ""
    assert refusal(cluster, policy, [near]) == ""
    assert refusal(cluster, policy, [near | {"namespaces": [policy]}]) == ""
    assert refusal(cluster, policy, [EVERYBODY], "preferred") == "", "a preference refuses nobody a node"


def test_a_namespace_may_be_exempt(cluster: ClusterClient, policy: str) -> None:
    labels = {"scheduling.example.com/anti-affinity": "any"}
    cluster.apply(f"{{apiVersion: v1, kind: Namespace, metadata: {{name: {policy}, labels: {labels}}}}}")
    until = CLOCK.now() + 30.0
    while refusal(cluster, policy, [EVERYBODY]):
        assert CLOCK.now() < until
