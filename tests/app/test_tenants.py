"""A tenant gets another tier while its pods wait: what was refused for its tier is tried again, and what is ready is
decided by the tier of that moment."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Node, Pod
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import Namespace
from kubenexus.app.watch.informers import InformerHandler
from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.client.watch_events import ADDED, DELETED, MODIFIED, WatchEvent
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import GPU, a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.state.test_tenants import NAME, QUEUE, TIER, a_cluster_queue, a_local_queue

RESOURCES = {"Namespace": kinds.NAMESPACES, "LocalQueue": kinds.LOCAL_QUEUES, "ClusterQueue": kinds.CLUSTER_QUEUES}


def a_namespace(tier: str = "", *, terminating: bool = False, **labels: str) -> Namespace:
    given = {TIER: tier} if tier else {}
    deleted = "2026-01-01T00:00:00Z" if terminating else ""
    return Namespace(metadata=ObjectMeta(name="default", labels={**given, **labels}, deletion_timestamp=deleted))


def a_gpu_node(name: str = "n", reserved: str = "gold") -> Node:
    labels = {"tenant.kubenexus.io/reserved-tier": reserved} if reserved else {}
    return a_node(name, cpu=64, resources={GPU: 8}, labels=labels)


def a_gpu_pod(name: str = "waits", **fields: Any) -> Pod:
    return a_pod(name, requests={GPU: 1}, scheduler_name="packing", **fields)


class Watches:
    """The watches of what tells whose a pod is."""

    def __init__(self, fixture: SchedulerFixture) -> None:
        self.fixture = fixture
        self._known: set[tuple[str, str]] = set()

    def _events(self, thing: Any, type_: str) -> None:
        resource: ApiResource = RESOURCES[type(thing).__name__]
        handler = InformerHandler(self.fixture.handlers, resource, self.fixture.scheduler.wakeup)
        handler.events([WatchEvent(type_, thing)])

    def see(self, *things: Any) -> None:
        for thing in things:
            key = (type(thing).__name__, thing.metadata.key)
            self._events(thing, MODIFIED if key in self._known else ADDED)
            self._known.add(key)

    def gone(self, *things: Any) -> None:
        for thing in things:
            self._events(thing, DELETED)


PLAIN_QUEUE, GOLD_QUEUE = a_local_queue(), a_local_queue(labels={TIER: "gold"})
PLAIN_QUOTA, GOLD_QUOTA = a_cluster_queue(), a_cluster_queue(labels={TIER: "gold"})


@pytest.mark.parametrize(
    ("before", "then"),
    [
        pytest.param((), (a_namespace("gold"),), id="a namespace that was missing comes"),
        pytest.param((a_namespace(),), (a_namespace("gold"),), id="a namespace gets a tier"),
        pytest.param((a_namespace("bronze"),), (a_namespace("gold"),), id="a namespace gets another tier"),
        pytest.param((a_namespace(), PLAIN_QUOTA), (GOLD_QUEUE,), id="the queue comes"),
        pytest.param((a_namespace(), PLAIN_QUOTA, PLAIN_QUEUE), (GOLD_QUEUE,), id="the queue gets a tier"),
        pytest.param((a_namespace(), GOLD_QUEUE), (PLAIN_QUOTA,), id="the ClusterQueue of a queue with a tier comes"),
        pytest.param((a_namespace(), PLAIN_QUEUE, PLAIN_QUOTA), (GOLD_QUOTA,), id="the ClusterQueue gets a tier"),
        pytest.param((a_namespace(), GOLD_QUOTA), (PLAIN_QUEUE,), id="the queue of a ClusterQueue with a tier comes"),
        pytest.param((PLAIN_QUEUE,), (a_namespace("gold"),), id="a missing namespace comes after its queue"),
    ],
)
def test_a_pod_that_its_tier_kept_waiting_is_tried_at_once(before: tuple[Any, ...], then: tuple[Any, ...]) -> None:
    waits = a_gpu_pod(labels={QUEUE: "research"})

    async def life(fixture: SchedulerFixture) -> None:
        watches = Watches(fixture)
        watches.see(*before)
        fixture.nodes(a_gpu_node())
        fixture.pods(waits)
        await fixture.work()
        assert fixture.queue.state(waits.key) is QueueState.UNSCHEDULABLE
        fixture.clock.advance(11)
        watches.see(*then)
        assert fixture.queue.state(waits.key) is QueueState.ACTIVE
        await fixture.work()
        assert fixture.where() == {"waits": "n"}

    scheduler_test(life)


@pytest.mark.parametrize(
    ("change", "placed"),
    [
        pytest.param(lambda w: w.see(a_namespace("bronze")), False, id="it is relabelled"),
        pytest.param(lambda w: w.see(a_namespace()), False, id="it loses its label"),
        pytest.param(lambda w: w.gone(a_namespace("gold")), False, id="it is gone"),
        pytest.param(lambda w: w.see(a_namespace("gold", terminating=True)), True, id="it is terminating"),
        pytest.param(
            lambda w: (w.gone(a_namespace("gold")), w.see(a_namespace("bronze"))),
            False,
            id="it is made again with less",
        ),
        pytest.param(
            lambda w: (w.gone(a_namespace("gold")), w.see(a_namespace("gold"))),
            True,
            id="it is made again with as much",
        ),
        pytest.param(lambda w: w.see(a_namespace("gold", other="label")), True, id="another label changes"),
    ],
)
def test_pods_that_are_ready_are_decided_by_the_tier_of_that_moment(
    change: Callable[[Watches], Any], placed: bool
) -> None:
    """Some of the namespace that changes, and of one that does not: the refusal of the former is not shared."""
    pods = [a_gpu_pod("a"), a_gpu_pod("b"), a_gpu_pod("other", namespace="other")]

    async def life(fixture: SchedulerFixture) -> None:
        watches = Watches(fixture)
        other = Namespace(metadata=ObjectMeta(name="other", labels={TIER: "gold"}))
        watches.see(a_namespace("gold"), other)
        fixture.nodes(a_gpu_node())
        fixture.pods(*pods)
        assert all(fixture.queue.state(pod.key) is QueueState.ACTIVE for pod in pods)
        change(watches)
        await fixture.work()
        assert sorted(fixture.where()) == (["a", "b", "other"] if placed else ["other"])

    scheduler_test(life)


def test_a_decision_under_way_when_the_tier_changes_is_no_refusal_of_others() -> None:
    pods = [a_gpu_pod("a"), a_gpu_pod("b", namespace="other")]

    async def life(fixture: SchedulerFixture) -> None:
        watches = Watches(fixture)
        other = Namespace(metadata=ObjectMeta(name="other", labels={TIER: "gold"}))
        watches.see(a_namespace("gold"), other)
        fixture.pods(*pods)  # without a node both are refused
        attempt = fixture.queue.pop()
        assert attempt is not None
        watches.see(a_namespace())
        snapshot = fixture.ledger.snapshot()
        decision = fixture.scheduler.planners["packing"].decide(attempt.job, snapshot, fixture.clock.now())
        assert not decision.placed
        assert fixture.queue.done(attempt, decision) is QueueState.ACTIVE, "it has another signature by now"
        assert fixture.queue.state("other/b") is QueueState.ACTIVE

    scheduler_test(life)


def test_a_pod_that_was_refused_for_another_reason_is_not_tried_again() -> None:
    waits = a_gpu_pod(cpu=100)

    async def life(fixture: SchedulerFixture) -> None:
        watches = Watches(fixture)
        watches.see(a_local_queue("some", labels={TIER: "silver"}))
        fixture.nodes(a_gpu_node(reserved=""))
        fixture.pods(waits, a_gpu_pod("named", cpu=100, labels={QUEUE: "some"}))
        await fixture.work()
        fixture.clock.advance(11)
        watches.see(a_local_queue("some", labels={TIER: "gold"}))
        assert fixture.queue.state(waits.key) is QueueState.UNSCHEDULABLE
        assert fixture.queue.state("default/named") is QueueState.UNSCHEDULABLE

    scheduler_test(life)


def test_a_name_raises_no_tier_without_a_queue_and_with_one_it_does() -> None:
    waits = a_gpu_pod(labels={QUEUE: "research"})

    async def life(fixture: SchedulerFixture) -> None:
        watches = Watches(fixture)
        watches.see(
            msgspec.structs.replace(a_namespace(), metadata=ObjectMeta(name="default", labels={NAME: "ml-prod"}))
        )
        watches.see(PLAIN_QUOTA)
        fixture.nodes(a_gpu_node())
        fixture.pods(waits)
        await fixture.work()
        assert not fixture.where()
        fixture.clock.advance(11)
        watches.see(PLAIN_QUEUE)
        await fixture.work()
        assert fixture.where() == {"waits": "n"}

    scheduler_test(life)


OPEN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packing
  pluginConfig:
  - name: KubeNexus
    args: {allowPodTier: %s}
- schedulerName: closed
"""


