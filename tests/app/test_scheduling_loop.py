"""From a pod that is seen to a pod that is bound, and what becomes of it when that does not work."""

import asyncio
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app import scheduling_loop
from kubenexus.app.gangs.reservations import GangReservations
from kubenexus.bind.dispatcher import OUTAGE_PAUSE
from kubenexus.client.calls import ApiError, Call, Uncertain
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.queue.queued_job import QueueState
from kubenexus.state.pods import PodStage
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import on_node
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.async_helpers import wait_until
from tests.bind.server import AWAY, FORBIDDEN, LOST, SILENT
from tests.sim.virtual.virtual_time import elapse

TOO_MANY = ApiError(429, "TooManyRequests")


def test_a_pod_is_bound_confirmed_and_told() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(a_pod("web"))
        assert await fixture.work() == 1
        assert fixture.server.binds == ["web to n"]
        assert fixture.stage("web") is PodStage.ASSUMED
        assert fixture.told() == ["Scheduled web: Successfully assigned default/web to n"]
        fixture.echo()
        assert fixture.stage("web") is PodStage.BOUND
        assert len(fixture.queue) == 0

    scheduler_test(life)


def test_each_burst_wakes_a_bounded_number_of_kinds_and_the_next_goes_on_with_the_rest() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("small", cpu=1))
        fixture.pods(*(a_pod(f"p{i}", cpu=f"{2000 + i}m") for i in range(30)))
        await fixture.work()
        fixture.clock.advance(60)
        fixture.queue._work_allowance.most = 5
        await fixture.work()
        job_classes, loop, woken = (
            fixture.queue._job_classes,
            fixture.scheduler.loop,
            [fixture.queue._job_classes.woken],
        )
        fixture.nodes(a_node("large", cpu=1000))
        woken.append(job_classes.woken)
        while fixture.queue.pending(QueueState.UNSCHEDULABLE).jobs:
            assert not loop.idle, "it does not wait for anything"
            loop.run_burst()
            woken.append(job_classes.woken)
        assert [after - before for before, after in pairwise(woken)] == [5] * 6
        await fixture.work()
        assert len(fixture.where()) == 30

    scheduler_test(life)


def test_only_pods_of_our_profiles_that_live_are_ours() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        leaving = a_pod("leaving")
        meta = msgspec.structs.replace(leaving.metadata, deletion_timestamp="2026-11-16T00:00:00Z")
        foreign = a_pod("foreign")
        spec = msgspec.structs.replace(foreign.spec, scheduler_name="other")
        packed = a_pod("packed")
        packing = msgspec.structs.replace(packed.spec, scheduler_name="packing")
        fixture.pods(
            msgspec.structs.replace(leaving, metadata=meta),
            msgspec.structs.replace(foreign, spec=spec),
            msgspec.structs.replace(packed, spec=packing),
        )
        await fixture.work()
        assert fixture.server.binds == ["packed to n"]

    scheduler_test(life)


@pytest.mark.parametrize("fault", [FORBIDDEN, TOO_MANY, AWAY], ids=["forbidden", "busy", "away"])
def test_a_bind_that_fails_frees_its_room_and_is_tried_again_later(fault: Exception) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(a_pod("a", cpu=1))
        fixture.server.script.append(fault)
        await fixture.work()
        assert fixture.where() == {}
        assert fixture.queue.state("default/a") is QueueState.BACKOFF
        assert await fixture.work() == 0, "no hot loop"
        fixture.clock.advance(2)
        await fixture.work()
        assert fixture.where() == {"a": "n"}

    scheduler_test(life)


def test_f55_a_pod_whose_bind_is_always_refused_backs_off_and_stands_in_nobodys_way() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        fixture.pods(a_pod("bad", cpu=1, priority=1000))
        fixture.server.script.extend([FORBIDDEN] * 100)
        tries = []
        for _ in range(60):
            await fixture.work()
            tries.append(len(fixture.server.binds))
            fixture.clock.advance(1)
        assert tries[-1] < 12, "about every ten seconds in the end"
        assert tries[-1] > 5, "but it is not given up"
        assert any('FailedScheduling bad: running Bind plugin "DefaultBinder": pods' in each for each in fixture.told())
        fixture.server.script.clear()
        fixture.pods(a_pod("good", cpu=1))
        await fixture.work()
        assert "good" in fixture.where()

    scheduler_test(life)


def test_a_bind_that_may_have_happened_keeps_its_room_until_that_is_known() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(a_pod("a", cpu=1), a_pod("b", cpu=1))
        fixture.server.script.append(LOST)
        fixture.server.looks.append(SILENT)
        await fixture.work()
        assert fixture.server.binds == ["a to n"], "the other never gets the room"
        assert fixture.stage("a") is PodStage.BOUND, "the look told"

    scheduler_test(life)


