"""Limits of queues by hardware tier in a whole scheduler: where pods go, what they are told, and what wakes them."""

from typing import Any

from kubenexus.api.core import Node, Pod
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_queues import a_queue, queues

TIER = "hardware.kubenexus.io/tier"


def a_tier_node(name: str, tier: str, gpus: int = 4) -> Node:
    return a_node(name, cpu="64", gpu=gpus, labels={TIER: tier})


def pods(names: str, gpus: int = 1, **more: Any) -> list[Pod]:
    return [a_pod(name, namespace="a", cpu="1", gpu=gpus, **more) for name in names.split()]


def limited(**tiers: int) -> Any:
    given = {tier: {"limit": {"nvidia.com/gpu": amount}} for tier, amount in tiers.items()}
    return a_queue("ml", namespaces=["a"], tiers=given)


def test_pods_go_past_a_tier_whose_limit_is_reached() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_tier_node("good", "premium"), a_tier_node("plain", "economy"))
        queues(fixture, limited(premium=2))
        fixture.pods(*pods("p0 p1 p2 p3 p4 p5"))
        await fixture.work()
        found = list(fixture.bound().values())
        assert found.count("good") == 2, "no more than the limit, in whatever order scores choose"
        assert found.count("plain") == 4

    scheduler_test(life)


def test_a_pod_that_only_a_closed_tier_would_take_waits_says_why_and_is_woken() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_tier_node("good", "premium"), a_tier_node("plain", "economy"))
        queues(fixture, limited(premium=2))
        fixture.pods(*pods("p0 p1 p2", selects={TIER: "premium"}))
        await fixture.work()
        assert set(fixture.bound()) == {"p0", "p1"}
        (told,) = [each for each in fixture.told() if not each.startswith("Scheduled")]
        assert "queue ml is at its limit on premium nodes: 2 nvidia.com/gpu of 2 nvidia.com/gpu in use" in told
        fixture.delete("a/p0")
        fixture.clock.advance(20.0)
        await fixture.work()
        assert set(fixture.bound()) == {"p1", "p2"}

    scheduler_test(life)


def test_a_pod_for_which_all_tiers_are_closed_is_rejected_until_one_opens() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_tier_node("good", "premium"), a_tier_node("plain", "economy"))
        queues(fixture, limited(premium=1, economy=1))
        fixture.pods(*pods("p0 p1 p2"))
        await fixture.work()
        assert sorted(fixture.bound().values()) == ["good", "plain"]
        (told,) = [each for each in fixture.told() if not each.startswith("Scheduled")]
        assert told.startswith("Rejected ")
        gone = next(name for name, node in fixture.bound().items() if node == "plain")
        fixture.delete(f"a/{gone}")
        await fixture.work()
        assert sorted(fixture.bound().values()) == ["good", "plain"]
        assert "p2" in fixture.bound()

    scheduler_test(life)


def test_a_higher_limit_of_a_tier_and_a_node_of_another_wake_what_waits() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_tier_node("good", "premium"))
        queues(fixture, limited(premium=1))
        fixture.pods(*pods("p0 p1 p2"))
        await fixture.work()
        assert len(fixture.bound()) == 1
        queues(fixture, limited(premium=2))
        await fixture.work()
        assert len(fixture.bound()) == 2
        fixture.nodes(a_tier_node("plain", "economy"))
        fixture.clock.advance(20.0)
        await fixture.work()
        assert sorted(fixture.bound().values()) == ["good", "good", "plain"]

    scheduler_test(life)
