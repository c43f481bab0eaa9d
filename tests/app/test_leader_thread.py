"""Leadership does not hang on a decision: the lease has a thread of its own, which looks after the main loop."""

import asyncio
import logging
import random
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubenexus.app.election import leader_thread
from kubenexus.app.election.candidate import Candidate
from kubenexus.app.election.leader import LeaderElector, LeadershipLost
from kubenexus.app.election.leader_thread import LeaderElectionThread
from kubenexus.app.election.lease import LeaseConfig
from kubenexus.app.election.loop_activity import HEARTBEAT_SECONDS, MAX_STALL_SECONDS, LoopActivity, StallDetector
from kubenexus.base.clock import VirtualClock, WallClock
from kubenexus.client.calls import ApiError, Call, Unreachable
from kubenexus.client.client_config import ClientOptions, load_client_config
from tests.app.leases import LeaseServer
from tests.async_helpers import FakeSleep as Waking
from tests.async_helpers import wait_until, yield_to_loop
from tests.observe.answers import Sleeper

TERMS = LeaseConfig(namespace="kubenexus-system", name="kubenexus-scheduler")
START = 1_794_792_257.0
NOTE = "scheduling.kubenexus.io/slow-jobs"
PATIENCE = 20.0  # seconds that a test waits for another thread before it fails


class Wire:
    """To the server, from the lease thread. `renewed` is set at each third renewal: the main thread waits for that."""

    def __init__(self, server: LeaseServer) -> None:
        self.server, self.puts, self.threads = server, 0, set[int]()
        self.renewed, self.away = threading.Event(), False
        self.closed = False

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        self.threads.add(threading.get_ident())
        await asyncio.sleep(0)
        if self.away:
            raise Unreachable("no route")
        answer = self.server.apply(call)
        self.puts += call.method == "PUT"
        if self.puts >= 3:
            self.renewed.set()
        return answer

    async def close(self) -> None:
        self.closed = True


class Stage:
    """A thread with its election, on a server of three lines. Time passes while the lease is renewed (`renews`), or
    while the main loop is watched."""

    def __init__(self, *, renews: bool = False, watches: bool = False, grace: float = PATIENCE, identity: str = "a_1"):
        self.clock, self.server, self.activity = VirtualClock(START), LeaseServer(), LoopActivity()
        self.wire = Wire(self.server)
        self.codes, self.ended = list[int](), threading.Event()
        self.still = threading.Event()  # set when the main thread does nothing any more: from then on time passes
        moving = Sleeper(self.clock)

        async def watching(seconds: float) -> None:
            await asyncio.to_thread(self.still.wait, PATIENCE)
            await moving(seconds)

        self.candidate = Candidate(identity, TERMS, self.activity.note)
        self.elector = LeaderElector(
            self.wire, self.clock, self.candidate, random.Random(1), sleep=moving if renews else asleep
        )
        self.thread = LeaderElectionThread(
            self.elector, self.activity, self.clock, sleep=watching if watches else asleep, exit=self.exit, grace=grace
        )

    def exit(self, code: int) -> None:
        self.codes.append(code)
        self.ended.set()

    async def close(self) -> None:
        await self.thread.close(self.wire)  # type: ignore[arg-type]

    @property
    def note(self) -> str:
        assert self.server.lease is not None
        return str(self.server.lease["metadata"].get("annotations", {}).get(NOTE, ""))


async def asleep(seconds: float) -> None:
    await asyncio.Event().wait()


def test_the_lease_is_renewed_while_the_main_thread_is_busy() -> None:
    stage = Stage(renews=True)

    async def life() -> None:
        await stage.thread.acquire()
        holding = asyncio.ensure_future(stage.thread.hold())
        await asyncio.sleep(0)
        assert stage.wire.renewed.wait(PATIENCE), "this thread does nothing else, as in a long decision"
        assert not holding.done()
        assert stage.thread.elector.may_write()
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        assert await stage.thread.release()
        await stage.close()

    asyncio.run(life())
    assert stage.server.spec["holderIdentity"] == "", "given up at the end"
    assert not stage.elector.may_write()
    assert threading.get_ident() not in stage.wire.threads, "every call was made by the lease thread"
    assert stage.wire.closed
    assert "lease" not in [each.name for each in threading.enumerate()]


