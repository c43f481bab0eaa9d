"""Which pods are alike: those whose claims come to the same, whatever the claims are called."""

from typing import Any

import pytest

from kubenexus.api.core import Pod
from kubenexus.api.storage import CSIStorageCapacity
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod
from tests.volumes.builders import a_capacity, a_claim, a_class, a_csi_node, a_driver, a_mounting_pod, a_volume, told
from tests.volumes.plugin_fixture import Scheduler, cluster
from tests.volumes.reference import TWINS

NODES = [a_node(f"n{i}", zone="ab"[i % 2]) for i in range(6)]
LOCAL = a_class("local", by="kubernetes.io/no-provisioner")


def classes(ledger: Ledger, *pods: Pod) -> int:
    class_cache = Planner(profile_plugins()).class_cache
    for pod in pods:
        class_cache.lookup(pod, ledger.nodes)
    return len(class_cache)


PODS = [a_mounting_pod(f"web-{i}", f"data-{i}") for i in range(4)]


@pytest.mark.parametrize(
    ("claims", "number"),
    [
        pytest.param([a_claim(f"data-{i}") for i in range(4)], 1, id="unbound claims of one size are one class"),
        pytest.param([a_claim(f"data-{i}", size=f"{1 + i % 2}Gi") for i in range(4)], 2, id="sizes make a difference"),
        pytest.param(
            [x for i in range(4) for x in (a_claim(f"data-{i}", volume=f"v{i}"), a_volume(f"v{i}", on={ZONE: "a"}))],
            1,
            id="claims bound to volumes of one zone are one class",
        ),
        pytest.param(
            [
                x
                for i in range(4)
                for x in (a_claim(f"data-{i}", volume=f"v{i}"), a_volume(f"v{i}", on={HOSTNAME: f"n{i}"}))
            ],
            4,
            id="volumes that each lie on a node of their own are unique by nature",
        ),
        pytest.param(
            [
                *(a_claim(f"data-{i}", of="local") for i in range(4)),
                *(a_volume(f"v{i}", of="local", on={HOSTNAME: f"n{i}"}) for i in range(6)),
            ],
            1,
            id="claims that will choose among local volumes are one class",
        ),
    ],
)
def test_pods_of_a_stateful_set(claims: list[Any], number: int) -> None:
    assert classes(cluster(NODES, a_class(), LOCAL, *claims), *PODS) == number


def test_pods_without_volumes_of_ours_cost_nothing() -> None:
    ledger = cluster(NODES, a_class(), a_driver(), a_csi_node("n0", {"d": 1}))
    plain = [a_pod("plain"), a_mounting_pod("token"), a_mounting_pod("config", {"configMap": {}}, {"emptyDir": {}})]
    rules = {rule.name: rule for rule in profile_plugins().signs if rule.name in TWINS}
    assert rules.keys() == TWINS.keys()
    assert [rule.sign(pod, ledger.nodes) for rule in rules.values() for pod in plain] == [None] * 12
    assert classes(ledger, *plain) == 1


def test_pods_without_volumes_are_not_looked_at_again_when_storage_changes() -> None:
    ledger = cluster(NODES, a_class())
    planner = Planner(profile_plugins())
    planner.class_cache.lookup(a_pod("plain"), ledger.nodes)
    before = planner.class_cache.work.rows
    told(ledger, a_volume("pv"), a_claim("c"), a_class("local", zones=["a"]), a_capacity("k"))
    planner.class_cache.lookup(a_pod("plain"), ledger.nodes)
    assert planner.class_cache.work.builds == 1
    assert planner.class_cache.work.rows - before <= 1  # one row is named, so that stamps are looked at


def test_a_pod_is_of_another_class_once_its_volume_is_in_use() -> None:
    ledger = cluster(NODES, a_claim("shared", volume="pv"), a_volume("pv"))
    pods = [a_mounting_pod(f"p{i}", "shared") for i in range(3)]
    assert classes(ledger, *pods) == 1
    scheduler = Scheduler(ledger)
    for pod in pods:
        assert scheduler.place(pod).placed
    assert len(scheduler.planner.class_cache) == 2


