"""Pods are told why they wait: all of them, and once."""

import msgspec

from kubenexus.api.core import Pod, PodCondition
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

WHY = (
    "0/1 nodes are available: 1 Insufficient cpu. "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


async def refused(fixture: SchedulerFixture) -> Pod:
    """Two CPUs are wanted where there is one."""
    fixture.nodes(a_node("n", cpu=1))
    fixture.pods(pod := a_pod("a", cpu=2))
    await fixture.work()
    return pod


def test_a_refusal_of_one_is_told_to_all_that_are_alike() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(*(a_pod(f"p{i}", cpu=2) for i in range(3)))
        assert await fixture.work() == 1
        assert sorted(fixture.told()) == [f"FailedScheduling p{i}: {WHY}" for i in range(3)]
        await fixture.notes()
        said = [body["status"]["conditions"][0] for body in fixture.server.said("/status")]
        assert [(each["reason"], each["message"]) for each in said] == [("Unschedulable", WHY)] * 3

    scheduler_test(life)


def test_who_joins_a_refusal_that_stands_hears_of_it_without_being_tried() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(a_pod("first", cpu=2))
        await fixture.work()
        fixture.pods(a_pod("second", cpu=2))
        assert await fixture.work() == 0
        assert fixture.told()[-1] == f"FailedScheduling second: {WHY}"

    scheduler_test(life)


def test_nothing_is_written_when_nothing_changed() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await refused(fixture)
        await fixture.notes()
        assert len(fixture.server.said("/status")) == 1
        for _ in range(3):
            fixture.nodes(a_node("n", cpu=1, labels={"x": str(_)}))
            fixture.clock.advance(400)
            await fixture.work()
        await fixture.notes()
        assert len(fixture.server.said("/status")) == 1

    scheduler_test(life)


def test_a_pod_that_says_so_already_is_not_told_by_the_next_process() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        pod = a_pod("a", cpu=2)
        said = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=WHY)
        status = msgspec.structs.replace(pod.status, conditions=[said])
        fixture.pods(msgspec.structs.replace(pod, status=status))
        await fixture.work()
        await fixture.notes()
        assert fixture.server.said("/status") == []

    scheduler_test(life)


def test_a_note_does_not_reach_a_pod_that_is_on_its_way() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await refused(fixture)
        fixture.nodes(a_node("m", cpu=4))
        fixture.clock.advance(60)
        await fixture.work()
        await fixture.notes()
        assert fixture.where() == {"a": "m"}
        assert fixture.server.said("/status") == []

    scheduler_test(life)


def test_a_note_that_was_given_up_is_written_with_the_next_refusal() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        pod = await refused(fixture)
        await fixture.notes()
        fixture.scheduler.pod_reporter.on_patch_failed(pod)
        fixture.nodes(a_node("n", cpu="1500m"))
        fixture.clock.advance(400)
        await fixture.work()
        await fixture.notes()
        assert len(fixture.server.said("/status")) == 2

    scheduler_test(life)


def test_a_gated_pod_is_told_so_unless_it_says_so() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        gated = a_pod("gated", gates=["wait"])
        fixture.pods(gated)
        assert fixture.queue.state("default/gated") is QueueState.GATED
        await fixture.notes()
        (body,) = fixture.server.said("/status")
        assert body["status"]["conditions"][0]["reason"] == "SchedulingGated"
        said = PodCondition(type="PodScheduled", status="False", reason="SchedulingGated")
        status = msgspec.structs.replace(gated.status, conditions=[said])
        fixture.pods(msgspec.structs.replace(gated, status=status))
        await fixture.notes()
        assert len(fixture.server.said("/status")) == 1

    scheduler_test(life)
