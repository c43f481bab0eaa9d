"""The eight expectations about eight GPU nodes on a real API server, judged from the API objects alone."""

import pytest

from kubenexus.testing.controlplane import ClusterClient, Objects
from tests.e2e.scheduling import Start, make_nodes
from tests.placement import gpu_cluster
from tests.placement.expectations import (
    EXPECTATIONS,
    FILLED,
    FILLING,
    Cluster,
    Expectation,
    judge,
    models_of,
    node_of,
    settled,
)

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
STAYS = 10.0  # seconds for which a pod that waits is watched


@pytest.fixture
def gpu_hall(cluster: ClusterClient) -> ClusterClient:
    """The eight nodes, what their drivers publish, and the namespaces of the tenants."""
    make_nodes(cluster, *gpu_cluster.nodes())
    for each in (*gpu_cluster.slices(), *gpu_cluster.namespaces()):
        cluster.create(each)
    return cluster


def by_name(objects: Objects) -> Objects:
    """The pods of all namespaces, whose keys have the namespace before the name."""
    return {key.rpartition("/")[2]: each for key, each in objects.items()}


def add(cluster: ClusterClient, *pods: gpu_cluster.Object) -> None:
    for each in pods:
        cluster.create(each, each["metadata"]["namespace"])


@pytest.mark.parametrize("expectation", EXPECTATIONS, ids=lambda each: each.name)
def test_the_expectation_holds_as_it_is_named(
    scheduler: Start, gpu_hall: ClusterClient, expectation: Expectation
) -> None:
    scheduler()
    add(gpu_hall, *expectation.pods)
    gpu_hall.until(PODS, lambda pods: settled(expectation, by_name(pods)), "all have a node or a reason")
    for pods in gpu_hall.states(PODS, seconds=STAYS if expectation.waiting else 0.0):
        assert settled(expectation, by_name(pods)), "what waits goes on waiting"
    found = Cluster(by_name(gpu_hall.objects(PODS)), gpu_hall.objects(NODES), gpu_hall.objects(SLICES))
    assert judge(expectation, found) == []


def test_a_bronze_tenant_gets_the_best_gpus_only_when_there_are_no_others(
    scheduler: Start, gpu_hall: ClusterClient
) -> None:
    scheduler()
    for number, each in enumerate(FILLING, 1):

        def bound(pods: Objects, number: int = number) -> bool:
            return sum(bool(node_of(pods, name)) for name in pods) == number

        add(gpu_hall, each)
        found = gpu_hall.until(PODS, bound, f"{number} are bound")
    assert models_of(by_name(found), gpu_hall.objects(NODES)) == list(FILLED)
