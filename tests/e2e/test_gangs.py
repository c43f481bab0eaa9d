"""Gangs on a real API server: by labels, and in Kubernetes' own PodGroups."""

import ssl
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, Object
from tests.chaos.api_client import ChaosClient, Wish
from tests.chaos.checker import Checker
from tests.chaos.seed_cluster import SCHEDULER
from tests.e2e.scheduling import Start, Starter, a_node, a_pod, condition, make_nodes, placed, pods

LABELS = {"pod-group.scheduling.kubenexus.io/name": "llama", "pod-group.scheduling.kubenexus.io/min-available": "3"}
GATES = ("--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1beta1=true")
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
SCHEDULED = "PodGroupInitiallyScheduled"
WAITING = "waiting for minCount pods from a gang to appear in scheduling queue"


def test_a_gang_by_labels_waits_and_starts_as_a_whole(scheduler: Start, cluster: ClusterClient, namespace: str) -> None:
    make_nodes(cluster, a_node("n1", cpu="2"), a_node("n2", cpu="2"))
    scheduler()
    for i in range(2):
        cluster.create(a_pod(f"m{i}", "1", metadata={"labels": LABELS}), namespace)
    seen = cluster.until(pods(namespace), lambda all: all_told(all, 2), "both are told that they wait")
    first, other = (condition(seen, f"m{i}")["message"] for i in range(2))
    assert first.startswith(f"{WAITING}: gang {namespace}/llama has ")
    assert first.endswith(" of at least 3")
    assert other == WAITING
    assert {condition(seen, f"m{i}")["reason"] for i in range(2)} == {"SchedulingGated"}
    assert placed(seen) == {}
    cluster.create(a_pod("m2", "1", metadata={"labels": LABELS}), namespace)
    cluster.until(pods(namespace), lambda all: len(placed(all)) == 3, "all three are bound")


@pytest.fixture(scope="module")
def modern(assets: Path) -> Iterator[ControlPlane]:
    """A server that serves PodGroups."""
    with (
        tempfile.TemporaryDirectory(prefix="kubenexus-e2e-groups-") as folder,
        ControlPlane(assets, Path(folder), apiserver_flags=GATES) as running,
    ):
        yield running


def pod_group(name: str, least: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }


def test_kubernetes_own_pod_group(modern: ControlPlane) -> None:
    cluster = modern.cluster()
    with Starter(modern) as start:
        make_nodes(cluster, a_node("n1", cpu="2"), a_node("n2", cpu="2"))
        start()
        for i in range(3):
            cluster.create(a_pod(f"m{i}", "1", schedulingGroup={"podGroupName": "llama"}), "default")
        seen = cluster.until(pods("default"), lambda all: all_told(all, 3), "they are told that they wait")
        said = "waiting for PodGroup.scheduling.k8s.io default/llama to appear"
        assert {condition(seen, f"m{i}")["message"] for i in range(3)} == {said}
        cluster.create(pod_group("llama", 3), "default")
        cluster.until(pods("default"), lambda all: len(placed(all)) == 3, "all three are bound")
        groups = cluster.until(GROUPS, lambda all: "reason" in condition(all, "llama", SCHEDULED), "the group says so")
        found = condition(groups, "llama", SCHEDULED)
        assert (found["status"], found["reason"]) == ("True", "Scheduled")


def test_a_pod_group_says_what_it_lacks(modern: ControlPlane) -> None:
    cluster = modern.cluster()
    with Starter(modern) as start:
        make_nodes(cluster, a_node("big", cpu="2", size="big"))
        start()
        cluster.create(pod_group("mixtral", 3), "default")
        for i in range(3):
            named = {"podGroupName": "mixtral"}
            cluster.create(a_pod(f"x{i}", "1", schedulingGroup=named, nodeSelector={"size": "big"}), "default")
        groups = cluster.until(GROUPS, lambda all: bool(condition(all, "mixtral", SCHEDULED)), "the group says why")
        said = condition(groups, "mixtral", SCHEDULED)
        assert (said["status"], said["reason"]) == ("False", "Unschedulable")
        assert "2 of at least 3 members fit in the whole cluster; 1 more needs 1 cpu" in said["message"]
        make_nodes(cluster, a_node("bigger", cpu="2", size="big"))
        groups = cluster.until(
            GROUPS, lambda all: condition(all, "mixtral", SCHEDULED)["status"] == "True", "the group is scheduled"
        )
        assert condition(groups, "mixtral", SCHEDULED)["reason"] == "Scheduled"


