"""A real API server hands us pods and we bind them."""

from kubenexus.testing.controlplane import ClusterClient
from tests.e2e.scheduling import Start, a_node, a_pod, condition, events, make_nodes, placed, pods

NOT_SERVED = (
    "podgroups.scheduling.k8s.io",
    "workloads.scheduling.k8s.io",
    "podgroups.scheduling.x-k8s.io",
    "podgroups.scheduling.volcano.sh",
    "noderesourcetopologies.topology.node.k8s.io",
    "clusterqueues.kueue.x-k8s.io",
    "localqueues.kueue.x-k8s.io",
    "workloads.kueue.x-k8s.io",
    "queues.scheduling.kubenexus.io",
    "resourcereservations.scheduling.kubenexus.io",
)


def test_plain_pods_are_bound(scheduler: Start, cluster: ClusterClient, namespace: str) -> None:
    make_nodes(cluster, a_node("n1"), a_node("n2"))
    cluster.create(a_pod("early", "1"), namespace)
    cluster.create(a_pod("foreign", "1", scheduler="somebody-else"), namespace)
    program = scheduler()
    cluster.create(a_pod("late", "1"), namespace)
    seen = cluster.until(pods(namespace), lambda all: len(placed(all)) == 2, "two pods are bound")
    assert sorted(placed(seen)) == ["early", "late"]
    assert len(set(placed(seen).values())) == 2, "they are spread over the nodes"
    assert condition(seen, "late")["status"] == "True"
    program.stop()
    said = events(cluster, namespace, "late")
    assert [(each["type"], each["reason"], each["action"]) for each in said] == [("Normal", "Scheduled", "Binding")]
    assert said[0]["note"] == f"Successfully assigned {namespace}/late to {placed(seen)['late']}"


def test_a_kind_that_is_not_served_is_said_once_and_nothing_waits_for_it(
    scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1"))
    program = scheduler()
    cluster.create(a_pod("a", "1"), namespace)
    cluster.until(pods(namespace), lambda all: len(placed(all)) == 1, "the pod is bound")
    program.stop()
    said = [line for line in program.said().splitlines() if "Kind is not served here" in line]
    resources = {group: f'resource="{group}"' for group in NOT_SERVED}
    assert {group: sum(text in line for line in said) for group, text in resources.items()} == dict.fromkeys(
        NOT_SERVED, 1
    )
    assert len(said) == len(NOT_SERVED)
