"""The end of a node backoff wakes the jobs that were refused because of it, and nobody else."""

from kubenexus.api.core import Pod
from kubenexus.plan.node_backoff import LEAST, PER_NAMESPACE
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

CLASSES = 50


def back_off(fixture: SchedulerFixture, pod: Pod, node: str) -> None:
    planner = fixture.scheduler.planners["default-scheduler"]
    signature = planner.class_cache.signature(pod, fixture.ledger.nodes)
    fixture.scheduler.node_backoff.add(pod.metadata.namespace, signature, node)


async def decisions_of(fixture: SchedulerFixture) -> int:
    before = fixture.scheduler.loop.decisions
    await fixture.work()
    return fixture.scheduler.loop.decisions - before


def test_jobs_of_others_that_wait_are_not_tried_again() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        fixture.pods(*(a_pod(f"big{i}", namespace=f"v{i % 5}", cpu=100 + i) for i in range(CLASSES)))
        fixture.pods(a_pod("other", namespace="evil", cpu=99))
        assert await decisions_of(fixture) == CLASSES + 1
        fixture.clock.advance(20)
        for i in range(100):
            back_off(fixture, a_pod("bad", namespace="evil", cpu=1 + i), "n")
            fixture.clock.advance(LEAST / 50)
            assert await decisions_of(fixture) == 0
        assert len(fixture.scheduler.node_backoff._nodes) <= 50, "half of them have ended"

    scheduler_test(life)


def test_the_jobs_that_were_kept_away_are_placed() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        back_off(fixture, a_pod("a", namespace="evil"), "n")
        fixture.pods(a_pod("a", namespace="evil"), a_pod("b", namespace="evil"))
        await fixture.work()
        fixture.delete("evil/a")  # the one that was tried: the other shared its refusal
        assert fixture.where() == {}
        fixture.clock.advance(LEAST + 1)
        await fixture.work()
        assert fixture.where() == {"b": "n"}

    scheduler_test(life)


def test_a_gang_with_one_member_of_that_class_is_placed() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        gang = [a_member(f"p{i}", least=2, cpu=1 + i) for i in range(2)]
        back_off(fixture, gang[1], "n")
        fixture.pods(*gang)
        await fixture.work()
        assert fixture.where() == {}
        fixture.clock.advance(LEAST + 1)
        await fixture.work()
        assert fixture.where() == {"p0": "n", "p1": "n"}

    scheduler_test(life)


def test_a_backoff_that_is_dropped_for_younger_ones_ends_as_well() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        back_off(fixture, a_pod("a", namespace="evil"), "n")
        fixture.pods(a_pod("a", namespace="evil"))
        await fixture.work()
        assert fixture.where() == {}
        fixture.clock.advance(LEAST / 2)
        for i in range(PER_NAMESPACE):
            fixture.scheduler.node_backoff.add("evil", b"class %d" % i, "n")
        await fixture.work()
        assert fixture.where() == {"a": "n"}

    scheduler_test(life)
