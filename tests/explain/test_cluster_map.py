"""The map of a cluster: the job that holds each device, held to a count of devices one by one."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.gangs.levels import DEFAULT_LEVELS
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.explain.cluster_map import FREE, ClusterMap, MapSource, cluster_map
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod

RACK = "topology.kubernetes.io/rack"


def mapped(pods: list[Pod], namespace: str = "", gpus: int = 8) -> ClusterMap:
    ledger = Ledger()
    ledger.upsert_node(a_node("cpu-1", cpu=8, cordoned=True))
    ledger.upsert_node(a_node("gpu-1", cpu=64, gpu=gpus, labels={RACK: "r1"}))
    for pod in pods:
        ledger.upsert_pod(pod)
    ledger.read_devices()
    by_key = {pod.key: pod for pod in pods}
    claims = {key: declared_gang(pod) for key, pod in by_key.items()}
    return cluster_map(MapSource(ledger, by_key, claims.get, DEFAULT_LEVELS, namespace))


def a_gpu_pod(name: str, number: int, namespace: str = "ml") -> Pod:
    return a_pod(name, namespace=namespace, cpu=1, gpu=number, node="gpu-1")


def test_a_gang_a_deployment_and_a_pod_are_owners_by_the_name_that_a_user_gave() -> None:
    labels = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "2"}
    gang = [a_pod(f"g-{i}", namespace="ml", cpu=1, labels=labels, gpu=1, node="gpu-1") for i in range(2)]
    job = a_pod("t-0", namespace="ml", cpu=4, labels={"job-name": "t"}, node="cpu-1")
    found = mapped([*gang, job, a_gpu_pod("one", 1)])
    assert {(each.kind, each.name) for each in found.owners} == {("gang", "g"), ("", "t"), ("pod", "one")}
    assert found.names == ("cpu-1", "gpu-1")
    assert (found.states, found.gpus) == ((1, 0), (0, 8))
    assert (found.levels, found.domains, found.places) == (("rack",), (("r1",),), ((-1, 0),))
    assert Counter(found.cells[:8]) == {0: 4, FREE: 4}, "half of the cpu of a node without devices"
    assert Counter(found.cells[8:])[FREE] == 5


def test_jobs_of_other_namespaces_are_one_owner_without_a_name() -> None:
    found = mapped([a_gpu_pod("mine", 1), a_gpu_pod("theirs", 2, "web"), a_gpu_pod("theirs-too", 1, "lab")], "ml")
    named = {each.name for each in found.owners}
    assert named == {"mine", ""}
    assert sum(cell >= 0 for cell in found.cells) == 4


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), max_size=6), st.integers(0, 12))
def test_every_device_that_pods_request_is_held_once(wanted: list[int], gpus: int) -> None:
    pods = [a_gpu_pod(f"p{i}", number) for i, number in enumerate(wanted)]
    found = mapped(pods, gpus=gpus)
    cells = found.cells[8:]
    if not gpus:
        assert found.gpus == (0, 0)
        return
    assert len(cells) == gpus
    assert sum(cell != FREE for cell in cells) == min(gpus, sum(wanted))
    held = Counter(found.owners[cell].name for cell in cells if cell != FREE)
    assert all(held[pod.metadata.name] <= number for pod, number in zip(pods, wanted, strict=True))
