"""Preemption in the loop: what is decided, written, waited for, and given up."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.async_helpers import yield_to_loop
from tests.bind.server import BUSY, FORBIDDEN

LOW = a_pod("low", cpu=2, node="n1")
URGENT = a_pod("urgent", cpu=2, priority=9)


def deleted(fixture: SchedulerFixture) -> list[str]:
    return [call.path.rpartition("/")[2] for call in fixture.server.calls if call.method == "DELETE"]


def nominations(fixture: SchedulerFixture) -> list[Any]:
    bodies = [msgspec.json.decode(call.body) for call in fixture.server.calls if call.path.endswith("/status")]
    return [body["status"]["nominatedNodeName"] for body in bodies if "nominatedNodeName" in body["status"]]


async def begun(fixture: SchedulerFixture, *pods: Pod) -> None:
    """A full node, and pods that preempt."""
    fixture.nodes(a_node("n1", cpu=2))
    fixture.pods(LOW, *pods)
    await fixture.work()
    await yield_to_loop()


def test_a_victim_is_told_why_and_deleted_and_the_pod_waits_for_its_end() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await begun(fixture, URGENT)
        assert (deleted(fixture), nominations(fixture)) == (["low"], ["n1"])
        (condition,) = [each for body in fixture.server.said("/low/status") for each in body["status"]["conditions"]]
        assert {key: condition[key] for key in ("type", "status", "reason", "message")} == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: preempting to accommodate a higher priority pod",
        }
        for _ in range(3):  # it is tried again, and evicts nothing more
            fixture.clock.advance(20)
            await fixture.work()
            await yield_to_loop()
        assert deleted(fixture) == ["low"]
        fixture.delete("default/low")
        await fixture.work()
        assert fixture.where()["urgent"] == "n1"

    scheduler_test(life)


def test_the_room_is_kept_for_the_pod_before_the_api_server_knows() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await begun(fixture, URGENT)
        fixture.delete("default/low")
        fixture.pods(a_pod("thief", cpu=2, priority=9))
        await fixture.work()
        assert fixture.where().get("urgent") == "n1"
        assert "thief" not in fixture.where()

    scheduler_test(life)


def test_f22_of_two_that_count_on_the_same_victim_one_preempts() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await begun(fixture, URGENT, a_pod("second", cpu=2, priority=9))
        assert deleted(fixture) == ["low"]
        assert len(nominations(fixture)) == 1

    scheduler_test(life)


@pytest.mark.parametrize("fault", [FORBIDDEN, BUSY])
def test_an_eviction_that_fails_is_tried_again_after_a_backoff(fault: Exception) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.server.script.append(fault)
        await begun(fixture, URGENT)
        assert not len(fixture.ledger.preemptions)
        assert fixture.queue.state("default/urgent") is QueueState.BACKOFF
        assert deleted(fixture) == ["low"]
        fixture.clock.advance(20)
        await fixture.work()
        await yield_to_loop()
        assert deleted(fixture) == ["low", "low"]
        assert len(fixture.ledger.preemptions) == 1

    scheduler_test(life)


def test_who_does_not_lead_evicts_nothing() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.guard.leads = False
        await begun(fixture, URGENT)
        assert deleted(fixture) == []
        assert not len(fixture.ledger.preemptions)

    scheduler_test(life)


def test_a_pod_that_is_gone_waits_for_nothing() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await begun(fixture, URGENT)
        fixture.delete("default/urgent")
        assert not len(fixture.ledger.preemptions)
        assert fixture.ledger.nominees("n1") == []

    scheduler_test(life)


def test_a_nomination_for_which_no_preemption_helps_is_cleared() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=2))
        fixture.pods(a_pod("high", cpu=2, priority=99, node="n1"), a_pod("urgent", cpu=2, priority=9, nominated="n1"))
        await fixture.work()
        await yield_to_loop()
        assert nominations(fixture) == [None]

    scheduler_test(life)


def test_a_profile_of_ours_evicts_within_budgets_instead_of_deleting() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await begun(fixture, a_pod("urgent", cpu=2, priority=9, scheduler_name="packing"))
        evicted = [call.path.split("/")[-2] for call in fixture.server.calls if call.path.endswith("/eviction")]
        assert (deleted(fixture), evicted, nominations(fixture)) == ([], ["low"], ["n1"])
        assert any("preemption: 1 pod has to go first." in told for told in fixture.told())

    scheduler_test(life)
