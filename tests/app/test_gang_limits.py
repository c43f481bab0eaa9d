"""A gang beyond the limits in a whole scheduler: it says so, costs the others nothing, and waits for a change of its
own."""

from kubenexus.api.core import Pod
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

GANG, KINDS = "default/gang/wide", 400
SAID = "different kinds of members; at 4 nodes at most"


def wide(kinds: int = KINDS, least: int = KINDS) -> list[Pod]:
    """Each member asks for another amount of cpu."""
    return [a_member(f"wide-{i}", "wide", least, cpu=f"{10_000 + i}u") for i in range(kinds)]


def builds(fixture: SchedulerFixture) -> int:
    return sum(planner.class_cache.work.builds for planner in fixture.scheduler.planners.values())


def why(fixture: SchedulerFixture) -> str:
    decision = fixture.queue.last_decision(GANG)
    return "" if decision is None else decision.sentence()


def test_a_gang_of_too_many_kinds_is_refused_and_the_others_are_bound() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=8) for i in range(4)))
        fixture.pods(*wide(), a_pod("innocent", cpu=1))
        await fixture.work()
        assert "innocent" in fixture.bound()
        assert SAID in why(fixture)
        assert fixture.queue.state(GANG) is QueueState.UNSCHEDULABLE
        assert builds(fixture) == 1, "a table for the innocent pod, none for the gang"
        assert [each for each in fixture.told() if each.startswith("FailedScheduling wide-0:") and SAID in each]

    scheduler_test(life)


def test_nothing_that_happens_to_others_has_it_tried_again() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=8) for i in range(4)))
        fixture.pods(*wide(), a_pod("other", cpu=1))
        await fixture.work()
        fixture.clock.advance(60)
        fixture.nodes(a_node("n4", cpu=8), a_node("n0", cpu=16))
        fixture.delete("default/other")
        assert await fixture.work() == 0
        fixture.clock.advance(300)
        assert await fixture.work() == 1, "but for the flush"

    scheduler_test(life)


def test_when_enough_of_its_kinds_are_gone_it_is_placed() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=8) for i in range(4)))
        fixture.pods(*wide(least=50))
        await fixture.work()
        assert fixture.bound() == {}
        fixture.clock.advance(60)
        for i in range(100, KINDS):
            fixture.delete(f"default/wide-{i}")
        await fixture.work()
        assert len(fixture.bound()) == 100

    scheduler_test(life)


def test_a_gang_larger_than_one_decision_starts_with_what_it_needs_and_the_rest_follows() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=64, pods=3000) for i in range(4)))
        fixture.pods(*(a_member(f"many-{i}", "many", 5000, cpu="1m") for i in range(5200)))
        assert await fixture.work() == 2
        assert len(fixture.bound()) == 5200

    scheduler_test(life)
