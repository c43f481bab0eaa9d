"""This version and the one before it, two replicas with one lease: each takes over from the other and counts what the
other has placed. At no moment do both schedule."""

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess
from tests.deploy.manifests import CHART
from tests.e2e import previous_version
from tests.e2e.scheduling import Start, a_node, a_pod, make_nodes, placed, pods, schedules
from tests.e2e.test_chart import CRD, HOME, Helm, helm, ours
from tests.e2e.test_chart import QUEUES as QUEUE_KIND

__all__ = ["helm"]  # a fixture

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kubenexus-system/leases/kubenexus-scheduler"
QUEUES = "/apis/scheduling.kubenexus.io/v1alpha1/queues"
CRD_KIND = "customresourcedefinition.apiextensions.k8s.io"
NUMBERS = itertools.count(1)
GANG = "pod-group.scheduling.kubenexus.io"
Replica = Callable[[bool], ManagedProcess]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return previous_version.unpack(tmp_path_factory.mktemp("previous"))[1]
    except previous_version.NoHistory as problem:
        pytest.fail(str(problem), pytrace=False)


@pytest.fixture
def replica(plane: ControlPlane, installed: Path, old: Path) -> Iterator[Replica]:
    """`replica(is_new)`: one replica of the Deployment, of this version or the one before, with its account."""
    started: list[ManagedProcess] = []

    def start(is_new: bool) -> ManagedProcess:
        options = [f"--kubeconfig={installed}", "--leader-elect=true", "--secure-port=0", "-v=2"]
        path = (Path(__file__).parents[2] if is_new else old) / "src"
        # The first on the path wins over what is installed.
        run = f"import sys; sys.path.insert(0, {str(path)!r}); from kubenexus.__main__ import main; main()"
        command = [sys.executable, "-c", run, "run", *options]
        program = plane.family.start(command, f"replica-{next(NUMBERS)}")
        started.append(program)
        return program

    yield start
    for program in started:
        program.stop()


def gang(cluster: ClusterClient, namespace: str, name: str, size: int, cpu: str) -> None:
    labels = {f"{GANG}/name": name, f"{GANG}/min-available": str(size)}
    for i in range(size):
        cluster.create(a_pod(f"{name}-{i}", cpu, metadata={"labels": labels}), namespace)


def is_placed(name: str, size: int) -> Callable[[Any], bool]:
    return lambda all: sum(pod.startswith(f"{name}-") for pod in placed(all)) == size


def holder(cluster: ClusterClient) -> str:
    return str(cluster.get(LEASE)["spec"].get("holderIdentity", ""))


def test_the_source_of_the_version_before_is_another(old: Path) -> None:
    assert (old / "src" / "kubenexus" / "__main__.py").exists()
    assert previous_version.commit() != previous_version.git("rev-parse", "HEAD").decode().strip()


def test_the_chart_of_the_version_before_is_upgraded_to_this_one(
    helm: Helm, plane: ControlPlane, cluster: ClusterClient, namespace: str, scheduler: Start, old: Path
) -> None:
    """No pod is lost, what users made of our kinds stays, and the account of the pods may do what this version does."""
    helm.succeeds("install", "kubenexus", str(old / "deploy" / "helm" / "kubenexus"), "--create-namespace")
    try:
        make_nodes(cluster, a_node("n0"))
        cluster.create(a_queue("research"))
        scheduler()
        gang(cluster, namespace, "first", 2, "1")
        cluster.until(pods(namespace), is_placed("first", 2), "a gang is placed")
        before = placed(cluster.objects(pods(namespace)))
        helm.succeeds("upgrade", "kubenexus", str(CHART))
        assert placed(cluster.objects(pods(namespace))) == before
        assert "research" in cluster.objects(QUEUES)
        account = plane.service_account_kubeconfig(HOME, "kubenexus-scheduler")
        upgraded = scheduler("--leader-elect=true", kubeconfig=account)
        assert "permission" not in upgraded.said()
        assert ours(cluster)
        helm.succeeds("uninstall", "kubenexus")
        assert ours(cluster) == set()
        assert "research" in cluster.objects(QUEUES)
    finally:
        helm("uninstall", "kubenexus", "--ignore-not-found")
        for name in (QUEUE_KIND, CRD):
            plane.kubectl("delete", "--ignore-not-found", f"{CRD_KIND}/{name}")


def a_queue(name: str) -> Any:
    return {"apiVersion": "scheduling.kubenexus.io/v1alpha1", "kind": "Queue", "metadata": {"name": name}, "spec": {}}


def test_two_versions_share_a_lease_forward_and_back(replica: Replica, cluster: ClusterClient, namespace: str) -> None:
    # Room for twelve pods of one cpu, and for no thirteenth.
    make_nodes(cluster, *(a_node(f"n{i}", cpu="4") for i in range(3)))

    before = replica(False)
    before.until(lambda: schedules(before))
    after = replica(True)
    first = holder(cluster)
    gang(cluster, namespace, "first", 4, "1")
    cluster.until(pods(namespace), is_placed("first", 4), "the version before places a gang")
    assert not schedules(after), "one schedules, the other stands by"

    before.stop(seconds=30)
    assert before.code == 0
    after.until(lambda: schedules(after))
    assert holder(cluster) != first
    gang(cluster, namespace, "second", 4, "1")
    cluster.until(pods(namespace), is_placed("second", 4), "this version goes on")

    back = replica(False)
    back.until(lambda: '"New leader"' in back.said())
    after.stop(seconds=30)
    assert after.code == 0
    back.until(lambda: schedules(back))
    gang(cluster, namespace, "third", 4, "1")
    cluster.until(pods(namespace), is_placed("third", 4), "and back again")

    gang(cluster, namespace, "fourth", 2, "1")
    cluster.until(
        pods(namespace),
        lambda all: (
            "Insufficient cpu" in str(all["fourth-0"]["status"]) or "more need" in str(all["fourth-0"]["status"])
        ),
        "what the other version placed is counted: there is no room left",
    )
    nodes = list(placed(cluster.objects(pods(namespace))).values())
    assert sorted(nodes) == [name for name in ("n0", "n1", "n2") for _ in range(4)], "no node is booked twice"
