"""A gang of many members is written into the ledger in portions, one in each turn of the event loop. No other decision
and no bind sees a part of it, and what happens in between has the same end as if it had happened after all of them."""

from collections.abc import Callable

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app.scheduler import SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.queue.queued_job import QueueState
from kubenexus.sim.virtual.loop import run
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import on_node
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture

MEMBERS, PORTION = 10, 3
Happens = Callable[[SchedulerFixture], None]


def a_fixture(portion: int = PORTION) -> SchedulerFixture:
    fixture = SchedulerFixture(settings=SchedulerOptions(host="here", loop=LoopOptions(portion=portion)))
    fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(MEMBERS)), a_node("small", cpu="500m"))
    return fixture


def member(number: int, least: int = MEMBERS, **fields: object) -> Pod:
    return a_member(f"g{number}", "g", least, cpu=1, **fields)


def come(fixture: SchedulerFixture, least: int = MEMBERS) -> None:
    fixture.pods(*(member(i, least) for i in range(MEMBERS)))


def gang_in_ledger(fixture: SchedulerFixture) -> int:
    return sum(name.startswith("g") for name in fixture.where())


def test_each_turn_enters_one_portion_and_decides_nothing_else() -> None:
    async def life() -> None:
        fixture = a_fixture()
        come(fixture)
        loop, seen = fixture.scheduler.loop, []
        assert loop.run_burst() == 1
        fixture.pods(a_pod("other", cpu="500m", priority=1000))
        while not fixture.scheduler.dispatcher.open_count:
            assert not loop.idle, "it does not wait for an event"
            assert fixture.where().get("other") is None
            seen.append(gang_in_ledger(fixture))
            loop.run_burst()
        assert seen == [0, 3, 6, 9]
        assert fixture.server.binds == []
        await fixture.work()
        assert len(fixture.bound()) == MEMBERS + 1

    run(life())


def deleted(number: int) -> Happens:
    return lambda fixture: fixture.delete(f"default/g{number}")


def made_again(number: int) -> Happens:
    def happens(fixture: SchedulerFixture) -> None:
        fixture.delete(f"default/g{number}")
        fixture.pods(member(number, uid="another"))

    return happens


def being_deleted(number: int) -> Happens:
    def happens(fixture: SchedulerFixture) -> None:
        pod = member(number)
        meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-11-16T00:00:00Z")
        fixture.pods(msgspec.structs.replace(pod, metadata=meta))

    return happens


def relabelled(number: int) -> Happens:
    return lambda fixture: fixture.pods(member(number, labels={"changed": "yes"}))


def bound_elsewhere(number: int) -> Happens:
    return lambda fixture: fixture.pods(on_node(member(number), "small"))


def node_gone(number: int) -> Happens:
    """The node of the last member in order of placement, or of the first."""

    def happens(fixture: SchedulerFixture) -> None:
        decision = fixture.scheduler.loop._committer._under_way[0].decision  # type: ignore[index]
        fixture.handlers.on_node_delete(decision.placements[number].node)

    return happens


def nothing(fixture: SchedulerFixture) -> None:
    """All is well."""


@pytest.mark.parametrize("turns", range(5))
@pytest.mark.parametrize(
    ("happens", "least", "sent"),
    [
        pytest.param(nothing, 10, 10, id="nothing happens"),
        pytest.param(deleted(9), 10, 0, id="the last member is deleted"),
        pytest.param(deleted(0), 10, 0, id="the first member is deleted"),
        pytest.param(deleted(9), 8, 9, id="a member is deleted that the gang does not need"),
        pytest.param(made_again(9), 10, 0, id="a member is created again under its name"),
        pytest.param(being_deleted(9), 10, 0, id="a member is being deleted"),
        pytest.param(relabelled(9), 10, 10, id="a member is changed"),
        pytest.param(bound_elsewhere(9), 10, 9, id="another scheduler binds a member: the others join it"),
        pytest.param(node_gone(-1), 10, 0, id="the node of the last placement is deleted"),
        pytest.param(node_gone(0), 10, 0, id="the node of the first placement is deleted"),
        pytest.param(node_gone(-1), 9, 9, id="a node is deleted that the gang does not need"),
    ],
)
def test_what_happens_between_two_portions(happens: Happens, least: int, sent: int, turns: int) -> None:
    """All that the gang needs is bound, or nothing; what is counted in the end is what a list would show."""

    async def life() -> None:
        fixture = a_fixture()
        come(fixture, least)
        fixture.scheduler.loop.run_burst()
        for _ in range(min(turns, 3)):
            fixture.scheduler.loop.run_burst()
        happens(fixture)
        for _ in range(6):
            fixture.scheduler.loop.run_burst()
        await fixture.work()
        assert len(fixture.server.binds) == sent
        fixture.echo()
        assert fixture.where() == fixture.bound()
        if not sent:
            assert fixture.queue.state("default/gang/g") in (QueueState.GATED, QueueState.BACKOFF)

    run(life())


def test_a_portion_that_fails_leaves_the_gang_unbound_and_it_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life() -> None:
        fixture = a_fixture()
        come(fixture)
        loop = fixture.scheduler.loop
        loop.run_burst()
        loop.run_burst()
        portioned = loop._committer._under_way[1]  # type: ignore[index]

        def broken(placed: object) -> None:
            raise RuntimeError("no")

        with monkeypatch.context() as patched:
            patched.setattr(portioned, "enter", broken)
            loop.run_burst()
        await fixture.work()
        assert fixture.where() == {}
        assert fixture.server.binds == []
        fixture.clock.advance(30)
        await fixture.work()
        assert len(fixture.bound()) == MEMBERS

    run(life())


def test_a_copy_of_the_process_sees_the_whole_gang() -> None:
    async def life() -> None:
        fixture = a_fixture()
        come(fixture)
        fixture.scheduler.loop.run_burst()
        fixture.scheduler.loop.run_burst()
        assert gang_in_ledger(fixture) == PORTION
        fixture.scheduler.silence()  # called first in each copy
        assert gang_in_ledger(fixture) == MEMBERS
        assert fixture.scheduler.dispatcher.open_count == 0, "a copy sends nothing"

    run(life())


def test_the_ledger_is_the_same_as_after_one_step() -> None:
    async def life(portion: int) -> str:
        fixture = a_fixture(portion)
        come(fixture)
        await fixture.work()
        return digest(fixture.ledger)

    assert run(life(PORTION)) == run(life(MEMBERS))
