"""Landing, whatever fails on the way: a job that has landed is not in flight, and no room stays taken for nothing."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubenexus.app.binding import bind_results
from kubenexus.queue.queued_job import QueueState
from kubenexus.state.pods import PodStage
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.bind.server import FORBIDDEN, SILENT


def once(owner: Any, name: str) -> None:
    """The next call fails as nothing should."""
    real = getattr(owner, name)

    def broken(*arguments: Any, **named: Any) -> Any:
        setattr(owner, name, real)
        raise RuntimeError("a mistake of ours")

    setattr(owner, name, broken)


BREAKS: list[tuple[str, Callable[[SchedulerFixture], Any], str]] = [
    ("the event that says so", lambda fixture: fixture.scheduler.recorder, "record"),
    ("what is counted", lambda fixture: fixture.scheduler.metrics, "attempt"),
    ("what the pod says", lambda fixture: fixture.scheduler.pod_reporter, "report_bind_failure"),
    ("the ledger that forgets", lambda fixture: fixture.ledger, "forget"),
    ("what a look has found", lambda fixture: fixture.handlers, "on_pod_looked_up"),
    ("the queue that takes it back", lambda fixture: fixture.queue, "bind_failed"),
    ("the queue that lets it go", lambda fixture: fixture.queue, "done"),
    ("the gang that hears of it", lambda fixture: fixture.scheduler.assembler, "attempt_finished"),
    ("the gang that is counted", lambda fixture: fixture.scheduler.metrics.gang_completion, "labels"),
    ("the loop that is woken", lambda fixture: fixture.scheduler.wakeup, "set"),
]


@pytest.mark.parametrize("gang", [False, True], ids=["a pod", "a gang"])
@pytest.mark.parametrize("fault", [None, FORBIDDEN, SILENT], ids=["bound", "refused", "no answer"])
@pytest.mark.parametrize(("owner", "name"), [pytest.param(*rest, id=what) for what, *rest in BREAKS])
def test_a_job_whose_landing_fails_is_settled_anyhow(
    gang: bool, fault: Exception | None, owner: Callable[[SchedulerFixture], Any], name: str
) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=2), a_node("n2", cpu=2))
        pods = [a_member(each, "g", 2, cpu=1) for each in "ab"] if gang else [a_pod("a", cpu=1)]
        fixture.pods(*pods)
        once(owner(fixture), name)
        fixture.server.script.append(fault)
        await fixture.work()
        assert fixture.scheduler.dispatcher.open_count == 0
        key = "default/gang/g" if gang else "default/a"
        assert fixture.queue.state(key) is not QueueState.IN_FLIGHT
        for _ in range(4):
            fixture.clock.advance(31)
            await fixture.scheduler.bind_verifier.step()
            await fixture.work()
        assert sorted(fixture.bound()) == [pod.metadata.name for pod in pods], "all of them, in the end"
        fixture.echo()
        assert fixture.where() == fixture.bound(), "no room is taken for nothing"
        assert {fixture.stage(pod.metadata.name) for pod in pods} == {PodStage.BOUND}
        assert fixture.queue.state(key) is QueueState.GONE

    scheduler_test(life)


def test_a_pod_whose_room_could_not_be_freed_is_looked_up_and_waits_again() -> None:
    """Others get the room then, and not before: its bind might have happened."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(a_pod("a", cpu=1))
        once(fixture.ledger, "forget")
        fixture.server.script.append(FORBIDDEN)
        await fixture.work()
        assert fixture.stage("a") is PodStage.ASSUMED
        fixture.clock.advance(31)
        await fixture.scheduler.bind_verifier.step()
        assert "a" not in fixture.where()
        fixture.pods(a_pod("other", cpu=1, priority=9))
        await fixture.work()
        assert fixture.bound() == {"other": "n"}

    scheduler_test(life)


def test_what_fails_after_a_decision_was_committed_does_not_keep_it_from_being_carried_out() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        fixture.pods(a_pod("a", cpu=1))
        once(fixture.scheduler.pod_reporter, "forget")
        await fixture.work()
        assert fixture.bound() == {"a": "n"}
        fixture.echo()
        assert (fixture.stage("a"), fixture.queue.state("default/a")) == (PodStage.BOUND, QueueState.GONE)

    scheduler_test(life)


def test_the_results_of_a_large_gang_are_reported_in_portions_after_all_of_them_were_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        monkeypatch.setattr(bind_results, "PORTION", 2)
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(*(a_member(f"g{i}", "g", 5, cpu=1) for i in range(5)))
        fixture.scheduler.loop.run_burst()
        told = []
        while fixture.scheduler.dispatcher.open_count:
            await asyncio.sleep(0)
            assert not fixture.told() or fixture.queue.state("default/gang/g") is QueueState.GONE
            told.append(len(fixture.told()))
        assert [count for count in sorted(set(told)) if count] == [2, 4, 5]

    scheduler_test(life)
