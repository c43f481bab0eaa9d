"""What autoscalers read: `Unschedulable` on all members of a gang that lacks nodes, and on no pod that lacks none."""

from typing import Any

from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

PROFILE = "packing"  # one that reserves


def reasons(fixture: SchedulerFixture) -> dict[str, str]:
    """The last reason that was written on each pod."""
    calls: list[Any] = [call for call in fixture.server.calls if call.path.endswith("/status")]
    found = {}
    for call, body in zip(calls, fixture.server.said("/status"), strict=True):
        found[call.path.split("/")[-2]] = body["status"]["conditions"][0]["reason"]
    return found


def test_all_members_of_a_gang_that_lacks_nodes_and_nobody_who_waits_for_it() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
        fixture.pods(a_pod("busy", cpu=4, node="n0"))
        fixture.pods(*(a_member(f"llama-{i}", "llama", 2, cpu=4, scheduler_name=PROFILE) for i in range(2)))
        fixture.pods(a_member("half-0", "half", 2, cpu=1, scheduler_name=PROFILE))
        await fixture.work()
        fixture.pods(a_pod("late", cpu=1, scheduler_name=PROFILE))
        await fixture.work()
        fixture.clock.advance(5.0)
        await fixture.work()
        await fixture.notes()
        assert set(fixture.bound()) == {"busy"}
        assert reasons(fixture) == {
            "llama-0": "Unschedulable",
            "llama-1": "Unschedulable",
            "half-0": "SchedulingGated",  # its gang is not there yet
            "late": "SchedulingGated",  # it would fit: what is free is kept for the gang before it
        }

    scheduler_test(life)


def test_nodes_that_come_together_are_used_by_the_gang_that_waits_for_them() -> None:
    """Pods that came later would fit on them, too. They wait for what the gang leaves."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n0", cpu=4))
        fixture.pods(a_pod("busy", cpu=4, node="n0"))
        fixture.pods(*(a_member(f"llama-{i}", "llama", 3, cpu=3, scheduler_name=PROFILE) for i in range(3)))
        await fixture.work()
        fixture.clock.advance(1.0)
        fixture.pods(*(a_pod(f"late-{i}", cpu=2, scheduler_name=PROFILE) for i in range(3)))
        await fixture.work()
        assert set(fixture.bound()) == {"busy"}
        fixture.nodes(*(a_node(f"fresh-{i}", cpu=4) for i in range(3)))
        fixture.clock.advance(60.0)  # past the backoff of all
        await fixture.work()
        assert {pod for pod in fixture.bound() if pod != "busy"} == {"llama-0", "llama-1", "llama-2"}

    scheduler_test(life)