@pytest.mark.parametrize(
    ("allowed", "profile", "namespace", "placed"),
    [
        ("true", "packing", a_namespace(), True),
        ("true", "packing", a_namespace("bronze"), False),
        ("true", "closed", a_namespace(), False),
        ("false", "packing", a_namespace(), False),
    ],
)
def test_pods_choose_a_tier_only_where_the_configuration_lets_them(
    allowed: str, profile: str, namespace: Namespace, placed: bool
) -> None:
    pod = a_pod("p", requests={GPU: 1}, scheduler_name=profile, annotations={TIER: "gold"})

    async def life(_: SchedulerFixture) -> None:
        fixture = SchedulerFixture(OPEN % allowed)
        Watches(fixture).see(namespace)
        fixture.nodes(a_gpu_node())
        fixture.pods(pod)
        await fixture.work()
        assert bool(fixture.where()) is placed

    scheduler_test(life)


def test_a_namespace_with_many_jobs_is_signed_again_in_portions() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        watches = Watches(fixture)
        watches.see(a_namespace())
        fixture.nodes(a_gpu_node())
        fixture.pods(*(a_gpu_pod(f"p{number}") for number in range(350)))
        await fixture.work()
        fixture.clock.advance(11)
        fixture.queue.tick()
        watches.see(PLAIN_QUEUE, a_local_queue("other"))
        turns = 1
        while fixture.queue._namespace_jobs:
            fixture.queue.tick()
            turns += 1
        assert 4 <= turns <= 6

    scheduler_test(life)


