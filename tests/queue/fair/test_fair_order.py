"""The order of jobs along the tree of queues: shares, turns of namespaces, limits, and what a change does."""

import pytest

from tests.queue.fair.fair_fixture import FairFixture, names
from tests.state.queues.queue_objects import a_queue


def two_queues(**first: object) -> FairFixture:
    return FairFixture(a_queue("a", namespaces=["a", "a2", "a3"], **first), a_queue("b", namespaces=["b"]))


def test_without_queues_the_order_is_priority_and_age() -> None:
    fixture = FairFixture()
    for number, (name, namespace, priority) in enumerate([("x", "a", 0), ("y", "a", 0), ("z", "b", 5), ("w", "b", 0)]):
        fixture.add(name, namespace, since=float(number), priority=priority)
    assert names(fixture.run()) == ["z", "x", "y", "w"]


def test_queues_of_equal_weight_take_turns() -> None:
    fixture = two_queues()
    for i in range(4):
        fixture.add(f"a-{i}", "a", since=float(i))
    for i in range(2):
        fixture.add(f"b-{i}", "b", since=10.0 + i)
    assert names(fixture.run()) == ["a-0", "b-0", "a-1", "b-1", "a-2", "a-3"]


def test_a_queue_of_twice_the_weight_has_twice_as_much() -> None:
    fixture = FairFixture(a_queue("a", weight=2, namespaces=["a"]), a_queue("b", namespaces=["b"]), cpu=30)
    for i in range(40):
        fixture.add(f"a-{i}", "a")
        fixture.add(f"b-{i}", "b")
    fixture.run()
    assert fixture.cpus() == {"a": 20, "b": 10, "default": 0}


def test_priority_counts_within_a_queue_and_not_beyond() -> None:
    fixture = two_queues()
    fixture.add("low", "a", since=1.0)
    fixture.add("high", "a", since=2.0, priority=9)
    fixture.add("other", "b", since=3.0)
    assert names(fixture.run()) == ["high", "other", "low"], "both queues use nothing: the first job is the first"


def test_namespaces_of_a_queue_take_turns_however_many_jobs_one_has() -> None:
    fixture = two_queues()
    for i in range(6):
        fixture.add(f"many-{i}", "a", since=float(i))
    fixture.add("few-0", "a2", since=10.0)
    fixture.add("few-1", "a2", since=11.0)
    fixture.add("one-0", "a3", since=12.0)
    assert names(fixture.run()) == [
        "many-0",
        "few-0",
        "one-0",
        "many-1",
        "few-1",
        "many-2",
        "many-3",
        "many-4",
        "many-5",
    ]


def test_a_queue_below_its_guarantee_comes_first() -> None:
    fixture = FairFixture(
        a_queue("a", weight=100, namespaces=["a"]), a_queue("b", guaranteed={"cpu": 3}, namespaces=["b"]), cpu=8
    )
    for i in range(10):
        fixture.add(f"a-{i}", "a", since=0.0)
        fixture.add(f"b-{i}", "b", since=1.0)
    assert names(fixture.run())[:3] == ["b-0", "b-1", "b-2"]
    assert fixture.cpus()["b"] >= 3


def test_a_queue_without_weight_gets_what_others_leave() -> None:
    fixture = FairFixture(a_queue("a", weight=0, namespaces=["a"]), a_queue("b", namespaces=["b"]), cpu=5)
    for i in range(3):
        fixture.add(f"a-{i}", "a", since=0.0)
        fixture.add(f"b-{i}", "b", since=1.0)
    assert names(fixture.run()) == ["b-0", "b-1", "b-2", "a-0", "a-1"]


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"limit": {"cpu": 2}}, id="a limit of the queue"),
        pytest.param({"namespaceLimit": {"cpu": 2}}, id="a limit of each namespace"),
        pytest.param({"guaranteed": {"cpu": 1}, "borrowingLimit": {"cpu": 1}}, id="what it may borrow"),
        pytest.param({"limit": {"pods": 2}}, id="a number of pods"),
    ],
)
def test_a_job_beyond_a_limit_waits_until_less_is_used(limits: dict[str, object]) -> None:
    fixture = two_queues(**limits)
    jobs = [fixture.add(f"a-{i}", "a") for i in range(4)]
    fixture.add("b-0", "b")
    assert names(fixture.run()) == ["a-0", "b-0", "a-1"]
    assert fixture.queue.take_rejected() == [jobs[2].key], "one for all of its kind"
    why = fixture.queue.last_decision(jobs[3].key)
    assert why is not None
    assert "2" in why.sentence()
    fixture.end(jobs[0].key)
    assert names(fixture.run()) == ["a-2"]
    fixture.end("b/b-0")
    assert fixture.run() == [], "what others free is of no use"


def test_the_reason_has_the_limit_and_the_usage() -> None:
    fixture = FairFixture(
        a_queue("all", limit={"memory": "3Gi"}),
        a_queue("a", parent="all", namespaces=["a"], limit={"cpu": 2}),
        a_queue("b", parent="all", namespaces=["b"], namespaceLimit={"cpu": 1}),
    )
    job = fixture.add("first", "a", cpu=1.5, memory="2Gi")
    fixture.run()
    for name, namespace, cpu, memory, reason in [
        ("p", "a", 1, "0", "queue a is at its limit: 1500m cpu of 2 cpu in use, and the job asks for 1 cpu"),
        ("q", "a", 3, "0", "queue a may use 2 cpu at most, and the job asks for 3 cpu"),
        ("r", "a", 0.1, "2Gi", "queue all is at its limit: 2Gi memory of 3Gi memory in use, and the job asks for 2Gi"),
        ("s", "b", 2, "0", "namespace b may use 1 cpu at most, and the job asks for 2 cpu"),
    ]:
        job = fixture.add(name, namespace, cpu=cpu, memory=memory)
        assert fixture.run() == []
        why = fixture.queue.last_decision(job.key)
        assert why is not None
        assert reason in why.sentence()


