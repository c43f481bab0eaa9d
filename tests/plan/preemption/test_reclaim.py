"""A queue below its guarantee takes back what others borrow, and nothing else."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.preemption import taken_back
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.state.queues.queue_objects import a_queue

CPUS = 4


class Reclaim:
    """A cluster of one node; pods of one CPU."""

    def __init__(self, *queues: Any, reclaim: bool = True, cpu: int = CPUS) -> None:
        self.ledger = Ledger()
        self.ledger.upsert_node(a_node("n", cpu=str(cpu)))
        for queue in queues:
            self.ledger.queues.set_queue(queue)
        self.planner = Planner(profile_plugins(), gang_preemption=PreemptionPolicy(reclaim=reclaim))

    def decide(self, name: str, namespace: str, cpu: int = 1, priority: int = 0) -> tuple[Job, Decision]:
        job = Job.of(a_pod(name, namespace=namespace, cpu=str(cpu), priority=priority))
        return job, self.planner.decide(job, self.ledger.snapshot(), 0.0)

    def victims(self, name: str, namespace: str, **fields: int) -> list[str]:
        """The pods that go for a job; the job is placed if none has to."""
        job, decision = self.decide(name, namespace, **fields)
        if decision.placed:
            commit(decision, job, self.ledger, 0.0)
        return [] if decision.preemption is None else sorted(each.pod for each in decision.preemption.victims)

    def fill(self, namespace: str, **fields: int) -> None:
        for i in range(CPUS):
            assert self.victims(f"{namespace}{i}", namespace, **fields) == []


A = a_queue("a", guaranteed={"cpu": 2}, namespaces=["a"])
B = a_queue("b", namespaces=["b"])


def test_a_queue_takes_back_its_guarantee_and_no_more() -> None:
    reclaim = Reclaim(A, B)
    reclaim.fill("b")
    for i in range(2):
        (victim,) = reclaim.victims(f"a{i}", "a")
        reclaim.ledger.remove_pod(victim)
        assert reclaim.victims(f"a{i}", "a") == []
    assert {record.namespace for record in reclaim.ledger.pods.values()} == {"a", "b"}
    assert reclaim.victims("more", "a") == [], "it would be beyond its guarantee"
    assert reclaim.victims("again", "b") == [], "and nothing is taken back from it"


def test_pods_that_go_for_other_jobs_are_not_taken_back_again() -> None:
    reclaim = Reclaim(a_queue("a", guaranteed={"cpu": 3}, namespaces=["a"]), B)
    reclaim.fill("b")
    taken, going = list[tuple[str, ...]](), set[str]()
    for i in range(4):
        job, decision = reclaim.decide(f"a{i}", "a")
        if decision.preemption is None:
            break
        taken.append(decision.preemption.taken_back)
        victims = {each.uid for each in decision.preemption.victims}
        reclaim.ledger.begin_preemption(job.key, ((job.pods[0], "n"),), victims)
        going |= victims
    assert taken == [("b",)] * 3, "one for each, while none of them is gone"
    assert len(going) == 3


@pytest.mark.parametrize(
    ("queues", "fields"),
    [
        pytest.param((A, B), {"reclaim": False}, id="it is not configured"),
        pytest.param((), {}, id="there are no queues"),
        pytest.param((a_queue("a", namespaces=["a"]), B), {}, id="there is no guarantee"),
        pytest.param((A, a_queue("b", guaranteed={"cpu": 4}, namespaces=["b"])), {}, id="the others do not borrow"),
        pytest.param(
            (a_queue("a", guaranteed={"memory": "1Gi"}, namespaces=["a"]), B),
            {},
            id="the guarantee is of another resource",
        ),
    ],
)
def test_nothing_is_taken_back_if(queues: tuple[Any, ...], fields: dict[str, Any]) -> None:
    reclaim = Reclaim(*queues, **fields)
    reclaim.fill("b")
    assert reclaim.victims("a0", "a") == []


def test_a_pod_of_more_priority_is_no_victim() -> None:
    reclaim = Reclaim(A, B)
    reclaim.fill("b", priority=5)
    assert reclaim.victims("a0", "a") == []


def test_a_pod_whose_queue_would_fall_below_its_guarantee_is_no_victim() -> None:
    reclaim = Reclaim(A, a_queue("b", guaranteed={"cpu": 3}, namespaces=["b"]))
    assert reclaim.victims("large", "b", cpu=4) == []
    assert reclaim.victims("a0", "a") == [], "it borrows one, and has four"


def test_f54_siblings_take_back_from_each_other_and_not_in_turns() -> None:
    reclaim = Reclaim(
        a_queue("all", guaranteed={"cpu": 4}),
        a_queue("a", parent="all", guaranteed={"cpu": 2}, namespaces=["a"]),
        a_queue("b", parent="all", namespaces=["b"]),
    )
    reclaim.fill("b")
    (victim,) = reclaim.victims("a0", "a")
    reclaim.ledger.remove_pod(victim)
    assert reclaim.victims("a0", "a") == [], "it fits now"
    assert reclaim.victims("again", "b") == [], "and is not taken back"


def test_pods_that_can_go_together_are_looked_for_among_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taken_back, "MOST_TOGETHER", 3)
    reclaim = Reclaim(A, B, cpu=6)
    for i in range(6):
        assert reclaim.victims(f"b{i}", "b", priority=6 - i) == []
    snapshot, job = reclaim.ledger.snapshot(), Job.of(a_pod("x", namespace="a", cpu="1", priority=9))
    there = snapshot.nodes.pods.placed[0] >= 0
    found = taken_back.take_back(job, snapshot, there, together=True)
    assert found is not None
    records = snapshot.nodes.pods.victims.records
    names = [record.name for slot in found.pods.nonzero()[0] if (record := records[slot]) is not None]
    assert sorted(names) == ["b3", "b4", "b5"]


queues = st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 2)) for _ in range(3)])


@settings(max_examples=30)
@given(queues, st.permutations(["a", "b", "c"] * 4))
def test_f45_evictions_come_to_an_end_and_no_queue_is_pushed_below_its_guarantee(
    shapes: tuple[tuple[int, int], ...], order: list[str]
) -> None:
    """Each evicted pod comes again at once, and all try for ever: weights of 0 included."""
    specs = zip("abc", shapes, strict=True)
    trees = [a_queue(n, guaranteed={"cpu": g}, weight=w, namespaces=[n]) for n, (g, w) in specs]
    reclaim = Reclaim(*trees)
    waiting = [(f"{name}{i}", name) for i, name in enumerate(order)]
    evicted = 0
    for _ in range(6):
        for name, namespace in list(waiting):
            gone = reclaim.victims(name, namespace)
            for key in gone:
                queue = reclaim.ledger.queues.queue_of(key.partition("/")[0])
                reclaim.ledger.remove_pod(key)
                assert queue.used.get("cpu", 0) >= queue.guaranteed["cpu"]
                waiting.append((key.partition("/")[2], key.partition("/")[0]))
                evicted += 1
            if gone:
                assert reclaim.victims(name, namespace) == [], "it fits now"
            if f"{namespace}/{name}" in reclaim.ledger.pods:
                waiting.remove((name, namespace))
    assert evicted <= CPUS, "no more than what was borrowed at first"
    if sum(guaranteed for guaranteed, _ in shapes) <= CPUS:
        for name, (guaranteed, _) in zip("abc", shapes, strict=True):
            used = reclaim.ledger.queues.queue_of(name).used.get("cpu", 0)
            assert used >= 1000 * guaranteed, "each guarantee is met, within so many turns"