# --- the order --------------------------------------------------------------------------------------------------------


def one_by_one(config: str, *changes: Callable[[Watches], Any]) -> list[str]:
    """Two namespaces, the second gold, each with two pods and room for one pod at a time: in what order they come."""
    order: list[str] = []

    async def life(_: SchedulerFixture) -> None:
        fixture = SchedulerFixture(config)
        watches = Watches(fixture)
        watches.see(a_namespace(), Namespace(metadata=ObjectMeta(name="gold", labels={TIER: "gold"})))
        for number, namespace in enumerate(["default", "gold", "default", "gold"]):
            fixture.pods(a_pod(f"p{number}", namespace=namespace, cpu=1, scheduler_name=config.rsplit(maxsplit=1)[-1]))
        for change in changes:
            change(watches)
        while (attempt := fixture.queue.pop()) is not None:
            order.append(attempt.job.pods[0].metadata.name)
            fixture.queue.delete(attempt.job.key)

    scheduler_test(life)
    return order


SHIPPED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: KubeNexus
    args: %s
  schedulerName: %s
"""


@pytest.mark.parametrize(
    ("args", "profile", "order"),
    [
        pytest.param("{}", "kubenexus-scheduler", "1302", id="gold first"),
        pytest.param("{}", "default-scheduler", "0123", id="kube-scheduler's order under its name"),
        pytest.param("{tierBoosts: {gold: 1}}", "default-scheduler", "1302", id="unless told otherwise"),
        pytest.param("{namespacePriorities: {default: 30}}", "kubenexus-scheduler", "0213", id="a namespace's number"),
    ],
)
def test_jobs_of_one_priority_go_by_tenant(args: str, profile: str, order: str) -> None:
    assert one_by_one(SHIPPED % (args, profile)) == [f"p{number}" for number in order]


def test_a_new_tier_changes_the_order_of_what_waits() -> None:
    shipped = SHIPPED % ("{}", "kubenexus-scheduler")
    lower = Namespace(metadata=ObjectMeta(name="gold", labels={TIER: "silver"}))
    assert one_by_one(shipped, lambda watches: watches.see(a_namespace("gold"), lower)) == ["p0", "p2", "p1", "p3"]
    assert one_by_one(shipped, lambda watches: watches.gone(lower)) == ["p0", "p1", "p2", "p3"]