def test_a_main_loop_that_stands_still_ends_the_process_and_its_job_is_named(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(watches=True)
    stage.activity.slow_jobs.inherit("", START)
    stage.activity.deciding = ("shop/monster", START)
    lost: list[BaseException] = []

    async def life() -> None:
        await stage.thread.acquire()
        holding = asyncio.ensure_future(stage.thread.hold())
        await wait_until(lambda: stage.thread._holding is not None)
        stage.still.set()
        assert stage.ended.wait(PATIENCE)  # the main loop stands still in this line
        lost.extend(each for each in await asyncio.gather(holding, return_exceptions=True) if each is not None)
        await stage.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(life())
    assert stage.codes == [1]
    (line,) = [record for record in caplog.records if record.name == "kubenexus.lease"]
    assert line.getMessage() == "Main loop stands still; ending"
    said = line.keys  # type: ignore[attr-defined]
    assert (said["job"], said["released"]) == ("shop/monster", True)
    assert said["seconds"] > MAX_STALL_SECONDS
    assert "life" in said["where"], "and where in the code it stands"
    assert stage.server.spec["holderIdentity"] == "", "another process may lead at once"
    assert [each["job"] for each in msgspec.json.decode(stage.note)] == ["shop/monster"]
    assert not stage.elector.may_write()
    assert isinstance(lost[0], LeadershipLost), "should the loop come to life again, it ends all the same"


def test_a_main_loop_that_shows_life_is_left_alone_until_it_shows_none() -> None:
    """All in one loop, and in virtual time."""
    stage, ended = Stage(), list[float]()
    sleeper = Waking(stage.clock)
    watched = LeaderElectionThread(
        stage.elector,
        stage.activity,
        stage.clock,
        sleep=sleeper.sleep,
        exit=lambda code: ended.append(stage.clock.now() - START),
    )

    async def life() -> None:
        await stage.elector.acquire()
        beating = asyncio.ensure_future(stage.activity.beat(lambda: None, sleeper.sleep))
        watching = asyncio.ensure_future(watched._watch())
        await yield_to_loop()
        await sleeper.advance(3_600.0)
        assert ended == []
        beating.cancel()
        while not watching.done():
            await sleeper.advance(1.0)
            await yield_to_loop()

    asyncio.run(life())
    assert ended == [pytest.approx(3_600.0 + MAX_STALL_SECONDS, abs=2 * HEARTBEAT_SECONDS)]


def test_the_process_ends_even_if_its_log_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The main thread may stand still because the pipe of its log is full; it then holds the log's lock."""
    stage = Stage(watches=True, grace=0.0)

    class Full:
        def error(self, *_: Any, **__: Any) -> None:
            assert stage.ended.wait(PATIENCE)

    monkeypatch.setattr(leader_thread, "log", Full())

    async def life() -> None:
        await stage.thread.acquire()
        stage.still.set()
        assert stage.ended.wait(PATIENCE)
        await stage.close()

    asyncio.run(life())
    assert set(stage.codes) == {1}


def test_what_goes_wrong_with_the_lease_ends_the_process_with_its_line() -> None:
    stage = Stage(renews=True)

    async def life() -> None:
        await stage.thread.acquire()
        stage.wire.away = True
        with pytest.raises(LeadershipLost, match="lease kubenexus-scheduler could not be renewed: no route"):
            await stage.thread.hold()
        await stage.close()

    asyncio.run(life())
    assert stage.codes == []


def test_a_standby_that_is_asked_to_end_stops_asking_for_the_lease() -> None:
    stage = Stage()
    stage.server.apply(
        Call("POST", "/", b'{"metadata": {}, "spec": {"holderIdentity": "b", "leaseDurationSeconds": 9}}')
    )

    async def life() -> None:
        acquiring = asyncio.ensure_future(stage.thread.acquire())
        while not stage.wire.threads:
            await asyncio.sleep(0)
        acquiring.cancel()
        await asyncio.gather(acquiring, return_exceptions=True)
        await stage.close()

    asyncio.run(life())
    assert stage.server.spec["holderIdentity"] == "b"
    assert stage.wire.closed


def test_a_thread_that_never_began_can_be_closed() -> None:
    stage = Stage()
    asyncio.run(stage.close())
    assert stage.wire.closed


# --- what the lease says about slow jobs ------------------------------------------------------------------------------


def test_the_next_leader_learns_what_the_one_before_was_busy_with() -> None:
    stage = Stage()
    stage.activity.slow_jobs.inherit("", START)
    stage.activity.deciding = ("shop/monster", START - 5.0)

    async def renewed(elector: LeaderElector) -> None:
        await elector._round(1.0)

    asyncio.run(stage.elector.acquire())
    assert stage.note == "", "a lease that is made has none"
    asyncio.run(renewed(stage.elector))
    assert "shop/monster" in stage.note, "and so it stays should the process be killed now"
    other = Stage(identity="b_2")
    other.wire.server = stage.server
    stage.clock.advance(1_000.0)

    async def life() -> str:
        other.candidate.on_read(None, START)
        other.clock.advance(1_000.0)
        await other.elector._round(1.0)
        other.clock.advance(16.0)
        noted = await other.thread.acquire()
        await other.close()
        return noted

    noted = asyncio.run(life())
    assert [each["job"] for each in msgspec.json.decode(noted)] == ["shop/monster"]
    asyncio.run(renewed(other.elector))
    assert "shop/monster" in stage.note, "nothing is overwritten before it was read"
    other.activity.slow_jobs.inherit("", START)
    asyncio.run(renewed(other.elector))
    assert stage.note == "", "and now it is the new leader's to write"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({"kept": "yes"}, {"kept": "yes"}, id="others' annotations stay"),
        pytest.param({NOTE: 7, "kept": "yes"}, {"kept": "yes"}, id="what is no text"),
        pytest.param(None, {}, id="none at all"),
        pytest.param([], {}, id="what are no annotations"),
    ],
)
def test_a_note_stands_beside_what_others_wrote(annotations: Any, expected: dict[str, str]) -> None:
    stage = Stage()
    stage.activity.slow_jobs.inherit("", START)
    asyncio.run(stage.elector.acquire())
    assert stage.server.lease is not None
    stage.server.lease["metadata"]["annotations"] = annotations
    stage.server.lease["metadata"]["resourceVersion"] = "9"
    stage.activity.deciding = ("shop/monster", START - 5.0)
    asyncio.run(stage.elector._round(1.0))
    written = stage.server.lease["metadata"]["annotations"]
    assert {key: value for key, value in written.items() if key != NOTE} == expected
    assert "shop/monster" in stage.note
    stage.activity.deciding = None
    asyncio.run(stage.elector._round(1.0))
    assert stage.server.lease["metadata"].get("annotations", {}) == expected


