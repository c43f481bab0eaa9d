"""What is taken back pushes no queue below its own guarantee: neither by a whole gang, nor a queue below the one that
borrows, nor by several victims in sum."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.api.queues.settings import QueueSettings
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.plan.preemption.small_clusters import RACK, in_gang
from tests.state.queues.queue_objects import a_queue


class Cluster:
    """Nodes of some CPUs; pods of one CPU each, of which those of a gang go as a whole."""

    def __init__(self, *queues: QueueSettings, cpu: int = 4, **racks: int) -> None:
        self.ledger, self.number = Ledger(), 0
        for rack, nodes in (racks or {"r": 1}).items():
            for i in range(nodes):
                self.ledger.upsert_node(a_node(f"{rack}{i}", cpu=str(cpu), labels={RACK: rack}))
        for queue in queues:
            self.ledger.queues.set_queue(queue)
        self.planner = Planner(profile_plugins(), gang_preemption=PreemptionPolicy(reclaim=True))

    def run(self, namespace: str, node: str, pods: int = 1, *, gang: bool = False) -> None:
        """Binds pods. As a gang they need each other."""
        self.number += 1
        labels = in_gang(f"g{self.number}", pods) if gang else {}
        for i in range(pods):
            name = f"p{self.number}-{i}"
            self.ledger.upsert_pod(a_pod(name, namespace=namespace, node=node, cpu="1", labels=labels))

    def victims(self, namespace: str, members: int = 1, required: str = "", cpu: int = 1) -> list[str]:
        pods = tuple(a_pod(f"new{i}", namespace=namespace, cpu=str(cpu)) for i in range(members))
        job = Job(f"{namespace}/x/new", pods, members, TopologyRequest(required=required)) if members > 1 else None
        decision = self.planner.decide(job or Job.of(pods[0]), self.ledger.snapshot(), 0.0)
        assert not decision.placed
        return [] if decision.preemption is None else sorted(each.pod for each in decision.preemption.victims)

    def of(self, victims: list[str]) -> list[str]:
        """The namespaces of victims."""
        return [key.partition("/")[0] for key in victims]


def queue(name: str, guaranteed: int = 0, **more: Any) -> QueueSettings:
    return a_queue(name, namespaces=[name], **({"guaranteed": {"cpu": guaranteed}} if guaranteed else {}), **more)


def test_a_gang_whose_loss_would_leave_its_queue_below_its_guarantee_stays() -> None:
    cluster = Cluster(queue("a", 2), queue("b", 2))
    cluster.run("b", "r0", pods=4, gang=True)
    assert cluster.victims("a") == [], "it borrows two, and would lose four"


def test_a_gang_that_is_borrowed_as_a_whole_goes() -> None:
    cluster = Cluster(queue("a", 2), queue("b", 2))
    cluster.run("b", "r0", pods=2)
    cluster.run("b", "r0", pods=2, gang=True)
    assert cluster.of(cluster.victims("a", members=2)) == ["b", "b"]


def test_a_queue_below_the_one_that_borrows_keeps_its_own_guarantee() -> None:
    cluster = Cluster(
        queue("a", 1),
        a_queue("all"),
        queue("poor", 2, parent="all"),
        queue("rich", parent="all"),
    )
    cluster.run("poor", "r0", pods=2)
    cluster.run("rich", "r0", pods=2)
    assert cluster.of(cluster.victims("a")) == ["rich"]


@pytest.mark.parametrize("order", [pytest.param(("b", "c"), id="b first"), pytest.param(("c", "b"), id="c first")])
def test_several_victims_in_sum_leave_each_queue_its_guarantee(order: tuple[str, ...]) -> None:
    cluster = Cluster(queue("a", 2), queue("b", 2), queue("c", 2), cpu=6)
    for name in order:
        cluster.run(name, "r0", pods=3)
    assert sorted(cluster.of(cluster.victims("a", cpu=2))) == ["b", "c"], "each borrows one"


def test_what_is_guaranteed_of_another_resource_is_no_shield_and_no_reason() -> None:
    """The queue is at its guarantee of CPUs: that of memory, which it does not use, does not keep what it borrows."""
    cluster = Cluster(queue("a", 2), a_queue("b", namespaces=["b"], guaranteed={"cpu": 2, "memory": "1Ti"}))
    cluster.run("b", "r0", pods=4)
    assert cluster.of(cluster.victims("a")) == ["b"]
    cluster.ledger.queues.set_queue(a_queue("b", namespaces=["b"], guaranteed={"memory": "1Ti"}))
    assert cluster.victims("a") == [], "it is below its guarantee"


def test_f52_a_gang_that_needs_its_quota_and_a_rack_gets_both_at_once() -> None:
    """Of b's eight pods four are borrowed. Any four would do for the guarantee, and only those of one rack for the
    gang, which has four members; the pods of c in the other rack borrow nothing."""
    cluster = Cluster(queue("a", 4), queue("b", 2), queue("c", 2), cpu=2, one=2, two=2)
    cluster.run("b", "one0", pods=2)
    cluster.run("c", "one1", pods=2)
    cluster.run("b", "two0", pods=2)
    cluster.run("b", "two1", pods=2)
    found = cluster.victims("a", members=4, required=RACK)
    assert cluster.of(found) == ["b"] * 4
    assert {cluster.ledger.pods[key].node for key in found} == {"two0", "two1"}


def test_f52_nothing_goes_if_the_quota_allows_for_it_and_no_rack_does() -> None:
    cluster = Cluster(queue("a", 4), queue("b", 2), queue("c", 2), cpu=2, one=2, two=2)
    for namespace, rack in (("b", "one"), ("c", "two")):
        for i in range(2):
            cluster.run(namespace, f"{rack}{i}", pods=2)
    assert cluster.victims("a", members=4, required=RACK) == [], "each may lose two, and a rack needs all four"
    assert cluster.of(cluster.victims("a", members=4)) == ["b", "b", "c", "c"], "without the rack they are found"


def below(ledger: Ledger) -> set[str]:
    """Queues that use less than they are guaranteed."""
    nodes = ledger.queues.queues()
    return {each.name for each in nodes if each.used.get("cpu", 0) < each.guaranteed.get("cpu", 0)}


shapes = st.tuples(
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.lists(st.tuples(st.sampled_from("bcd"), st.integers(1, 3)), max_size=8),
    st.sampled_from(["", "b"]),
    st.integers(1, 3),
)


@settings(max_examples=60)
@given(shapes)
def test_no_queue_that_has_its_guarantee_loses_it(shape: Any) -> None:
    guarantees, jobs, nested, members = shape
    above = {"parent": "top"} if nested else {}
    cluster = Cluster(
        a_queue("top"),
        queue("a", guarantees[0]),
        *(queue(name, amount, **above) for name, amount in zip("bcd", guarantees[1:], strict=True)),
        one=2,
    )
    free = {"one0": 4, "one1": 4}
    for namespace, size in jobs:
        node = max(free, key=lambda name: free[name])
        if free[node] >= size:
            free[node] -= size
            cluster.run(namespace, node, size, gang=size > 1)
    if sum(free.values()) >= members:
        return
    before, ledger = below(cluster.ledger), cluster.ledger
    found = cluster.victims("a", members=members)
    lost = set(cluster.of(found))
    for key in found:
        ledger.remove_pod(key)
    assert below(ledger) <= before
    assert not lost & before, "and none that has not loses anything"