def test_somebody_else_was_faster() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1), a_node("m", cpu=1))
        pod = a_pod("a", cpu=1)
        fixture.pods(pod)
        fixture.server.pods[pod.key] = on_node(pod, "m")
        chosen = "n"
        await fixture.work()
        assert fixture.where() == {"a": "m"}
        assert fixture.stage("a") is PodStage.BOUND
        assert "default/a" not in fixture.queue
        fixture.pods(a_pod("b", cpu=1))
        await fixture.work()
        assert fixture.where() == {"a": "m", "b": chosen}

    scheduler_test(life)


def test_a_pod_that_is_deleted_while_it_is_bound_leaves_nothing_behind() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(a_pod("a", cpu=1))
        fixture.scheduler.loop.run_burst()
        assert fixture.where() == {"a": "n"}
        fixture.delete("default/a")
        assert fixture.where() == {}
        await fixture.work()
        assert fixture.server.binds == [], "nothing was sent for it"
        assert (len(fixture.queue), fixture.scheduler.dispatcher.open_count) == (0, 0)

    scheduler_test(life)


def test_a_node_that_vanishes_before_the_bind_gets_none() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(a_pod("a", cpu=1))
        fixture.scheduler.loop.run_burst()
        fixture.handlers.on_node_delete("n")
        await fixture.work()
        assert (fixture.server.binds, fixture.where()) == ([], {})
        fixture.nodes(a_node("m", cpu=1))
        fixture.clock.advance(2)
        await fixture.work()
        assert fixture.where() == {"a": "m"}

    scheduler_test(life)


def test_old_news_of_a_pod_that_was_just_bound_does_not_queue_it_again() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        pod = a_pod("a")
        fixture.pods(pod)
        await fixture.work()
        fixture.handlers.on_pod_update(pod)
        assert "default/a" not in fixture.queue
        assert fixture.where() == {"a": "n"}

    scheduler_test(life)


def test_a_bind_that_the_watch_never_confirms_is_looked_after() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(a_pod("a"), a_pod("b"))
        await fixture.work()
        del fixture.server.pods["default/b"]
        await fixture.scheduler.bind_verifier.step()
        assert fixture.stage("a") is PodStage.ASSUMED, "there is still time"
        fixture.clock.advance(31)
        fixture.server.looks.extend([AWAY, AWAY])
        await fixture.scheduler.bind_verifier.step()
        assert len(fixture.where()) == 2, "nobody could say"
        fixture.clock.advance(31)
        await fixture.scheduler.bind_verifier.step()
        assert fixture.where() == {"a": "n"}
        assert fixture.stage("a") is PodStage.BOUND

    scheduler_test(life)


def test_decisions_run_only_so_far_ahead_of_the_server() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}") for i in range(10)))
        fixture.pods(*(a_pod(f"p{i}") for i in range(400)))
        while fixture.scheduler.loop.run_burst():
            pass
        assert len(fixture.where()) >= 128
        assert len(fixture.where()) <= 400
        await fixture.work()
        assert len(fixture.where()) == 400

    scheduler_test(life)


def test_without_the_lease_nothing_is_sent() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(a_pod("a"))
        fixture.guard.leads = False
        await fixture.work()
        await fixture.notes()
        assert fixture.server.calls == []

    scheduler_test(life)


def test_f64_a_job_that_brings_the_planner_down_stands_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        planner = fixture.scheduler.planners["default-scheduler"]
        decide = planner.decide

        def breaks(job: Job, *rest: Any, **named: Any) -> Decision:
            if job.key == "default/odd":
                raise ZeroDivisionError("a bug")
            return decide(job, *rest, **named)

        monkeypatch.setattr(planner, "decide", breaks)
        fixture.nodes(a_node("n"))
        fixture.pods(a_pod("odd", priority=9), a_pod("fine"))
        await fixture.work()
        assert fixture.where() == {"fine": "n"}
        assert fixture.queue.state("default/odd") is QueueState.BACKOFF
        assert any("FailedScheduling odd: ZeroDivisionError: a bug" in each for each in fixture.told())

    scheduler_test(life)


