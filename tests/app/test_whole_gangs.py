"""A gang is never halved by choice: what becomes of its members between decision and bind, and at the end."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.client.calls import Call
from kubenexus.queue.entry import Place
from kubenexus.sim.virtual.loop import run
from kubenexus.testing.builders import a_node
from tests.api.gangs.small import LEAST, NAME, a_member
from tests.app.test_volumes import bound, selected
from tests.app.town import Town, in_town
from tests.turns import turns
from tests.volumes.some import a_claim, a_class, a_mounting_pod, a_volume

GANGS = ("g", "h")


def mounting(gang: str, number: int, least: int = 4) -> Pod:
    name = f"{gang}{number}"
    return a_mounting_pod(name, f"c{name}", cpu=1, labels={NAME: gang, LEAST: str(least)})


async def two_gangs_wait_for_volumes(town: Town) -> dict[str, str]:
    """Of four each, one on each node; no bind was sent."""
    town.nodes(*(a_node(f"n{i}", cpu=1) for i in range(9)))
    town.things(a_class("wait"), *(a_claim(f"c{gang}{i}") for gang in GANGS for i in range(4)))
    town.pods(*(mounting(gang, i) for gang in GANGS for i in range(4)))
    await town.work(waiting=2)
    await turns()
    assert (len(town.where()), town.server.binds) == (8, [])
    return town.where()


async def make_volumes(town: Town, where: dict[str, str]) -> None:
    for name, node in where.items():
        claim = a_claim(f"c{name}")
        made = bound(claim, f"pv{name}", node)
        town.things(selected(claim, node), a_volume(f"pv{name}", claim=f"c{name}"), made)
    for _ in range(20):
        await turns()
        town.scheduler.loop.burst()


def deleted(town: Town, where: dict[str, str]) -> None:
    town.delete("default/g3")


def being_deleted(town: Town, where: dict[str, str]) -> None:
    pod = mounting("g", 3)
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-11-16T00:00:00Z")
    town.pods(msgspec.structs.replace(pod, metadata=meta))


def bound_elsewhere(town: Town, where: dict[str, str]) -> None:
    pod = mounting("g", 3)
    free = next(f"n{i}" for i in range(9) if f"n{i}" not in where.values())
    town.pods(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=free)))


def node_deleted(town: Town, where: dict[str, str]) -> None:
    town.feed.node_gone(where["g3"])


def nothing(town: Town, where: dict[str, str]) -> None:
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
    happens: Callable[[Town, dict[str, str]], None], at_once: int, count: int
) -> None:
    """All of it is bound in the end, or none; the other gang at once."""

    async def life(town: Town) -> None:
        where = await two_gangs_wait_for_volumes(town)
        happens(town, where)
        await make_volumes(town, where)
        others = {name for name in town.bound() if name.startswith("h")}
        assert len(others) == 4
        sent = [bind for bind in town.server.binds if bind.startswith("g")]
        assert len(sent) == at_once, "what cannot be completed is not begun"
        if happens is node_deleted:  # its volume is bound to a node that is gone: it is made again elsewhere
            town.things(a_claim("cg3"))
        town.clock.advance(30)
        await town.work(waiting=1)
        await make_volumes(town, {name: node for name, node in town.where().items() if name.startswith("g")})
        found = [name for name in town.bound() if name.startswith("g")]
        assert len(found) == count
        if not count:
            assert town.room.place("default/gang/g") is Place.GATED

    in_town(life)


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
    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}", cpu=1) for i in range(4)))
        town.things(a_class("wait"), a_claim("cg0"))
        town.pods(*(a_member(name, "g", least, cpu=1, node=f"n{i}") for i, name in enumerate("ab")))
        town.pods(mounting("g", 0, least))
        await town.work(waiting=1)
        await turns()
        for name in lost:
            town.delete(f"default/{name}")
        await make_volumes(town, {"g0": town.where()["g0"]})
        assert len(town.server.binds) == sent

    in_town(life)


# --- TERM ---------------------------------------------------------------------------------------------------------


def slow(town: Town, seconds: float = 0.02) -> None:
    real = town.server.send

    async def send(call: Call, *, timeout: float = 10.0) -> bytes:
        await asyncio.sleep(seconds)
        return await real(call, timeout=timeout)

    town.server.send = send  # type: ignore[method-assign]


def test_term_in_the_middle_of_a_gang_finishes_it_and_begins_no_other() -> None:
    """200 members, 64 binds in flight; a second gang stands behind them."""

    async def life() -> None:
        town = Town()
        town.nodes(*(a_node(f"n{i}", cpu=100) for i in range(5)))
        town.pods(*(a_member(f"a{i:03}", "a", 200, cpu=1) for i in range(200)))
        town.feed.assembly.flush()
        slow(town)
        town.scheduler.loop.burst()
        await asyncio.sleep(0.001)
        town.pods(*(a_member(f"b{i:03}", "b", 100, cpu=1) for i in range(100)))
        town.scheduler.loop.burst()
        assert len(town.where()) == 300, "both are decided"
        await asyncio.sleep(0.03)
        assert 0 < len(town.bound()) < 200
        assert await town.scheduler.dispatcher.close(6.0) == 0
        assert sorted(town.bound()) == [f"a{i:03}" for i in range(200)]

    run(life())