def test_a_thousand_claims_of_a_stateful_set_are_placed_from_one_table() -> None:
    claims = [a_claim(f"c{i}") for i in range(40)]
    nodes = [a_node(f"n{i}") for i in range(6)]
    limits = [a_csi_node(f"n{i}", {"csi.example.com": 7}) for i in range(6)]
    scheduler = Scheduler(cluster(nodes, a_class(), *claims, *limits))
    placed = [scheduler.place(a_mounting_pod(f"p{i}", f"c{i}")) for i in range(40)]
    assert all(decision.placed for decision in placed)
    assert (len(scheduler.planner.class_cache), scheduler.planner.class_cache.work.builds) == (1, 1)
    on = [decision.placements[0].node for decision in placed]
    assert max(on.count(f"n{i}") for i in range(6)) <= 7


def nodes_for(pod: Pod, scheduler: Scheduler) -> set[str]:
    """Where one of two nodes is left, found from tables that live on."""
    table = scheduler.planner.class_cache.lookup(pod, scheduler.ledger.nodes).table
    return {name for name, row in scheduler.ledger.nodes.row_of.items() if table.feasible[row]}


PAIR = [a_node("a1", zone="a"), a_node("b1", zone="b")]


def test_a_cached_answer_follows_the_topologies_of_a_class() -> None:
    scheduler = Scheduler(cluster(PAIR, a_class(zones=["a"]), a_claim("c")))
    pod = a_mounting_pod("p", "c")
    assert nodes_for(pod, scheduler) == {"a1"}
    told(scheduler.ledger, a_class(zones=["b"]))
    assert nodes_for(pod, scheduler) == {"b1"}
    assert scheduler.planner.class_cache.work.builds == 1


def test_what_classes_share_of_the_nodes_follows_their_labels() -> None:
    """Two classes with claims of different sizes agree on which nodes are alike, until one moves to another zone."""
    scheduler = Scheduler(cluster(PAIR, a_class(zones=["a"]), a_claim("c"), a_claim("d", size="2Gi")))
    pods = [a_mounting_pod("p", "c"), a_mounting_pod("q", "d")]
    assert [nodes_for(pod, scheduler) for pod in pods] == [{"a1"}, {"a1"}]
    scheduler.ledger.upsert_node(a_node("b1", zone="a"))
    assert [nodes_for(pod, scheduler) for pod in pods] == [{"a1", "b1"}, {"a1", "b1"}]
    scheduler.ledger.upsert_node(a_node("a1", zone="b"))
    assert [nodes_for(pod, scheduler) for pod in pods] == [{"b1"}, {"b1"}]
    assert len(scheduler.planner.class_cache) == 2


def test_a_cached_answer_follows_a_reserved_volume_that_moves() -> None:
    scheduler = Scheduler(cluster(PAIR, LOCAL, a_claim("c", of="local")))
    pod = a_mounting_pod("p", "c")
    for zone in ("a", "b", "a"):
        told(scheduler.ledger, a_volume("pv", of="local", claim="c", on={ZONE: zone}))
        assert nodes_for(pod, scheduler) == {f"{zone}1"}


def test_a_cached_answer_follows_capacity_as_it_comes_and_goes() -> None:
    scheduler = Scheduler(cluster(PAIR, a_class(), a_claim("c"), a_driver(capacity=True)))
    pod = a_mounting_pod("p", "c")
    assert nodes_for(pod, scheduler) == set()
    told(scheduler.ledger, a_capacity("k", on={ZONE: "a"}))
    assert nodes_for(pod, scheduler) == {"a1"}
    told(scheduler.ledger, a_capacity("k", "1Mi", on={ZONE: "a"}), a_capacity("l", on={ZONE: "b"}))
    assert nodes_for(pod, scheduler) == {"b1"}
    scheduler.ledger.remove_storage(CSIStorageCapacity, "kube-system/l")
    assert nodes_for(pod, scheduler) == set()


def test_a_cached_answer_follows_a_driver_that_begins_to_count() -> None:
    scheduler = Scheduler(cluster(PAIR, a_class(), a_claim("c")))
    pod = a_mounting_pod("p", "c")
    assert nodes_for(pod, scheduler) == {"a1", "b1"}
    told(scheduler.ledger, a_driver(capacity=True))
    assert nodes_for(pod, scheduler) == set()