def test_while_the_server_is_away_nothing_piles_up() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        dispatcher, back = fixture.scheduler.dispatcher, asyncio.Event()
        rested: list[float] = []

        async def rest(seconds: float) -> None:
            rested.append(seconds)
            await back.wait()

        dispatcher.rest, dispatcher._sleep = OUTAGE_PAUSE, rest
        fixture.nodes(a_node("n"), a_node("m"), a_node("o"))
        fixture.pods(*(a_pod(f"p{i}") for i in range(300)))
        fixture.server.script.extend([AWAY] * 128)
        await fixture.work()
        assert len(fixture.server.binds) <= 128
        assert fixture.where() == {}
        assert rested == [OUTAGE_PAUSE], "one rest for all of them"
        assert dispatcher.resting
        back.set()
        await wait_until(lambda: not dispatcher.resting)
        fixture.clock.advance(60)
        await fixture.work()
        assert len(fixture.where()) == 300

    scheduler_test(life)


def test_who_comes_after_a_gang_that_waits_for_room_is_told_so_and_follows_it() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        def of_packing(pod: Pod) -> Pod:
            return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name="packing"))

        fixture.nodes(a_node("n", cpu=4))
        fixture.pods(a_pod("busy", cpu=2, node="n"))
        fixture.pods(*(of_packing(a_member(f"llama-{i}", "llama", 4, cpu=1)) for i in range(4)))
        await fixture.work()
        fixture.clock.advance(1.0)
        fixture.pods(of_packing(a_pod("late", cpu=1)), a_pod("foreign", cpu=1))
        await fixture.work()
        said = "the room that is left is kept for gang default/llama, which comes first"
        assert f"FailedScheduling late: 0/1 nodes are available: {said}." in fixture.told()
        assert fixture.bound() == {"busy": "n", "foreign": "n"}
        fixture.delete("default/busy")
        fixture.delete("default/foreign")
        await fixture.work()
        assert len(fixture.bound()) == 4
        fixture.echo()
        fixture.delete("default/llama-0")
        fixture.delete("default/llama-1")
        fixture.clock.advance(200.0)
        await fixture.work()
        assert "late" in fixture.bound()

    scheduler_test(life)


def test_the_loop_wakes_when_a_reservation_lapses() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.scheduler.loop.reservations = GangReservations(
            fixture.queue, fixture.scheduler.assembler, fixture.clock, {"default-scheduler": 40.0}
        )
        fixture.nodes(a_node("n", cpu=2))
        fixture.pods(a_pod("busy", cpu=1, node="n"), *(a_member(f"llama-{i}", "llama", 2, cpu=1) for i in range(2)))
        await fixture.work()
        fixture.clock.advance(1.0)
        fixture.pods(a_pod("late", cpu=1))
        await fixture.work()
        assert "late" not in fixture.bound()
        assert fixture.scheduler.loop.reservations.due == fixture.clock.now() + 39.0
        fixture.clock.advance(39.0)
        await fixture.work()
        assert fixture.bound()["late"] == "n"

    scheduler_test(life)


@pytest.mark.parametrize("fits", [True, False], ids=["they are placed", "none of them fits"])
def test_all_that_were_set_aside_are_tried_in_the_end(fits: bool) -> None:
    """Jobs that come to no bind free none that stand behind them."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.scheduler.dispatcher.backlog.max_under_way = 128
        fixture.nodes(a_node("n", cpu=2000, memory="4Ti", pods=2000))
        pods = [a_pod(f"p{i}", cpu=1 if i < 200 or fits else 3000 + i, memory=f"{i + 1}Mi") for i in range(500)]
        fixture.pods(*pods)
        await fixture.work()
        places = Counter(fixture.queue.state(pod.key) for pod in pods)
        assert len(fixture.where()) == (500 if fits else 200)
        assert places[QueueState.ACTIVE] == 0, "none waits for a turn that never comes"

    scheduler_test(life)


def test_priority_decides_who_gets_room_however_many_binds_are_under_way() -> None:
    """Younger pods of less priority, in other namespaces, get what the others leave."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=320, pods=400))
        urgent = [a_pod(f"urgent-{i}", namespace="shop", priority=1000, cpu=1) for i in range(300)]
        others = [a_pod(f"other-{i}", namespace=f"evil-{i % 8}", cpu=1) for i in range(300)]
        fixture.pods(*urgent, *others)
        await fixture.work()
        assert Counter(name.partition("-")[0] for name in fixture.where()) == {"urgent": 300, "other": 20}

    scheduler_test(life)


def test_the_loop_wakes_for_a_gang_whose_growth_was_paced() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.pods(*(a_member(f"m{i:05}", "llama", 9999) for i in range(2000)))
        for number in range(2000, 2012):
            fixture.pods(a_member(f"m{number:05}", "llama", 9999))
            await fixture.work()
        due = fixture.scheduler.assembler.next_due()
        assert due is not None
        assert fixture.scheduler.loop.idle
        fixture.clock.advance(due - fixture.clock.now())
        assert not fixture.scheduler.loop.idle
        await fixture.work()
        job = fixture.queue.job("default/gang/llama")
        assert job is not None
        assert len(job.pods) == 2012

    scheduler_test(life)


