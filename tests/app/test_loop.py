"""From a pod that is seen to a pod that is bound, and what becomes of it when that does not work."""

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app.reservations import Reservations
from kubenexus.bind.dispatcher import REST
from kubenexus.client.calls import ApiError
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.queue.entry import Place
from kubenexus.state.pods import Stage
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import on_node
from tests.api.gangs.small import a_member
from tests.app.town import Town, in_town
from tests.bind.server import AWAY, FORBIDDEN, LOST, SILENT
from tests.turns import until

TOO_MANY = ApiError(429, "TooManyRequests")


def test_a_pod_is_bound_confirmed_and_told() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        town.pods(a_pod("web"))
        assert await town.work() == 1
        assert town.server.binds == ["web to n"]
        assert town.stage("web") is Stage.ASSUMED
        assert town.told() == ["Scheduled web: Successfully assigned default/web to n"]
        town.echo()
        assert town.stage("web") is Stage.BOUND
        assert len(town.room) == 0

    in_town(life)


def test_each_burst_wakes_a_bounded_number_of_kinds_and_the_next_goes_on_with_the_rest() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("small", cpu=1))
        town.pods(*(a_pod(f"p{i}", cpu=f"{2000 + i}m") for i in range(30)))
        await town.work()
        town.clock.advance(60)
        town.room._allowance.most = 5
        await town.work()
        lines, loop, woken = town.room._lines, town.scheduler.loop, [town.room._lines.woken]
        town.nodes(a_node("large", cpu=1000))
        woken.append(lines.woken)
        while town.room.waiting(Place.UNSCHEDULABLE).jobs:
            assert not loop.idle, "it does not wait for anything"
            loop.burst()
            woken.append(lines.woken)
        assert [after - before for before, after in pairwise(woken)] == [5] * 6
        await town.work()
        assert len(town.where()) == 30

    in_town(life)


def test_only_pods_of_our_profiles_that_live_are_ours() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        leaving = a_pod("leaving")
        meta = msgspec.structs.replace(leaving.metadata, deletion_timestamp="2026-11-16T00:00:00Z")
        foreign = a_pod("foreign")
        spec = msgspec.structs.replace(foreign.spec, scheduler_name="other")
        packed = a_pod("packed")
        packing = msgspec.structs.replace(packed.spec, scheduler_name="packing")
        town.pods(
            msgspec.structs.replace(leaving, metadata=meta),
            msgspec.structs.replace(foreign, spec=spec),
            msgspec.structs.replace(packed, spec=packing),
        )
        await town.work()
        assert town.server.binds == ["packed to n"]

    in_town(life)


@pytest.mark.parametrize("fault", [FORBIDDEN, TOO_MANY, AWAY], ids=["forbidden", "busy", "away"])
def test_a_bind_that_fails_frees_its_room_and_is_tried_again_later(fault: Exception) -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=1))
        town.pods(a_pod("a", cpu=1))
        town.server.script.append(fault)
        await town.work()
        assert town.where() == {}
        assert town.room.place("default/a") is Place.BACKOFF
        assert await town.work() == 0, "no hot loop"
        town.clock.advance(2)
        await town.work()
        assert town.where() == {"a": "n"}

    in_town(life)


def test_f55_a_pod_whose_bind_is_always_refused_backs_off_and_stands_in_nobodys_way() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=2))
        town.pods(a_pod("bad", cpu=1, priority=1000))
        town.server.script.extend([FORBIDDEN] * 100)
        tries = []
        for _ in range(60):
            await town.work()
            tries.append(len(town.server.binds))
            town.clock.advance(1)
        assert tries[-1] < 12, "about every ten seconds in the end"
        assert tries[-1] > 5, "but it is not given up"
        assert any('FailedScheduling bad: running Bind plugin "DefaultBinder": pods' in each for each in town.told())
        town.server.script.clear()
        town.pods(a_pod("good", cpu=1))
        await town.work()
        assert "good" in town.where()

    in_town(life)


