"""A gang is never halved by choice: what becomes of its members between decision and bind, and at the end."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.client.calls import Call
from kubenexus.queue.queued_job import QueueState
from kubenexus.sim.virtual.loop import run
from kubenexus.testing.builders import a_node
from tests.api.gangs.builders import LEAST, NAME, a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_volumes import bound, selected
from tests.async_helpers import yield_to_loop
from tests.sim.virtual.virtual_time import elapse
from tests.volumes.builders import a_claim, a_class, a_mounting_pod, a_volume

GANGS = ("g", "h")


def mounting(gang: str, number: int, least: int = 4) -> Pod:
    name = f"{gang}{number}"
    return a_mounting_pod(name, f"c{name}", cpu=1, labels={NAME: gang, LEAST: str(least)})


async def two_gangs_wait_for_volumes(fixture: SchedulerFixture) -> dict[str, str]:
    """Of four each, one on each node; no bind was sent."""
    fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(9)))
    fixture.things(a_class("wait"), *(a_claim(f"c{gang}{i}") for gang in GANGS for i in range(4)))
    fixture.pods(*(mounting(gang, i) for gang in GANGS for i in range(4)))
    await fixture.work(waiting=2)
    await yield_to_loop()
    assert (len(fixture.where()), fixture.server.binds) == (8, [])
    return fixture.where()


async def make_volumes(fixture: SchedulerFixture, where: dict[str, str]) -> None:
    for name, node in where.items():
        claim = a_claim(f"c{name}")
        made = bound(claim, f"pv{name}", node)
        fixture.things(selected(claim, node), a_volume(f"pv{name}", claim=f"c{name}"), made)
    for _ in range(20):
        await yield_to_loop()
        fixture.scheduler.loop.run_burst()


def deleted(fixture: SchedulerFixture, where: dict[str, str]) -> None:
    fixture.delete("default/g3")


def being_deleted(fixture: SchedulerFixture, where: dict[str, str]) -> None:
    pod = mounting("g", 3)
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-11-16T00:00:00Z")
    fixture.pods(msgspec.structs.replace(pod, metadata=meta))


def bound_elsewhere(fixture: SchedulerFixture, where: dict[str, str]) -> None:
    pod = mounting("g", 3)
    free = next(f"n{i}" for i in range(9) if f"n{i}" not in where.values())
    fixture.pods(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=free)))


def node_deleted(fixture: SchedulerFixture, where: dict[str, str]) -> None:
    fixture.handlers.on_node_delete(where["g3"])


def nothing(fixture: SchedulerFixture, where: dict[str, str]) -> None:
    """All is well."""


@pytest.mark.parametrize(
    ("happens", "at_once", "count"),
    [
        pytest.param(nothing, 4, 4, id="nothing happens"),
        pytest.param(deleted, 0, 0, id="a member is deleted"),
        pytest.param(being_deleted, 0, 0, id="a member is being deleted"),
        pytest.param(bound_elsewhere, 3, 4, id="another scheduler binds a member: the others join it"),
        pytest.param(node_deleted, 0, 4, id="its node is deleted, and there is another"),
    ],
)
def test_a_gang_that_loses_a_member_before_its_first_bind(
    happens: Callable[[SchedulerFixture, dict[str, str]], None], at_once: int, count: int
) -> None:
    """All of it is bound in the end, or none; the other gang at once."""

    async def life(fixture: SchedulerFixture) -> None:
        where = await two_gangs_wait_for_volumes(fixture)
        happens(fixture, where)
        await make_volumes(fixture, where)
        others = {name for name in fixture.bound() if name.startswith("h")}
        assert len(others) == 4
        sent = [bind for bind in fixture.server.binds if bind.startswith("g")]
        assert len(sent) == at_once, "what cannot be completed is not begun"
        if happens is node_deleted:  # its volume is bound to a node that is gone: it is made again elsewhere
            fixture.things(a_claim("cg3"))
        fixture.clock.advance(30)
        await fixture.work(waiting=1)
        await make_volumes(fixture, {name: node for name, node in fixture.where().items() if name.startswith("g")})
        found = [name for name in fixture.bound() if name.startswith("g")]
        assert len(found) == count
        if not count:
            assert fixture.queue.state("default/gang/g") is QueueState.GATED

    scheduler_test(life)


@pytest.mark.parametrize(
    ("least", "lost", "sent"),
    [
        pytest.param(3, [], 1, id="the replacement joins the others"),
        pytest.param(3, ["b"], 0, id="another one is lost meanwhile: it would be in vain"),
        pytest.param(2, ["b"], 1, id="fewer are enough"),
        pytest.param(2, ["a", "b"], 0, id="all others are lost"),
    ],
)
def test_members_that_have_a_node_count_as_long_as_they_do(least: int, lost: list[str], sent: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(4)))
        fixture.things(a_class("wait"), a_claim("cg0"))
        fixture.pods(*(a_member(name, "g", least, cpu=1, node=f"n{i}") for i, name in enumerate("ab")))
        fixture.pods(mounting("g", 0, least))
        await fixture.work(waiting=1)
        await yield_to_loop()
        for name in lost:
            fixture.delete(f"default/{name}")
        await make_volumes(fixture, {"g0": fixture.where()["g0"]})
        assert len(fixture.server.binds) == sent

    scheduler_test(life)


# --- TERM ---------------------------------------------------------------------------------------------------------


def slow(fixture: SchedulerFixture, seconds: float = 0.02) -> None:
    real = fixture.server.send

    async def send(call: Call, *, timeout: float = 10.0) -> bytes:
        await asyncio.sleep(seconds)
        return await real(call, timeout=timeout)

    fixture.server.send = send  # type: ignore[method-assign]


def test_term_in_the_middle_of_a_gang_finishes_it_and_begins_no_other() -> None:
    """200 members, 64 binds in flight; a second gang stands behind them."""

    async def life() -> None:
        fixture = SchedulerFixture()
        fixture.nodes(*(a_node(f"n{i}", cpu=100) for i in range(5)))
        fixture.pods(*(a_member(f"a{i:03}", "a", 200, cpu=1) for i in range(200)))
        fixture.handlers.assembler.build_changed()
        slow(fixture)
        fixture.scheduler.loop.run_burst()
        await elapse(0.001)
        fixture.pods(*(a_member(f"b{i:03}", "b", 100, cpu=1) for i in range(100)))
        fixture.scheduler.loop.run_burst()
        assert len(fixture.where()) == 300, "both are decided"
        await elapse(0.03)
        assert 0 < len(fixture.bound()) < 200
        assert await fixture.scheduler.dispatcher.close(6.0) == 0
        assert sorted(fixture.bound()) == [f"a{i:03}" for i in range(200)]

    run(life())
