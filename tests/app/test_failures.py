"""Bugs of other schedulers that begin between us and the API server: what is gone is let go, what is there counts, and
nothing is kept for ever. The numbers are those of the failure catalogue."""

import asyncio
import gc
import random
import threading
import types
from collections import Counter, deque
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app.watch.informers import InformerHandler
from kubenexus.bind.dispatcher import OUTAGE_PAUSE
from kubenexus.client.kinds import PODS
from kubenexus.queue.queued_job import QueueState
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger, on_node
from tests.app.scheduler_fixture import SchedulerFixture, in_real_town, scheduler_test
from tests.async_helpers import FakeSleep, wait_until, yield_to_loop
from tests.bind.server import AWAY, LOST, SILENT
from tests.client import cluster


def leaving(pod: Pod) -> Pod:
    """Told to end, and taking its time: it runs until its kubelet says otherwise."""
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-11-16T00:00:00Z")
    return msgspec.structs.replace(pod, metadata=meta)


# --- 32: deletions while the watch was not there ----------------------------------------------------------------------

RUNNING: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}], "nodeName": "n"}
OLD = [cluster.pod(f"old-{i}", i + 1, **RUNNING) for i in range(2)]
LEFT = cluster.page(OLD[1], version=20)


@pytest.mark.parametrize(
    ("lists", "watches"),
    [
        pytest.param([cluster.page(*OLD), LEFT], [cluster.refuses(cluster.GONE)], id="before the watch began"),
        pytest.param(
            [cluster.page(*OLD), LEFT],
            [cluster.says(cluster.event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"}))],
            id="in the middle of it",
        ),
        pytest.param([cluster.page(OLD[0], more="x"), cluster.GONE, LEFT], [], id="between two pages of a list"),
    ],
)
def test_f32_a_deletion_in_a_gap_of_the_watch_frees_its_room(lists: list[bytes], watches: list[cluster.Watch]) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        async with cluster.following(
            lists, watches, receiver=InformerHandler(fixture.handlers, PODS, fixture.scheduler.wakeup)
        ) as it:
            await it.until(lambda: it.reflector.version == "20")
        assert fixture.where() == {"old-1": "n"}
        fixture.pods(a_pod("new", cpu=1))
        await fixture.work()
        assert fixture.where() == {"old-1": "n", "new": "n"}

    in_real_town(life)


# --- 33: deleted while its bind is on the way -------------------------------------------------------------------------


@pytest.mark.parametrize("arrived", [False, True], ids=["the bind comes too late", "the bind was in time"])
def test_f33_a_pod_deleted_during_a_slow_bind_holds_no_room(arrived: bool) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.server.held = asyncio.Event()
        fixture.nodes(a_node("n", cpu=2))
        fixture.pods(a_pod("first", cpu=2), a_pod("second", cpu=2))
        fixture.scheduler.loop.run_burst()
        await wait_until(lambda: fixture.server.in_flight == 1)
        assert fixture.where() == {"first": "n"}
        if arrived:
            fixture.handlers.on_pod_update(on_node(fixture.server.pods["default/first"], "n"))
        fixture.delete("default/first")
        assert fixture.where() == {}
        fixture.server.held.set()
        await fixture.work()
        fixture.clock.advance(60)
        await fixture.work()
        fixture.echo()
        assert fixture.where() == {"second": "n"}
        assert digest(fixture.ledger) == digest(a_ledger([a_node("n", cpu=2)], [on_node(a_pod("second", cpu=2), "n")]))
        assert len(fixture.queue) == 0

    scheduler_test(life)


# --- 34: pods that are leaving ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", ["while it ran", "since a restart"])
def test_f34_a_pod_that_is_leaving_counts_until_it_has_left(known: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        victim = a_pod("victim", cpu=2, node="n")
        fixture.nodes(a_node("n", cpu=2))
        if known == "while it ran":
            fixture.handlers.on_pod_update(victim)
        fixture.handlers.on_pod_update(leaving(victim))
        fixture.pods(a_pod("next", cpu=1))
        for _ in range(5):
            await fixture.work()
            fixture.clock.advance(600)
        assert fixture.server.binds == []
        assert fixture.queue.state("default/next") in (QueueState.UNSCHEDULABLE, QueueState.BACKOFF)
        fixture.delete("default/victim")
        fixture.clock.advance(60)
        await fixture.work()
        assert fixture.where() == {"next": "n"}

    scheduler_test(life)


# --- 40: the server away in the middle of a burst ---------------------------------------------------------------------

NODES, EACH = 15, 40


@pytest.mark.parametrize("seed", [1, 2])
def test_f40_an_outage_in_a_burst_of_binds_leaves_no_phantom(seed: int) -> None:
    """Ten seconds in which calls are refused, get lost, or are done and the answer gets lost."""
    rng, faults = random.Random(seed), Counter[str]()

    async def life(fixture: SchedulerFixture) -> None:
        begins = fixture.clock.now() + 0.1

        def outage() -> Exception | str | None:
            if not begins <= fixture.clock.now() < begins + 10:
                return None
            fault = rng.choice((AWAY, SILENT, LOST))
            faults[str(fault)] += 1
            return fault

        dispatcher, time = fixture.scheduler.dispatcher, FakeSleep(fixture.clock)
        dispatcher.rest, dispatcher._sleep, fixture.server.outage = OUTAGE_PAUSE, time.sleep, outage
        nodes = [a_node(f"n{i}", cpu=EACH) for i in range(NODES)]
        fixture.nodes(*nodes)
        fixture.pods(*(a_pod(f"p{i}", cpu=1) for i in range(NODES * EACH)))
        bound_at_first = 0
        while len(fixture.queue) or dispatcher.open_count:
            fixture.scheduler.loop.run_burst()
            await yield_to_loop(5)
            await time.advance(0.05)
            bound_at_first = bound_at_first if faults else len(fixture.bound())
        assert 0 < bound_at_first < NODES * EACH, "it was in the middle of it"
        assert len(faults) == 3
        assert Counter(fixture.bound().values()) == {f"n{i}": EACH for i in range(NODES)}, "all run, none is overbooked"
        fixture.echo()
        assert digest(fixture.ledger) == digest(a_ledger(nodes, fixture.server.pods.values()))

    scheduler_test(life)


# --- 61, 62: memory ---------------------------------------------------------------------------------------------------

_NOT_STATE = (type, types.ModuleType, types.FunctionType, types.CodeType, types.FrameType, types.BuiltinFunctionType)


def held(*roots: object) -> Counter[str]:
    """What can be reached from these, and nothing of the program itself: objects by their type, and what is in
    collections. Numbers count by the place they take in one: a counter may grow."""
    gc.collect()
    seen, left, found = {id(root) for root in roots}, list(roots), Counter[str]()
    while left:
        for each in gc.get_referents(left.pop()):
            if id(each) in seen or isinstance(each, _NOT_STATE):
                continue
            seen.add(id(each))
            left.append(each)
            found[type(each).__name__] += not isinstance(each, (int, float))
            found[f"in {type(each).__name__}"] += len(each) if isinstance(each, (list, dict, set, deque)) else 0
    return found


async def come_and_go(fixture: SchedulerFixture, wave: int, number: int) -> None:
    """Pods that are bound, refused, deleted in flight, made again under their names, and end. All are gone after it."""
    pods = [
        a_pod(f"w{wave}-{i}", uid=f"u{wave}-{i}", cpu=1 + i % 3, labels={"wave": f"{wave % 4}", "i": f"{i}"})
        for i in range(number)
    ]
    fixture.pods(*pods)
    fixture.scheduler.loop.run_burst()
    for pod in pods[::5]:
        fixture.delete(pod.key)  # some of them in flight
    again = [a_pod(pod.metadata.name, uid=f"again {pod.metadata.uid}", cpu=1) for pod in pods[::10]]
    fixture.pods(*again)
    await fixture.work()
    fixture.echo()
    await fixture.notes()
    for pod in pods:
        fixture.delete(pod.key)
    fixture.clock.advance(1000)
    await fixture.work()
    await fixture.scheduler.bind_verifier.step()
    await fixture.scheduler.recorder.drain(fixture.server)
    fixture.scheduler.recorder.tick()
    fixture.server.calls.clear()


@pytest.mark.parametrize(("waves", "number"), [(20, 10), (4, 100)], ids=["many small", "some large"])
def test_f61_f62_pods_that_come_and_go_leave_nothing_behind(waves: int, number: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=16, pods=20) for i in range(4)))
        sizes = []
        for wave in range(2 * waves):
            if wave in (waves, 2 * waves - 1):
                sizes.append(held(fixture.scheduler))
            await come_and_go(fixture, wave, number)
        grown = sizes[1] - sizes[0]
        assert grown.total() < waves, f"it grows with every wave: {grown}"

    scheduler_test(life)


# --- 63: one writer ---------------------------------------------------------------------------------------------------


def test_f63_state_belongs_to_one_thread_whoever_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a second thread there is no lock to take, and no order to take two in. Another only formats numbers."""
    threads: set[int] = set()

    def watched(owner: Any, name: str) -> None:
        method = getattr(owner, name)

        def noted(*args: Any, **options: Any) -> Any:
            threads.add(threading.get_ident())
            return method(*args, **options)

        monkeypatch.setattr(owner, name, noted)

    async def life(fixture: SchedulerFixture) -> None:
        for name in ("upsert_pod", "remove_pod", "upsert_node", "transaction", "forget"):
            watched(fixture.ledger, name)
        for name in ("pop", "done", "bind_failed", "add", "delete", "on_event", "pending"):
            watched(fixture.queue, name)
        fixture.nodes(a_node("n", cpu=2))
        fixture.pods(a_pod("a", cpu=1), a_pod("b", cpu=1), a_pod("c", cpu=1))
        _, pages = await asyncio.gather(
            fixture.work(), asyncio.gather(*(fixture.scheduler.metrics.text("") for _ in range(20)))
        )
        fixture.delete("default/a")
        await fixture.work()
        assert all("scheduler_pending_pods" in str(page) for page in pages)
        assert threads == {threading.get_ident()}

    in_real_town(life)