def test_a_bind_that_may_have_happened_keeps_its_room_until_that_is_known() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=1))
        town.pods(a_pod("a", cpu=1), a_pod("b", cpu=1))
        town.server.script.append(LOST)
        town.server.looks.append(SILENT)
        await town.work()
        assert town.server.binds == ["a to n"], "the other never gets the room"
        assert town.stage("a") is Stage.BOUND, "the look told"

    in_town(life)


def test_somebody_else_was_faster() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=1), a_node("m", cpu=1))
        pod = a_pod("a", cpu=1)
        town.pods(pod)
        town.server.pods[pod.key] = on_node(pod, "m")
        chosen = "n"
        await town.work()
        assert town.where() == {"a": "m"}
        assert town.stage("a") is Stage.BOUND
        assert "default/a" not in town.room
        town.pods(a_pod("b", cpu=1))
        await town.work()
        assert town.where() == {"a": "m", "b": chosen}

    in_town(life)


def test_a_pod_that_is_deleted_while_it_is_bound_leaves_nothing_behind() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=1))
        town.pods(a_pod("a", cpu=1))
        town.scheduler.loop.burst()
        assert town.where() == {"a": "n"}
        town.delete("default/a")
        assert town.where() == {}
        await town.work()
        assert town.server.binds == [], "nothing was sent for it"
        assert (len(town.room), town.scheduler.dispatcher.open) == (0, 0)

    in_town(life)


def test_a_node_that_vanishes_before_the_bind_gets_none() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=1))
        town.pods(a_pod("a", cpu=1))
        town.scheduler.loop.burst()
        town.feed.node_gone("n")
        await town.work()
        assert (town.server.binds, town.where()) == ([], {})
        town.nodes(a_node("m", cpu=1))
        town.clock.advance(2)
        await town.work()
        assert town.where() == {"a": "m"}

    in_town(life)


def test_old_news_of_a_pod_that_was_just_bound_does_not_queue_it_again() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        pod = a_pod("a")
        town.pods(pod)
        await town.work()
        town.feed.pod_seen(pod)
        assert "default/a" not in town.room
        assert town.where() == {"a": "n"}

    in_town(life)


def test_a_bind_that_the_watch_never_confirms_is_looked_after() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        town.pods(a_pod("a"), a_pod("b"))
        await town.work()
        del town.server.pods["default/b"]
        await town.scheduler.inquest.step()
        assert town.stage("a") is Stage.ASSUMED, "there is still time"
        town.clock.advance(31)
        town.server.looks.extend([AWAY, AWAY])
        await town.scheduler.inquest.step()
        assert len(town.where()) == 2, "nobody could say"
        town.clock.advance(31)
        await town.scheduler.inquest.step()
        assert town.where() == {"a": "n"}
        assert town.stage("a") is Stage.BOUND

    in_town(life)


def test_decisions_run_only_so_far_ahead_of_the_server() -> None:
    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}") for i in range(10)))
        town.pods(*(a_pod(f"p{i}") for i in range(400)))
        while town.scheduler.loop.burst():
            pass
        assert len(town.where()) >= 128
        assert len(town.where()) <= 400
        await town.work()
        assert len(town.where()) == 400

    in_town(life)


def test_without_the_lease_nothing_is_sent() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        town.pods(a_pod("a"))
        town.guard.leads = False
        await town.work()
        await town.notes()
        assert town.server.calls == []

    in_town(life)


def test_f64_a_job_that_brings_the_planner_down_stands_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(town: Town) -> None:
        planner = town.scheduler.planners["default-scheduler"]
        decide = planner.decide

        def breaks(job: Job, *rest: Any) -> Decision:
            if job.key == "default/odd":
                raise ZeroDivisionError("a bug")
            return decide(job, *rest)

        monkeypatch.setattr(planner, "decide", breaks)
        town.nodes(a_node("n"))
        town.pods(a_pod("odd", priority=9), a_pod("fine"))
        await town.work()
        assert town.where() == {"fine": "n"}
        assert town.room.place("default/odd") is Place.BACKOFF
        assert any("FailedScheduling odd: ZeroDivisionError: a bug" in each for each in town.told())

    in_town(life)