def test_priority_decides_who_gets_capacity_while_many_namespaces_have_binds_under_way() -> None:
    """Sixty namespaces with a webhook of a quarter of a second, and later pods of the same."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=37, pods=1000) for i in range(20)))  # 740: 240 and 500
        answer = fixture.server.send

        async def send(call: Call, *, timeout: float = 10.0) -> bytes:
            if call.path.endswith("/binding"):
                await elapse(0.24 if call.namespace.startswith("evil") else 0.01)
            return await answer(call, timeout=timeout)

        fixture.server.send = send  # type: ignore[method-assign]

        async def go_on(seconds: float) -> None:
            for _ in range(round(seconds / 0.05)):
                fixture.scheduler.loop.run_burst()
                await elapse(0.05)
                fixture.clock.advance(0.05)

        fixture.pods(*(a_pod(f"early-{k}-{i}", namespace=f"evil{k}", cpu=1) for i in range(4) for k in range(60)))
        await go_on(0.1)
        fixture.pods(*(a_pod(f"urgent-{i}", namespace="good", cpu=1, priority=1000) for i in range(500)))
        fixture.pods(*(a_pod(f"late-{k}-{i}", namespace=f"evil{k}", cpu=1) for i in range(9) for k in range(60)))
        await go_on(6.0)
        placed = Counter(name.partition("-")[0] for name in fixture.where())
        assert placed == {"early": 240, "urgent": 500}

    scheduler_test(life)


def test_no_pods_of_less_priority_pass_a_new_namespace_while_others_hang() -> None:
    """A tenant has binds in thirty namespaces that hang, and pods in another that is answered quickly."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.scheduler.dispatcher.backlog.max_under_way = 64
        fixture.nodes(a_node("n", cpu=40, pods=1000))
        answer = fixture.server.send

        async def send(call: Call, *, timeout: float = 10.0) -> bytes:
            if call.path.endswith("/binding"):
                if call.namespace.startswith("evil"):
                    await elapse(timeout)
                    raise Uncertain("no answer")
                await elapse(0.01)
            return await answer(call, timeout=timeout)

        fixture.server.send = send  # type: ignore[method-assign]

        async def go_on(seconds: float) -> None:
            for _ in range(round(seconds / 0.05)):
                fixture.scheduler.loop.run_burst()
                await elapse(0.05)
                fixture.clock.advance(0.05)

        fixture.pods(a_pod("first", namespace="quick", cpu=0))
        await go_on(0.1)
        fixture.pods(*(a_pod(f"hangs-{k}-{i}", namespace=f"evil{k}", cpu=0) for i in range(4) for k in range(30)))
        await go_on(0.1)
        fixture.pods(*(a_pod(f"urgent-{i}", namespace="new", cpu=1, priority=1000) for i in range(40)))
        fixture.pods(*(a_pod(f"late-{i}", namespace="quick", cpu=1) for i in range(40)))
        await go_on(2.0)
        placed = Counter(name.partition("-")[0] for name in fixture.where())
        assert placed == {"first": 1, "hangs": 120, "urgent": 40}

    scheduler_test(life)


def test_a_large_gang_is_built_decided_and_reported_in_turns_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they would take a fifth of a second for ten thousand members."""
    monkeypatch.setattr(scheduling_loop, "LARGE", 20)

    async def life(fixture: SchedulerFixture) -> None:
        loop, turns = fixture.scheduler.loop, list[set[str]]()
        assembler, queue, reporter = loop._assembler, loop._queue, loop._pod_reporter
        noted: set[str] = set()
        for owner, name in ((assembler, "build_changed"), (queue, "pop"), (reporter, "report_some")):
            monkeypatch.setattr(owner, name, partial(_noted, noted, name, getattr(owner, name)))

        async def watch_turns() -> None:
            while True:
                turns.append(set(noted))
                noted.clear()
                await asyncio.sleep(0)

        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(*[a_member(f"m{i}", "large", 30, cpu=1) for i in range(30)])
        tasks = [asyncio.ensure_future(each) for each in (watch_turns(), loop.run())]
        for _ in range(20):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        assert [each for each in turns if each][:3] == [{"build_changed"}, {"pop"}, {"report_some"}]

    scheduler_test(life)


def _noted(noted: set[str], name: str, call: Any, *args: Any) -> Any:
    noted.add(name)
    return call(*args)
