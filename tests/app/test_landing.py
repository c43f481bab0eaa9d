"""Landing, whatever fails on the way: a job that has landed is not in flight, and no room stays taken for nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from kubenexus.queue.entry import Place
from kubenexus.state.pods import Stage
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.small import a_member
from tests.app.town import Town, in_town
from tests.bind.server import FORBIDDEN, SILENT


def once(owner: Any, name: str) -> None:
    """The next call fails as nothing should."""
    real = getattr(owner, name)

    def broken(*arguments: Any, **named: Any) -> Any:
        setattr(owner, name, real)
        raise RuntimeError("a mistake of ours")

    setattr(owner, name, broken)


BREAKS: list[tuple[str, Callable[[Town], Any], str]] = [
    ("the event that says so", lambda town: town.scheduler.recorder, "record"),
    ("what is counted", lambda town: town.scheduler.metrics, "attempt"),
    ("what the pod says", lambda town: town.scheduler.herald, "failed"),
    ("the ledger that forgets", lambda town: town.ledger, "forget"),
    ("what a look has found", lambda town: town.scheduler.landing, "learn"),
    ("the queue that takes it back", lambda town: town.room, "failed"),
    ("the queue that lets it go", lambda town: town.room, "done"),
    ("the gang that hears of it", lambda town: town.scheduler.landing, "landed"),
    ("the group that is scheduled", lambda town: town.scheduler.herald, "scheduled"),
    ("the loop that is woken", lambda town: town.scheduler.landing, "woken"),
]


@pytest.mark.parametrize("gang", [False, True], ids=["a pod", "a gang"])
@pytest.mark.parametrize("fault", [None, FORBIDDEN, SILENT], ids=["bound", "refused", "no answer"])
@pytest.mark.parametrize(("owner", "name"), [pytest.param(*rest, id=what) for what, *rest in BREAKS])
def test_a_job_whose_landing_fails_is_settled_anyhow(
    gang: bool, fault: Exception | None, owner: Callable[[Town], Any], name: str
) -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n1", cpu=2), a_node("n2", cpu=2))
        pods = [a_member(each, "g", 2, cpu=1) for each in "ab"] if gang else [a_pod("a", cpu=1)]
        town.pods(*pods)
        once(owner(town), name)
        town.server.script.append(fault)
        await town.work()
        assert town.scheduler.dispatcher.open == 0
        key = "default/gang/g" if gang else "default/a"
        assert town.room.place(key) is not Place.IN_FLIGHT
        for _ in range(4):
            town.clock.advance(31)
            await town.scheduler.inquest.step()
            await town.work()
        assert sorted(town.bound()) == [pod.metadata.name for pod in pods], "all of them, in the end"
        town.echo()
        assert town.where() == town.bound(), "no room is taken for nothing"
        assert {town.stage(pod.metadata.name) for pod in pods} == {Stage.BOUND}
        assert town.room.place(key) is Place.GONE

    in_town(life)


def test_a_pod_whose_room_could_not_be_freed_is_looked_up_and_waits_again() -> None:
    """Others get the room then, and not before: its bind might have happened."""

    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=1))
        town.pods(a_pod("a", cpu=1))
        once(town.ledger, "forget")
        town.server.script.append(FORBIDDEN)
        await town.work()
        assert town.stage("a") is Stage.ASSUMED
        town.clock.advance(31)
        await town.scheduler.inquest.step()
        assert "a" not in town.where()
        town.pods(a_pod("other", cpu=1, priority=9))
        await town.work()
        assert town.bound() == {"other": "n"}

    in_town(life)


def test_what_fails_after_a_decision_was_committed_does_not_keep_it_from_being_carried_out() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=2))
        town.pods(a_pod("a", cpu=1))
        once(town.scheduler.herald, "placed")
        await town.work()
        assert town.bound() == {"a": "n"}
        town.echo()
        assert (town.stage("a"), town.room.place("default/a")) == (Stage.BOUND, Place.GONE)

    in_town(life)