GANGS, SIZE, HELD, ENDED = 100, 8, 60, 10
EVERYWHERE = "/apis/scheduling.k8s.io/v1beta1/podgroups"
DEADLINE = 30.0  # seconds that a gang may take from its first bind to its last, on a slow machine
HALL = {"kubenexus.io/hall": "hundred"}  # nodes and pods of this test alone


def come(hands: ChaosClient, namespace: str) -> None:
    """A hundred PodGroups; then the first member of each, then the second of each."""
    gangs = [f"g{gang:02}" for gang in range(GANGS)]
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups"
    wishes = [Wish("POST", path, pod_group(gang, SIZE)) for gang in gangs]
    for i in range(SIZE):
        members = [a_pod(f"{g}-{i}", "1", schedulingGroup={"podGroupName": g}, nodeSelector=HALL) for g in gangs]
        wishes += [Wish("POST", pods(namespace), each) for each in members]
    assert set(hands.do(wishes)) == {201}


def end(hands: ChaosClient, namespace: str, gangs: list[str]) -> None:
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    paths = [f"{pods(namespace)}/{gang}-{i}" for gang in gangs for i in range(SIZE)]
    assert set(hands.do([Wish("DELETE", path, options) for path in paths])) == {200}


def running(objects: dict[str, Object]) -> Counter[str]:
    """How many members have a node, by gang."""
    return Counter(name.partition("-")[0] for name in placed(objects))


def full(objects: dict[str, Object]) -> bool:
    return len(placed(objects)) >= HELD * SIZE


def knows(judge: Checker, objects: dict[str, Object]) -> bool:
    """Whether it has heard of where these are."""
    heard = {pod.uid: pod.node for pod in judge.pods()}
    return all(heard.get(p["metadata"]["uid"]) == p["spec"].get("nodeName", "") for p in objects.values())


def test_of_a_hundred_pod_groups_on_room_for_sixty_none_is_ever_left_half_bound(modern: ControlPlane) -> None:
    cluster, namespace = modern.cluster(), "hundred"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    host, trust = modern.server.removeprefix("https://"), ssl.create_default_context(cafile=str(modern.authority))
    judge = Checker(host, modern.token(), trust, scheduler=SCHEDULER, groups=EVERYWHERE, deadline=DEADLINE)
    with Starter(modern) as start, ChaosClient(host, modern.token(), trust) as hands, judge:
        make_nodes(cluster, *(a_node(f"hall-{i}", cpu="96", **HALL) for i in range(HELD * SIZE // 96)))
        start()
        come(hands, namespace)
        first = running(cluster.until(pods(namespace), full, "sixty gangs are bound"))
        assert (len(first), set(first.values())) == (HELD, {SIZE})
        leaving = sorted(first)[:ENDED]
        end(hands, namespace, leaving)
        second = running(cluster.until(pods(namespace), full, "as many others have followed"))
        assert (len(second), set(second.values())) == (HELD, {SIZE})
        assert not second.keys() & set(leaving)
        cluster.until(pods(namespace), lambda all: knows(judge, all), "the judge has heard of it")
    assert [breach.text for breach in judge.breaches] == []
    assert not [breach.text for breach in judge.unsettled() if breach.law == "halved"]


def all_told(objects: dict[str, Object], count: int) -> bool:
    return len(objects) == count and all(condition(objects, name).get("message") for name in objects)
