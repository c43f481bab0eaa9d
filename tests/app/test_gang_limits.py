"""A gang beyond the limits in a whole scheduler: it says so, costs the others nothing, and waits for a change of its
own."""

from kubenexus.api.core import Pod
from kubenexus.queue.entry import Place
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.small import a_member
from tests.app.town import Town, in_town

GANG, KINDS = "default/gang/wide", 400
SAID = "different kinds of members; at 4 nodes at most"


def wide(kinds: int = KINDS, least: int = KINDS) -> list[Pod]:
    """Each member asks for another amount of cpu."""
    return [a_member(f"wide-{i}", "wide", least, cpu=f"{10_000 + i}u") for i in range(kinds)]


def builds(town: Town) -> int:
    return sum(planner.bench.work.builds for planner in town.scheduler.planners.values())


def why(town: Town) -> str:
    decision = town.room.verdict(GANG)
    return "" if decision is None else decision.sentence()


def test_a_gang_of_too_many_kinds_is_refused_and_the_others_are_bound() -> None:
    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}", cpu=8) for i in range(4)))
        town.pods(*wide(), a_pod("innocent", cpu=1))
        await town.work()
        assert "innocent" in town.bound()
        assert SAID in why(town)
        assert town.room.place(GANG) is Place.UNSCHEDULABLE
        assert builds(town) == 1, "a table for the innocent pod, none for the gang"
        assert [each for each in town.told() if each.startswith("FailedScheduling wide-0:") and SAID in each]

    in_town(life)


def test_nothing_that_happens_to_others_has_it_tried_again() -> None:
    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}", cpu=8) for i in range(4)))
        town.pods(*wide(), a_pod("other", cpu=1))
        await town.work()
        town.clock.advance(60)
        town.nodes(a_node("n4", cpu=8), a_node("n0", cpu=16))
        town.delete("default/other")
        assert await town.work() == 0
        town.clock.advance(300)
        assert await town.work() == 1, "but for the flush"

    in_town(life)


def test_when_enough_of_its_kinds_are_gone_it_is_placed() -> None:
    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}", cpu=8) for i in range(4)))
        town.pods(*wide(least=50))
        await town.work()
        assert town.bound() == {}
        town.clock.advance(60)
        for i in range(100, KINDS):
            town.delete(f"default/wide-{i}")
        await town.work()
        assert len(town.bound()) == 100

    in_town(life)


def test_a_gang_larger_than_one_decision_starts_with_what_it_needs_and_the_rest_follows() -> None:
    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}", cpu=64, pods=3000) for i in range(4)))
        town.pods(*(a_member(f"many-{i}", "many", 5000, cpu="1m") for i in range(5200)))
        assert await town.work() == 2
        assert len(town.bound()) == 5200

    in_town(life)
