"""The control plane that all other tests stand on does what they rely on."""

import os
import re
import stat

import pytest

from kubenexus.testing.controlplane import (
    ClusterClient,
    ControlPlane,
    KubectlFailed,
    ManagedProcess,
    RequestRefused,
    WaitTimeout,
)
from tests.e2e.controlplane import build
from tests.e2e.manifests import a_deployment

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  schedulerName: nobody
  priorityClassName: system-node-critical
  containers: [{name: web, image: "web:1"}]
"""
DEPLOYMENT = a_deployment(3, 'schedulerName: nobody, containers: [{name: web, image: "web:1"}]')
NODE = """
apiVersion: v1
kind: Node
metadata: {name: fresh}
"""


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def test_the_server_is_the_pinned_release(plane: ControlPlane, cluster: ClusterClient) -> None:
    said = cluster.get("/version")["gitVersion"]
    if os.environ.get("KUBEBUILDER_ASSETS"):
        assert re.match(r"v1\.\d+\.", said)
    else:
        assert said == build.version()
    assert f"Server Version: {said}" in plane.kubectl("version")


def test_kubectl_speaks_to_it(plane: ControlPlane, namespace: str) -> None:
    plane.kubectl("apply", "-n", namespace, "-f", "-", stdin=POD)
    assert plane.kubectl("get", "pods", "-n", namespace, "-o", "name") == "pod/web\n"
    with pytest.raises(KubectlFailed, match=r'get pod other.*pods "other" not found'):
        plane.kubectl("get", "pod", "other", "-n", namespace)


def test_priority_is_admitted_and_service_accounts_are_not_asked_for(cluster: ClusterClient, namespace: str) -> None:
    (pod,) = cluster.apply(POD, namespace)
    assert pod["spec"]["priority"] == 2000001000
    assert "serviceAccountName" not in pod["spec"]


def test_a_fresh_node_is_tainted_until_its_agent_says_it_is_ready(cluster: ClusterClient) -> None:
    (node,) = cluster.apply(NODE)
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["node.kubernetes.io/not-ready"]


def test_a_killed_server_comes_back_with_its_data(plane: ControlPlane, cluster: ClusterClient, namespace: str) -> None:
    cluster.apply(POD, namespace)
    plane.kill_apiserver()
    with pytest.raises(OSError, match="refused"):
        cluster.get(pods(namespace))
    plane.start_apiserver()
    cluster.bind(namespace, "web", "anywhere")
    seen = cluster.until(pods(namespace), lambda all: all["web"]["spec"]["nodeName"] == "anywhere", "web is bound")
    assert list(seen) == ["web"]


def test_roles_count_for_users_and_for_service_accounts(plane: ControlPlane, namespace: str) -> None:
    with pytest.raises(RequestRefused, match='User "nobody" cannot list resource "pods"') as refused:
        plane.cluster("nobody").get(pods(namespace))
    assert refused.value.code == 403
    plane.kubectl("create", "serviceaccount", "worker", "-n", namespace)
    worker = plane.service_account_kubeconfig(namespace, "worker")
    assert stat.S_IMODE(worker.stat().st_mode) == 0o600
    asked = plane.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", f"--kubeconfig={worker}")
    assert asked == f"system:serviceaccount:{namespace}:worker"


def test_waiting_in_vain_says_what_there_was_instead(cluster: ClusterClient, namespace: str) -> None:
    cluster.apply(POD, namespace)
    with pytest.raises(WaitTimeout, match=r"after 0.3 s not true: web runs\n.* had 1 objects:\nweb:\n") as late:
        cluster.until(pods(namespace), lambda all: all["web"]["status"]["phase"] == "Running", "web runs", seconds=0.3)
    assert "phase: Pending" in str(late.value)


def test_controllers_make_pods(controllers: ManagedProcess, cluster: ClusterClient, namespace: str) -> None:
    cluster.apply(DEPLOYMENT, namespace)
    made = cluster.until(pods(namespace), lambda all: len(all) == 3, "the deployment has its three pods")
    assert {pod["metadata"]["ownerReferences"][0]["kind"] for pod in made.values()} == {"ReplicaSet"}
    assert controllers.running