def test_while_the_server_is_away_nothing_piles_up() -> None:
    async def life(town: Town) -> None:
        dispatcher, back = town.scheduler.dispatcher, asyncio.Event()
        rested: list[float] = []

        async def rest(seconds: float) -> None:
            rested.append(seconds)
            await back.wait()

        dispatcher.rest, dispatcher._sleep = REST, rest
        town.nodes(a_node("n"), a_node("m"), a_node("o"))
        town.pods(*(a_pod(f"p{i}") for i in range(300)))
        town.server.script.extend([AWAY] * 128)
        await town.work()
        assert len(town.server.binds) <= 128
        assert town.where() == {}
        assert rested == [REST], "one rest for all of them"
        assert dispatcher.resting
        back.set()
        await until(lambda: not dispatcher.resting)
        town.clock.advance(60)
        await town.work()
        assert len(town.where()) == 300

    in_town(life)


def test_who_comes_after_a_gang_that_waits_for_room_is_told_so_and_follows_it() -> None:
    async def life(town: Town) -> None:
        def of_packing(pod: Pod) -> Pod:
            return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name="packing"))

        town.nodes(a_node("n", cpu=4))
        town.pods(a_pod("busy", cpu=2, node="n"))
        town.pods(*(of_packing(a_member(f"llama-{i}", "llama", 4, cpu=1)) for i in range(4)))
        await town.work()
        town.clock.advance(1.0)
        town.pods(of_packing(a_pod("late", cpu=1)), a_pod("foreign", cpu=1))
        await town.work()
        said = "the room that is left is kept for gang default/llama, which comes first"
        assert f"FailedScheduling late: 0/1 nodes are available: {said}." in town.told()
        assert town.bound() == {"busy": "n", "foreign": "n"}
        town.delete("default/busy")
        town.delete("default/foreign")
        await town.work()
        assert len(town.bound()) == 4
        town.echo()
        town.delete("default/llama-0")
        town.delete("default/llama-1")
        town.clock.advance(200.0)
        await town.work()
        assert "late" in town.bound()

    in_town(life)


def test_the_loop_wakes_when_a_reservation_lapses() -> None:
    async def life(town: Town) -> None:
        town.scheduler.loop.reservations = Reservations(town.room, town.clock, {"default-scheduler": 40.0})
        town.nodes(a_node("n", cpu=2))
        town.pods(a_pod("busy", cpu=1, node="n"), *(a_member(f"llama-{i}", "llama", 2, cpu=1) for i in range(2)))
        await town.work()
        town.clock.advance(1.0)
        town.pods(a_pod("late", cpu=1))
        await town.work()
        assert "late" not in town.bound()
        assert town.scheduler.loop.reservations.due == town.clock.now() + 39.0
        town.clock.advance(39.0)
        await town.work()
        assert town.bound()["late"] == "n"

    in_town(life)


@pytest.mark.parametrize("fits", [True, False], ids=["they are placed", "none of them fits"])
def test_all_that_were_set_aside_are_tried_in_the_end(fits: bool) -> None:
    """Jobs that come to no bind free none that stand behind them."""

    async def life(town: Town) -> None:
        town.scheduler.dispatcher.backlog.most = 128
        town.nodes(a_node("n", cpu=2000, memory="4Ti", pods=2000))
        pods = [a_pod(f"p{i}", cpu=1 if i < 300 or fits else 3000 + i, memory=f"{i + 1}Mi") for i in range(1000)]
        town.pods(*pods)
        await town.work()
        places = Counter(town.room.place(pod.key) for pod in pods)
        assert len(town.where()) == (1000 if fits else 300)
        assert places[Place.ACTIVE] == 0, "none waits for a turn that never comes"

    in_town(life)


def test_priority_decides_who_gets_room_however_many_binds_are_under_way() -> None:
    """Younger pods of less priority, in other namespaces, get what the others leave."""

    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=320, pods=400))
        urgent = [a_pod(f"urgent-{i}", namespace="shop", priority=1000, cpu=1) for i in range(300)]
        others = [a_pod(f"other-{i}", namespace=f"evil-{i % 8}", cpu=1) for i in range(300)]
        town.pods(*urgent, *others)
        await town.work()
        assert Counter(name.partition("-")[0] for name in town.where()) == {"urgent": 300, "other": 20}

    in_town(life)