def test_a_smaller_job_passes_one_that_its_limit_keeps_waiting() -> None:
    fixture = two_queues(limit={"cpu": 4})
    fixture.add("large", "a", cpu=6, since=0.0)
    fixture.add("small", "a", cpu=1, since=1.0)
    assert names(fixture.run()) == ["small"]


def test_of_many_that_wait_for_a_limit_the_first_in_order_is_woken() -> None:
    fixture = two_queues(limit={"cpu": 2})
    fixture.add("first", "a", cpu=2)
    fixture.run()
    for i in range(5):
        fixture.add(f"w{i}", "a", cpu=1, since=10.0 - i)
    fixture.add("urgent", "a", cpu=2, since=50.0, priority=5)
    assert fixture.run() == []
    fixture.end("a/first")
    assert names(fixture.run()) == ["urgent"]
    fixture.end("a/urgent")
    assert names(fixture.run()) == ["w4", "w3"]


def test_a_woken_job_that_is_deleted_leaves_its_turn_to_the_next() -> None:
    fixture = two_queues(limit={"cpu": 1})
    fixture.add("first", "a")
    jobs = [fixture.add(f"w{i}", "a", since=float(i)) for i in range(3)]
    fixture.run()
    fixture.end(next(iter(fixture.running)))
    fixture.queue.tick()
    fixture.queue.delete(jobs[0].key)
    assert names(fixture.run()) == ["w1"]


def test_a_woken_job_that_no_node_takes_leaves_its_turn_to_the_next() -> None:
    fixture = FairFixture(a_queue("a", namespaces=["a"], limit={"cpu": 5}), cpu=10, memory="1Gi")
    fixture.add("first", "a", cpu=5)
    fixture.run()
    fixture.add("fat", "a", cpu=5, memory="9Gi", since=1.0)
    fixture.add("thin", "a", cpu=5, memory="1Gi", since=2.0)
    assert fixture.run() == []
    fixture.end("a/first")
    assert names(fixture.run()) == ["thin"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda f: f.tree.set_queue(a_queue("a", namespaces=["a"], limit={"cpu": 2})), id="a higher limit"),
        pytest.param(lambda f: f.tree.set_queue(a_queue("a", namespaces=["a"])), id="no limit any more"),
        pytest.param(lambda f: f.tree.remove_queue("a"), id="the queue is gone"),
        pytest.param(
            lambda f: f.ledger._namespace("a", {"scheduling.kubenexus.io/queue": "b"}), id="another queue for it"
        ),
        pytest.param(lambda f: f.tree.remove_queue("a") or f.tree.remove_queue("b"), id="no queues any more"),
    ],
)
def test_f60_a_change_of_the_configuration_wakes_the_jobs_that_it_may_help(change: object) -> None:
    fixture = FairFixture(a_queue("a", namespaces=["a"], limit={"cpu": 1}), a_queue("b", namespaces=["b"]))
    fixture.add("p-0", "a")
    fixture.add("p-1", "a")
    assert names(fixture.run()) == ["p-0"]
    change(fixture)  # type: ignore[operator]
    assert fixture.queue.has_ready
    assert names(fixture.run()) == ["p-1"]


def test_queues_that_come_later_order_what_waits_already() -> None:
    fixture = FairFixture()
    for i in range(3):
        fixture.add(f"a-{i}", "a", since=float(i))
        fixture.add(f"b-{i}", "b", since=10.0 + i)
    fixture.tree.set_queue(a_queue("a", namespaces=["a"]))
    fixture.tree.set_queue(a_queue("b", namespaces=["b"]))
    assert names(fixture.run()) == ["a-0", "b-0", "a-1", "b-1", "a-2", "b-2"]


def test_jobs_that_are_critical_for_the_cluster_come_before_all_queues_unless_a_queue_takes_them() -> None:
    fixture = FairFixture(a_queue("a", namespaces=["a"]), a_queue("b", namespaces=["b"]))
    fixture.add("work", "b", since=0.0)
    fixture.run()
    fixture.add("more", "a", since=1.0)
    fixture.add("own", "b", since=2.0, priority=2_000_000_000)
    fixture.add("system", "kube-system", since=3.0, priority=2_000_000_000)
    assert names(fixture.run()) == ["system", "more", "own"]


def test_retries_of_a_queue_do_not_keep_the_new_jobs_of_another_waiting() -> None:
    fixture = FairFixture(a_queue("a", namespaces=["a"]), a_queue("b", namespaces=["b"]), cpu=10)
    fixture.add("b", "b", cpu=5)
    fixture.run()
    for i in range(20):
        fixture.add(f"huge{i}", "a", cpu=100, priority=9)
    fixture.run()
    fixture.end("b/b")  # wakes all of them, and they have the lower share
    fixture.add("b-again", "b", cpu=5)
    tried = 0
    while (attempt := fixture.pop()) is not None and attempt.job.namespace != "b":
        from tests.queue.queue_fixture import refusal

        fixture.queue.done(attempt, refusal(attempt, "Ports"))
        tried += 1
    assert attempt is not None
    assert tried <= 2
