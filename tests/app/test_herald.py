"""Pods are told why they wait: all of them, and once."""

import msgspec

from kubenexus.api.core import Pod, PodCondition
from kubenexus.queue.entry import Place
from kubenexus.testing.builders import a_node, a_pod
from tests.app.town import Town, in_town

WHY = "0/1 nodes are available: 1 Insufficient cpu."


async def refused(town: Town) -> Pod:
    """Two CPUs are wanted where there is one."""
    town.nodes(a_node("n", cpu=1))
    town.pods(pod := a_pod("a", cpu=2))
    await town.work()
    return pod


def test_a_refusal_of_one_is_told_to_all_that_are_alike() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=1))
        town.pods(*(a_pod(f"p{i}", cpu=2) for i in range(3)))
        assert await town.work() == 1
        assert sorted(town.told()) == [f"FailedScheduling p{i}: {WHY}" for i in range(3)]
        await town.notes()
        said = [body["status"]["conditions"][0] for body in town.server.said("/status")]
        assert [(each["reason"], each["message"]) for each in said] == [("Unschedulable", WHY)] * 3

    in_town(life)


def test_who_joins_a_refusal_that_stands_hears_of_it_without_being_tried() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=1))
        town.pods(a_pod("first", cpu=2))
        await town.work()
        town.pods(a_pod("second", cpu=2))
        assert await town.work() == 0
        assert town.told()[-1] == f"FailedScheduling second: {WHY}"

    in_town(life)


def test_nothing_is_written_when_nothing_changed() -> None:
    async def life(town: Town) -> None:
        await refused(town)
        await town.notes()
        assert len(town.server.said("/status")) == 1
        for _ in range(3):
            town.nodes(a_node("n", cpu=1, labels={"x": str(_)}))
            town.clock.advance(400)
            await town.work()
        await town.notes()
        assert len(town.server.said("/status")) == 1

    in_town(life)


def test_a_pod_that_says_so_already_is_not_told_by_the_next_process() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=1))
        pod = a_pod("a", cpu=2)
        said = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=WHY)
        status = msgspec.structs.replace(pod.status, conditions=[said])
        town.pods(msgspec.structs.replace(pod, status=status))
        await town.work()
        await town.notes()
        assert town.server.said("/status") == []

    in_town(life)


def test_a_note_does_not_reach_a_pod_that_is_on_its_way() -> None:
    async def life(town: Town) -> None:
        await refused(town)
        town.nodes(a_node("m", cpu=4))
        town.clock.advance(60)
        await town.work()
        await town.notes()
        assert town.where() == {"a": "m"}
        assert town.server.said("/status") == []

    in_town(life)


def test_a_note_that_was_given_up_is_written_with_the_next_refusal() -> None:
    async def life(town: Town) -> None:
        pod = await refused(town)
        await town.notes()
        town.scheduler.herald.missed(pod)
        town.nodes(a_node("n", cpu="1500m"))
        town.clock.advance(400)
        await town.work()
        await town.notes()
        assert len(town.server.said("/status")) == 2

    in_town(life)


def test_a_gated_pod_is_told_so_unless_it_says_so() -> None:
    async def life(town: Town) -> None:
        gated = a_pod("gated", gates=["wait"])
        town.pods(gated)
        assert town.room.place("default/gated") is Place.GATED
        await town.notes()
        (body,) = town.server.said("/status")
        assert body["status"]["conditions"][0]["reason"] == "SchedulingGated"
        said = PodCondition(type="PodScheduled", status="False", reason="SchedulingGated")
        status = msgspec.structs.replace(gated.status, conditions=[said])
        town.pods(msgspec.structs.replace(gated, status=status))
        await town.notes()
        assert len(town.server.said("/status")) == 1

    in_town(life)
