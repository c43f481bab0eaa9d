"""Queues in a whole scheduler: objects and configuration, limits as events and conditions, and what wakes a job."""

from typing import Any

from prometheus_client import generate_latest

from kubenexus.api.codec import from_data
from kubenexus.api.queues.queue import Queue
from kubenexus.api.workloads import Namespace
from kubenexus.app.report.gauge_collector import GaugeCollector
from kubenexus.observe.metrics import Metrics
from kubenexus.observe.share_metrics import MAX_QUEUES, MAX_RESOURCES, QueueUse
from kubenexus.state.object_kinds import QUEUE as KIND
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.bind.server import FORBIDDEN

CONFIGURED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - {name: KubeNexus, args: {queues: [{name: ml, limit: {cpu: 2}, namespaces: [a]}]}}
"""


def a_queue(name: str, **spec: Any) -> Queue:
    return from_data({"metadata": {"name": name}, "spec": spec}, Queue)


def a_namespace(name: str, **labels: str) -> Namespace:
    return from_data({"metadata": {"name": name, "labels": labels}}, Namespace)


def queues(fixture: SchedulerFixture, *queues: Queue) -> None:
    for queue in queues:
        fixture.handlers.objects.on_update(KIND, queue)


LIMIT = "queue ml is at its limit: 2 cpu of 2 cpu in use, and the job asks for 1 cpu"
QUEUE = "scheduling.kubenexus.io/queue"


def test_a_pod_beyond_the_limit_of_its_queue_waits_and_is_told_limit_and_usage() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu="10"))
        queues(fixture, a_queue("ml", limit={"cpu": 2}, namespaces=["a"]))
        fixture.pods(
            *(a_pod(f"p{i}", namespace="a", cpu="1") for i in range(4)), a_pod("other", namespace="b", cpu="5")
        )
        await fixture.work()
        assert set(fixture.bound()) == {"p0", "p1", "other"}
        rejected = [each for each in fixture.told() if not each.startswith("Scheduled")]
        assert sorted(rejected) == [f"Rejected p{i}: {LIMIT}" for i in (2, 3)]
        await fixture.notes()
        said = [body["status"]["conditions"][0] for body in fixture.server.said("/status")]
        assert [(each["reason"], each["message"]) for each in said] == [("SchedulingGated", LIMIT)] * 2, (
            "which no autoscaler takes for a lack of nodes"
        )

    scheduler_test(life)


def test_a_pod_that_ends_wakes_the_next_one_and_the_others_are_not_told_again() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu="10"))
        queues(fixture, a_queue("ml", limit={"cpu": 2}, namespaces=["a"]))
        fixture.pods(*(a_pod(f"p{i}", namespace="a", cpu="1") for i in range(4)))
        await fixture.work()
        await fixture.notes()
        fixture.delete("a/p0")
        await fixture.work()
        assert set(fixture.bound()) == {"p1", "p2"}
        await fixture.notes()
        assert len(fixture.server.said("/status")) == 2

    scheduler_test(life)


def test_a_bind_that_fails_gives_its_part_of_the_limit_back() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu="10"))
        queues(fixture, a_queue("ml", limit={"cpu": 1}, namespaces=["a"]))
        fixture.server.script.append(FORBIDDEN)
        fixture.pods(a_pod("p", namespace="a", cpu="1"))
        await fixture.work()
        assert not fixture.ledger.queues.root.used
        fixture.clock.advance(60.0)
        await fixture.work()
        assert set(fixture.bound()) == {"p"}
        assert fixture.ledger.queues.root.used == {"cpu": 1000, "pods": 1}

    scheduler_test(life)


def test_a_queue_that_cannot_be_read_leaves_the_one_before() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        queues(fixture, a_queue("ml", limit={"cpu": 2}, namespaces=["a"]))
        queues(fixture, a_queue("ml", limit={"cpu": "x"}))
        assert fixture.ledger.queues.queue_of("a").most == {"cpu": 2000}
        assert fixture.handlers.bad_objects.logged
        fixture.handlers.objects.on_delete(KIND, "ml")
        assert not fixture.ledger.queues.is_active

    scheduler_test(life)


def test_a_namespace_that_gets_another_queue_has_its_limits_and_pods_have_no_say() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu="10"))
        queues(fixture, a_queue("small", limit={"cpu": 1}), a_queue("large"))
        fixture.things(a_namespace("a", **{QUEUE: "small"}))
        label = {QUEUE: "large"}
        fixture.pods(*(a_pod(f"p{i}", namespace="a", cpu="1", labels=label, annotations=label) for i in range(3)))
        await fixture.work()
        assert len(fixture.bound()) == 1
        fixture.things(a_namespace("a", **label))
        await fixture.work()
        assert len(fixture.bound()) == 3

    scheduler_test(life)


def test_queues_that_come_while_jobs_wait_and_go_again() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.pods(*(a_pod(f"p{i}", namespace=f"n{i % 2}", cpu="1") for i in range(6)))
        await fixture.work()
        queues(fixture, a_queue("ml", limit={"cpu": 2}, namespaces=["n0"]), a_queue("web", namespaces=["n1"]))
        fixture.nodes(a_node("n", cpu="10"))
        fixture.clock.advance(60.0)
        await fixture.work()
        assert set(fixture.bound()) == {"p0", "p2", "p1", "p3", "p5"}
        for name in ("ml", "web"):
            fixture.handlers.objects.on_delete(KIND, name)
        await fixture.work()
        assert len(fixture.bound()) == 6

    scheduler_test(life)


def test_a_gang_is_within_the_limit_as_a_whole_or_waits() -> None:
    gang = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "4"}

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu="10"))
        queues(fixture, a_queue("ml", limit={"cpu": 5}, namespaces=["a"]))
        fixture.pods(a_pod("first", namespace="a", cpu="2"))
        await fixture.work()
        fixture.pods(*(a_pod(f"g{i}", namespace="a", cpu="1", labels=gang) for i in range(4)))
        await fixture.work()
        assert set(fixture.bound()) == {"first"}
        told = [each for each in fixture.told() if each.startswith("Rejected")]
        assert len(told) == 4
        assert told[0].endswith("queue ml is at its limit: 2 cpu of 5 cpu in use, and the job asks for 4 cpu")
        assert told[1].endswith(": queue ml is at its limit"), "numbers are for the first member"
        fixture.delete("a/first")
        await fixture.work()
        assert set(fixture.bound()) == {f"g{i}" for i in range(4)}

    scheduler_test(life)


def test_queues_of_the_configuration_count_before_objects_of_their_name() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        tree = fixture.ledger.queues
        assert tree.is_active
        queues(fixture, a_queue("ml", limit={"cpu": 7}), a_queue("web", namespaces=["b"]))
        assert tree.queue_of("a").most == {"cpu": 2000}
        assert "the configuration has a queue of this name" in tree.take_warnings()["Queue ml"]
        fixture.handlers.objects.on_delete(KIND, "ml")
        assert tree.queue_of("a").most == {"cpu": 2000}
        assert tree.queue_of("b").name == "web"

    scheduler_test(life, CONFIGURED)


def test_what_queues_use_and_who_waits_are_metrics() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu="10"))
        queues(fixture, a_queue("all", limit={"cpu": 9}))
        queues(fixture, a_queue("ml", parent="all", guaranteed={"cpu": 1}, limit={"cpu": 2}, namespaces=["a"]))
        fixture.pods(*(a_pod(f"p{i}", namespace="a", cpu="1") for i in range(5)))
        await fixture.work()
        GaugeCollector(fixture.scheduler, None, fixture.clock).read()
        lines = [
            each
            for each in generate_latest(fixture.scheduler.metrics.registry).decode().splitlines()
            if "kubenexus_queue_" in each
        ]
        for line in (
            'kubenexus_queue_used{queue="ml",resource="cpu"} 2.0',
            'kubenexus_queue_used{queue="all",resource="cpu"} 2.0',
            'kubenexus_queue_guaranteed{queue="all",resource="cpu"} 1.0',
            'kubenexus_queue_borrowed{queue="ml",resource="cpu"} 1.0',
            'kubenexus_queue_limit{queue="ml",resource="cpu"} 2.0',
            'kubenexus_queue_share{queue="ml"} 0.2',
            'kubenexus_queue_waiting_jobs{queue="ml"} 3.0',
            'kubenexus_queue_waiting_jobs{queue="all"} 3.0',
        ):
            assert line in lines

    scheduler_test(life)


def test_what_a_queue_used_in_the_past_is_a_metric_where_it_counts() -> None:
    metrics = Metrics()
    metrics.queues.record([QueueUse("a", 0.1, 0, {}, {}, {}, past=0.25), QueueUse("b", 0.1, 0, {}, {}, {})])
    lines = generate_latest(metrics.registry).decode().splitlines()
    assert [line for line in lines if line.startswith("kubenexus_queue_past_share{")] == [
        'kubenexus_queue_past_share{queue="a"} 0.25'
    ]


def test_the_number_of_queues_in_metrics_is_bounded() -> None:
    metrics = Metrics()
    more = dict.fromkeys([f"example.com/r{i}" for i in range(40)], 1)
    metrics.queues.record([QueueUse(f"q{i}", i / 1000, i, more, {}, {}) for i in range(MAX_QUEUES + 50)])
    shown = [
        each
        for each in generate_latest(metrics.registry).decode().splitlines()
        if each.startswith("kubenexus_queue_share{")
    ]
    assert len(shown) == MAX_QUEUES
    assert not any('"q0"' in each for each in shown), "those that use the least are left out"
    used = [
        each
        for each in generate_latest(metrics.registry).decode().splitlines()
        if each.startswith("kubenexus_queue_used{")
    ]
    assert len(used) == MAX_QUEUES * MAX_RESOURCES