# --- signs of life ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([(1.0, True)] * 100, 0.0, id="a loop that beats"),
        pytest.param([(1.0, False)] * 31, 31.0, id="a loop that stands still"),
        pytest.param([(1.0, False)] * 31 + [(1.0, True)], 0.0, id="a loop that comes to life again"),
        pytest.param(
            [(3_600.0, False)], 2 * HEARTBEAT_SECONDS, id="a process that was stopped, or suspended, for an hour"
        ),
        pytest.param([(3_600.0, True)], 0.0, id="the same, and the loop was sooner awake"),
    ],
)
def test_how_long_a_loop_has_stood_still(looks: list[tuple[float, bool]], expected: float) -> None:
    activity, now = LoopActivity(), START
    stillness, still = StallDetector(activity, now), 0.0
    for passed, beats in looks:
        now += passed
        activity.beats += beats
        still = stillness.seconds_stalled(now)
    assert still == expected


def test_a_write_that_may_take_longer_is_waited_for() -> None:
    """Nothing that a loop sent before it stood still may arrive after another leads."""
    stage = Stage()
    assert stage.thread._patience == MAX_STALL_SECONDS
    slow = LeaderElector(
        stage.wire,
        stage.clock,
        Candidate("a", LeaseConfig(namespace="n", name="l", lease=90, renew=30.0)),
        random.Random(1),
    )
    assert LeaderElectionThread(slow, stage.activity, stage.clock)._patience == 65.0


# --- who we are, in two threads ---------------------------------------------------------------------------------------


def test_a_login_program_can_be_asked_by_the_lease_thread(tmp_path: Path) -> None:
    said = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}'
    user = {"exec": {"command": sys.executable, "args": ["-c", f"print('{said}')"], "interactiveMode": "Never"}}
    user["exec"]["apiVersion"] = "client.authentication.k8s.io/v1"
    file = tmp_path / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_bytes(msgspec.json.encode(config))
    mine, theirs = (load_client_config(ClientOptions(kubeconfig=str(file)), WallClock()) for _ in range(2))
    assert mine.credentials is not theirs.credentials
    assert mine.trust is not theirs.trust
    stage = Stage()

    async def life() -> None:
        await asyncio.gather(mine.credentials.fetch(), stage.thread._run_in_thread(theirs.credentials.fetch()))
        await stage.close()

    asyncio.run(life())
    assert (mine.credentials.current(), theirs.credentials.current()) == ("Bearer t", "Bearer t")


def test_conflicts_are_no_reason_to_lose_a_note() -> None:
    stage = Stage()
    stage.activity.slow_jobs.inherit("", START)
    asyncio.run(stage.elector.acquire())
    stage.activity.deciding = ("shop/monster", START - 5.0)
    answers = [ApiError(409, "Conflict"), None]
    send = stage.wire.send

    async def refusing(call: Call, *, timeout: float = 10.0) -> bytes:
        trouble = answers.pop(0) if answers else None
        if trouble is not None:
            raise trouble
        return await send(call, timeout=timeout)

    stage.wire.send = refusing  # type: ignore[method-assign]
    asyncio.run(stage.elector._round(1.0))
    assert "shop/monster" in stage.note
