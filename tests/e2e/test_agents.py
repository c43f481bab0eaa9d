"""Agents keep nodes and run pods on a real API server, whatever happens to it or to them."""

from collections.abc import Callable, Iterator
from functools import partial

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess, Object, Objects
from tests.e2e.manifests import a_deployment
from tests.e2e.provisioner import CLASS, Provisioner

Start = Callable[..., ManagedProcess]

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def a_pod(name: str, node: str = "", **annotations: str) -> Object:
    marks = {f"sim.kubenexus.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    bound = {"nodeName": node} if node else {}
    spec = {**bound, "containers": [{"name": "main", "image": "app:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": marks}, "spec": spec}


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def phase(objects: Objects, name: str) -> str:
    return str(objects[name]["status"]["phase"])


def test_nodes_are_registered_ready_and_alive(agents: Start, cluster: ClusterClient) -> None:
    agents(
        "--nodes=3",
        "--gpu=8",
        "--label=pool=a",
        "--taint=gpu=yes:NoSchedule",
        "--zone=x",
        "--zone=y",
        "--renew-seconds=1",
    )
    taints = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    nodes = cluster.until(
        NODES,
        lambda all: len(all) == 3 and all_taints(all) == [[taints]] * 3,
        "three nodes, without the taint of freshness and with their own",
    )
    assert {name: node["metadata"]["labels"]["topology.kubernetes.io/zone"] for name, node in nodes.items()} == {
        "agent-0": "x",
        "agent-1": "y",
        "agent-2": "x",
    }
    node = nodes["agent-0"]
    assert node["metadata"]["labels"]["pool"] == "a"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert {each["type"]: each["status"] for each in node["status"]["conditions"]} == {"Ready": "True"}
    leases = cluster.until(LEASES, lambda all: len(all) == 3, "each node has its lease")
    assert leases["agent-1"]["spec"]["holderIdentity"] == "agent-1"


def all_taints(nodes: Objects) -> list[list[Object]]:
    return [node["spec"].get("taints", []) for node in nodes.values()]


def test_a_bound_pod_runs_succeeds_or_goes(agents: Start, cluster: ClusterClient, namespace: str) -> None:
    agents("--nodes=1", "--stop-seconds=0.2")
    cluster.create(a_pod("service"), namespace)
    cluster.create(a_pod("batch", "agent-0", run_seconds="1"), namespace)
    cluster.bind(namespace, "service", "agent-0")
    seen = cluster.until(pods(namespace), lambda all: phase(all, "service") == "Running", "service runs")
    ready = [each["status"] for each in seen["service"]["status"]["conditions"] if each["type"] == "Ready"]
    assert (ready, seen["service"]["status"]["hostIP"]) == (["True"], "10.0.0.1")
    cluster.until(pods(namespace), lambda all: phase(all, "batch") == "Succeeded", "batch succeeds")
    cluster.delete(f"{pods(namespace)}/service")
    cluster.until(pods(namespace), lambda all: list(all) == ["batch"], "service is gone, before its 30 s are over")


def sent_one_by_one(cluster: ClusterClient, namespace: str, node: str) -> Iterator[Object]:
    """What becomes of some pods. Agents watch nodes and pods each by themselves: the first pods may be heard of before
    what the node was told last."""
    for name in (f"pod-{number}" for number in range(20)):
        cluster.create(a_pod(name, node), namespace)
        yield cluster.until(pods(namespace), partial(decided, name), f"the node has decided on {name}")[name]["status"]


def decided(name: str, objects: Objects) -> bool:
    return phase(objects, name) != "Pending"


def test_a_node_that_is_told_so_refuses_its_pods(agents: Start, cluster: ClusterClient, namespace: str) -> None:
    agents("--nodes=2")
    cluster.patch(f"{NODES}/agent-0", {"metadata": {"annotations": {"sim.kubenexus.io/refuse": "OutOfcpu"}}})
    cluster.create(a_pod("welcome", "agent-1"), namespace)
    refused = next(status for status in sent_one_by_one(cluster, namespace, "agent-0") if status["phase"] == "Failed")
    assert refused["reason"] == "OutOfcpu"
    cluster.until(pods(namespace), lambda all: phase(all, "welcome") == "Running", "the other node's pod runs")


def test_they_go_on_after_the_server_was_killed(
    agents: Start, plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    program = agents("--nodes=1")
    plane.kill_apiserver()
    plane.start_apiserver()
    cluster.create(a_pod("later", "agent-0"), namespace)
    cluster.until(pods(namespace), lambda all: phase(all, "later") == "Running", "a pod of after the restart runs")
    assert program.running


def test_they_go_on_after_they_were_killed(agents: Start, cluster: ClusterClient, namespace: str) -> None:
    first = agents("--nodes=1")
    cluster.create(a_pod("batch", "agent-0", run_seconds="2"), namespace)
    cluster.until(pods(namespace), lambda all: phase(all, "batch") == "Running", "batch runs")
    first.kill()
    cluster.create(a_pod("meanwhile", "agent-0"), namespace)
    agents("--nodes=1")
    cluster.until(
        pods(namespace),
        lambda all: (phase(all, "batch"), phase(all, "meanwhile")) == ("Succeeded", "Running"),
        "the successor goes on where they were",
    )


DEPLOYMENT = a_deployment(3, 'containers: [{name: web, image: "web:1"}]')


def test_a_whole_cluster_without_machines(
    agents: Start, controllers: ManagedProcess, plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    agents("--nodes=2")
    scheduler = plane.start_scheduler()
    cluster.apply(DEPLOYMENT, namespace)
    cluster.until(
        f"/apis/apps/v1/namespaces/{namespace}/deployments",
        lambda all: all["web"]["status"]["availableReplicas"] == 3,
        "the deployment has its three replicas",
    )
    scheduler.stop()


CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, annotations: {volume.kubernetes.io/selected-node: agent-0}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: local
  resources: {requests: {storage: 1Gi}}
"""


def test_a_claim_gets_a_volume_on_the_node_that_was_chosen(
    provisioner: Provisioner, cluster: ClusterClient, namespace: str
) -> None:
    cluster.apply(CLASS)
    cluster.apply(CLAIM, namespace)
    claims = cluster.until(
        f"/api/v1/namespaces/{namespace}/persistentvolumeclaims",
        lambda all: phase(all, "data") == "Bound",
        "the claim is bound",
    )
    volume = cluster.get(f"/api/v1/persistentvolumes/{claims['data']['spec']['volumeName']}")
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["agent-0"]
    assert provisioner.is_alive()
