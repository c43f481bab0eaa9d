"""Discovery against a real API server, with the account, the role and the policy of its manifest."""

import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.base.clock import WallClock
from kubenexus.testing.controlplane import ClusterClient, ControlPlane, RequestRefused
from tests.deploy.manifests import CHART, plain_discovery
from tests.discovery.machine_trees import description, make_tree
from tests.e2e.scheduling import a_node, make_nodes, pods

MANIFEST = CHART.parents[1] / "kubenexus-discovery.yaml"
CRD = CHART.parents[2] / "examples" / "numa" / "crd.yaml"
REPORTS = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
HOME, ACCOUNT = "kubenexus-system", "kubenexus-scheduler-discovery"
CLOCK = WallClock()
FOREIGN = {"metadata": {"labels": {"example.com/mine": "no"}}}


@pytest.fixture
def installed(plane: ControlPlane, cluster: ClusterClient) -> Iterator[None]:
    """The manifest is applied, and its policy is in force."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    plane.kubectl("apply", "--validate=strict", f"--filename={MANIFEST}", f"--filename={CRD}")
    plane.kubectl(
        "wait", "--for=condition=Established", "--timeout=60s", "crd/noderesourcetopologies.topology.node.k8s.io"
    )
    mi300x = a_node("n1", cpu="384")
    mi300x["status"]["capacity"]["amd.com/gpu"] = mi300x["status"]["allocatable"]["amd.com/gpu"] = "8"
    make_nodes(cluster, mi300x, a_node("n2"))
    agent, until = bound(plane, cluster, "n2"), CLOCK.now() + 60.0
    while refusal(agent, "/api/v1/nodes/n2", FOREIGN) == "":
        assert CLOCK.now() < until, "the policy does not take effect"
    yield
    plane.kubectl("delete", "--ignore-not-found", "--wait=false", f"--filename={MANIFEST}", f"--filename={CRD}")


def token(cluster: ClusterClient, node: str) -> str:
    """Returns the token that a pod of the DaemonSet has on a node."""
    spec = {"nodeName": node, "serviceAccountName": ACCOUNT, "containers": [{"name": "c", "image": "x"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "discovery-"}, "spec": spec}
    made = cluster.create(pod, HOME)["metadata"]
    bound_to = {"apiVersion": "v1", "kind": "Pod", "name": made["name"], "uid": made["uid"]}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound_to}}
    path = f"/api/v1/namespaces/{HOME}/serviceaccounts/{ACCOUNT}/token"
    return str(cluster.send("POST", path, asked)["status"]["token"])


def bound(plane: ControlPlane, cluster: ClusterClient, node: str) -> ClusterClient:
    trust = ssl.create_default_context(cafile=str(plane.authority))
    return ClusterClient(plane.server, token(cluster, node), trust)


def refusal(agent: ClusterClient, path: str, change: dict[str, Any]) -> str:
    """Returns why a patch is refused, "" if it is not. Nothing is changed."""
    try:
        agent.patch(f"{path}?dryRun=All", change)
    except RequestRefused as refused:
        return str(refused)
    return ""


def command(kubeconfig: Path, root: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "kubenexus", "discover", f"--root={root}", f"--kubeconfig={kubeconfig}", *words]


def discover(kubeconfig: Path, root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    wish = command(kubeconfig, root, *words)
    return subprocess.run(wish, capture_output=True, text=True, check=False, timeout=120)


def test_the_manifest_is_the_chart() -> None:
    assert plain_discovery() == MANIFEST.read_text(encoding="utf-8"), "run `make manifests`"


def test_an_agent_writes_on_its_own_node_and_cleans_up(
    plane: ControlPlane, cluster: ClusterClient, installed: None, tmp_path: Path
) -> None:
    root = make_tree(tmp_path, description("mi300x"))
    kubeconfig = plane.kubeconfig_with({"token": token(cluster, "n1")}, "discovery")
    before = cluster.get("/api/v1/nodes/n1")["metadata"]
    done = discover(kubeconfig, root, "--once", "--node-name=n1")
    assert done.returncode == 0, done.stderr
    assert "node updated, topology: created" in done.stderr
    assert cluster.get("/api/v1/nodes/n1")["metadata"]["labels"]["gpu.kubenexus.io/model"] == "MI300X"
    report = cluster.get(f"{REPORTS}/n1")
    assert [zone["resources"][0]["available"] for zone in report["zones"]] == ["4", "4"]
    again = discover(kubeconfig, root, "--once", "--node-name=n1")
    assert "node unchanged, topology: unchanged" in again.stderr, again.stderr

    other = discover(kubeconfig, root, "--once", "--node-name=n2")
    assert other.returncode == 1
    assert "on the node that its pod runs on" in other.stderr

    gone = discover(kubeconfig, root, "--remove", "--node-name=n1")
    assert gone.returncode == 0, gone.stderr
    after = cluster.get("/api/v1/nodes/n1")["metadata"]
    assert (after["labels"], after.get("annotations", {})) == (before["labels"], before.get("annotations", {}))
    assert cluster.objects(REPORTS) == {}
    assert cluster.objects(pods(HOME))


def test_an_agent_follows_its_machine_until_it_is_stopped(
    plane: ControlPlane, cluster: ClusterClient, installed: None, tmp_path: Path
) -> None:
    root = make_tree(tmp_path, description("mi300x"))
    kubeconfig = plane.kubeconfig_with({"token": token(cluster, "n1")}, "discovery")
    count, node = "gpu.kubenexus.io/count", "/api/v1/nodes"
    wish = command(kubeconfig, root, "--interval=1s", "--node-name=n1")
    with subprocess.Popen(wish, stderr=subprocess.PIPE, text=True) as agent:
        cluster.until(node, lambda all: all["n1"]["metadata"]["labels"].get(count) == "8", "the cards are counted")
        cluster.patch(f"{node}/n1", {"metadata": {"labels": {count: None}}})
        cluster.until(node, lambda all: all["n1"]["metadata"]["labels"].get(count) == "8", "a lost label comes back")
        for file in ("class/kfd/kfd/topology/nodes/9/gpu_id", "bus/pci/devices/0000:e5:00.0/class"):
            (root / "sys" / file).write_text("0x0\n" if "class/kfd" not in file else "0\n")
        cluster.until(node, lambda all: all["n1"]["metadata"]["labels"].get(count) == "7", "a card that is gone")
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(timeout=30) == 0
        assert "Traceback" not in (agent.stderr.read() if agent.stderr else "")


def test_the_policy_keeps_an_agent_to_its_node_and_its_keys(
    plane: ControlPlane, cluster: ClusterClient, installed: None
) -> None:
    agent = bound(plane, cluster, "n1")
    mine = {"metadata": {"labels": {"gpu.kubenexus.io/count": "8"}}}
    node = "/api/v1/nodes/n1"
    assert refusal(agent, node, mine) == ""
    assert "on no other" in refusal(agent, "/api/v1/nodes/n2", mine)
    assert "nothing else" in refusal(agent, node, {"spec": {"unschedulable": True}})
    assert "nothing else" in refusal(agent, node, {"metadata": {"finalizers": ["example.com/stay"]}})
    assert "only the labels" in refusal(agent, node, FOREIGN)
    assert "only the labels" in refusal(agent, node, {"metadata": {"labels": {"kubernetes.io/hostname": None}}})
    assert "only the annotations" in refusal(agent, node, {"metadata": {"annotations": {"example.com/mine": "no"}}})
    body = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "zones": []}
    cluster.create({**body, "metadata": {"name": "n1"}})
    assert "of another agent" in refusal(agent, f"{REPORTS}/n1", {"zones": []})
    with pytest.raises(RequestRefused, match="of another agent"):
        agent.delete(f"{REPORTS}/n1")
    with pytest.raises(RequestRefused, match="on no other"):
        agent.create(
            {**body, "metadata": {"name": "n2", "labels": {"app.kubernetes.io/managed-by": "kubenexus-discovery"}}}
        )
    # A token that is not of a pod names no node.
    loose = plane.service_account_kubeconfig(HOME, ACCOUNT)
    done = discover(loose, Path("/"), "--once", "--node-name=n1")
    assert done.returncode == 1
    assert "on the node that its pod runs on" in done.stderr
    cluster.delete(f"{REPORTS}/n1")
