"""What the recorder promises: nothing said twice, nothing delayed, nothing unbounded, nothing raised."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from kubenexus.base.clock import VirtualClock
from kubenexus.client.calls import ApiError, Call, Uncertain, Unreachable
from kubenexus.client.fair_queue import TRIAL_TIMEOUT
from kubenexus.observe.events import failed_scheduling, scheduled
from kubenexus.observe.recorder import EventRecorder, RecorderLimits
from kubenexus.sim.virtual import loop
from kubenexus.testing.builders import a_pod
from tests.observe.answers import BUSY, FORBIDDEN, NOT_FOUND, TAKEN, Answers
from tests.sim.virtual.virtual_time import elapse

NAME = "kubenexus-scheduler"
WEB = a_pod("web", namespace="shop", uid="u")
START = 1_794_792_257.0


class Desk:
    """A recorder with a clock of its own."""

    def __init__(self, *script: Exception | None, **limits: Any) -> None:
        self.clock = VirtualClock(START)
        self.api = Answers(*script)
        self.stalled: dict[str, int] = {}
        self.recorder = EventRecorder(
            self.clock, "host", Random(1), limits=RecorderLimits(**limits), stalled=self.stalled.__setitem__
        )

    def refuse(self, sentence: str = "no", name: str = "web") -> None:
        self.recorder.record(failed_scheduling(a_pod(name, uid=name), sentence), NAME)

    def drain(self) -> list[tuple[str, dict[str, Any]]]:
        del self.api.calls[:]
        asyncio.run(self.recorder.drain(self.api))
        return self.api.told

    def run(self, room: Callable[[], Awaitable[None]] | None = None, seconds: float = 50.0) -> None:
        """Let `run` have so many seconds. The look after old series must not come in between."""

        async def for_a_while() -> None:
            task = asyncio.create_task(self.recorder.run(self.api, room or _always))
            await elapse(seconds)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        loop.run(for_a_while())


async def _always() -> None:
    pass


def series(told: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, int]]:
    return [(method, body.get("series", {}).get("count", 1)) for method, body in told]


def test_the_second_time_is_told_and_further_ones_are_counted() -> None:
    desk = Desk()
    desk.refuse()
    assert series(desk.drain()) == [("POST", 1)]
    desk.clock.advance(10)
    desk.refuse()
    assert desk.drain() == [("PATCH", {"series": {"count": 2, "lastObservedTime": "2026-11-16T01:24:27.000000Z"}})]
    for _ in range(5):
        desk.clock.advance(10)
        desk.refuse()
    assert desk.drain() == []


def test_a_repetition_before_the_first_was_sent_is_one_call() -> None:
    desk = Desk()
    for _ in range(3):
        desk.refuse()
    assert series(desk.drain()) == [("POST", 3)]


def test_another_sentence_is_another_event() -> None:
    desk = Desk()
    desk.refuse("0/4 nodes are available: 4 Insufficient cpu.")
    desk.refuse("0/5 nodes are available: 5 Insufficient cpu.")
    told = desk.drain()
    assert series(told) == [("POST", 1), ("POST", 1)]
    assert len({body["metadata"]["name"] for _, body in told}) == 2


def test_a_series_that_is_over_is_told_to_its_end_and_forgotten() -> None:
    desk = Desk()
    for _ in range(4):
        desk.refuse()
        desk.drain()
    desk.clock.advance(361)
    desk.recorder.tick()
    assert series(desk.drain()) == [("PATCH", 4)]
    assert desk.recorder.remembered == 0
    desk.refuse()
    assert series(desk.drain()) == [("POST", 1)]


def test_the_same_thing_much_later_is_an_event_of_its_own() -> None:
    desk = Desk()
    desk.refuse()
    desk.drain()
    desk.clock.advance(361)
    desk.refuse()
    assert series(desk.drain()) == [("POST", 1)]


def test_a_long_series_is_told_again_before_the_api_server_forgets_it() -> None:
    desk = Desk()
    for _ in range(10):
        desk.refuse()
        desk.drain()
        desk.clock.advance(200)
    desk.recorder.tick()
    assert series(desk.drain()) == [("PATCH", 10)]


def test_an_event_that_was_deleted_is_made_again_with_its_series() -> None:
    desk = Desk(None, NOT_FOUND)
    desk.refuse()
    first = desk.drain()[0][1]
    desk.refuse()
    told = desk.drain()
    assert series(told) == [("PATCH", 2), ("POST", 2)]
    assert told[1][1]["metadata"] == first["metadata"]


def test_a_lost_answer_makes_no_second_event() -> None:
    desk = Desk(Uncertain("?"), TAKEN)
    desk.refuse()
    desk.run()
    assert [body["metadata"]["name"] for _, body in desk.api.told] == ["web.18e8620c6c1b4a00"] * 2
    assert desk.recorder.dropped.total() == 0


def test_a_repetition_during_a_lost_answer_is_told_too() -> None:
    desk = Desk(TAKEN)  # the first try went through, but it was not heard
    desk.refuse()
    desk.refuse()
    assert series(desk.drain()) == [("POST", 2), ("PATCH", 2)]


@pytest.mark.parametrize(
    ("answers", "calls", "dropped"),
    [
        pytest.param([BUSY, BUSY], 3, {}, id="a server that is busy is asked again"),
        pytest.param([Unreachable("x"), ApiError(429)], 3, {}, id="so is one that cannot be reached, or says so"),
        pytest.param([BUSY] * 9, 4, {"unreachable": 1}, id="but not for ever"),
        pytest.param([NOT_FOUND], 1, {"rejected": 1}, id="a namespace that is gone needs no event"),
        pytest.param([FORBIDDEN], 1, {"rejected": 1}, id="nor one that is going"),
        pytest.param([ValueError("a bug")], 1, {"broken": 1}, id="a bug is worth no crash"),
    ],
)
def test_what_the_server_says_decides(answers: list[Exception], calls: int, dropped: dict[str, int]) -> None:
    desk = Desk(*answers, tries=4, writers=1, look=10_000.0)
    desk.recorder.record(scheduled(WEB, "n1"), NAME)
    desk.run()
    assert len(desk.api.calls) == calls
    assert desk.recorder.dropped == dropped
    assert desk.recorder.waiting == 0


def test_pauses_between_tries_are_jittered() -> None:
    desk = Desk(BUSY, BUSY, writers=1)
    desk.refuse()
    desk.run()
    pauses = [later - earlier for earlier, later in itertools.pairwise(desk.api.moments)]
    assert len(set(pauses)) == 2
    assert all(10 <= each <= 12.5 for each in pauses)


def test_events_wait_until_there_is_room() -> None:
    desk = Desk()
    shut = True

    async def room() -> None:
        while shut:
            await elapse(1.0)

    desk.refuse()
    desk.run(room)
    assert desk.api.calls == []
    shut = False
    desk.run(room)
    assert len(desk.api.calls) == 1
    assert desk.api.timeouts == {TRIAL_TIMEOUT}


def test_when_the_queue_is_full_the_oldest_gives_way_and_is_counted() -> None:
    desk = Desk(waiting=3)
    for i in range(5):
        desk.refuse(name=f"web-{i}")
    assert [body["regarding"]["name"] for _, body in desk.drain()] == ["web-2", "web-3", "web-4"]
    assert desk.recorder.dropped == {"full": 2}


def test_what_is_remembered_is_bounded() -> None:
    desk = Desk(waiting=10, remembered=7)
    for i in range(1000):
        desk.refuse(name=f"web-{i}")
    assert (desk.recorder.remembered, desk.recorder.waiting) == (7, 10)
    desk.clock.advance(400)
    desk.recorder.tick()
    assert desk.recorder.remembered == 0


def test_a_pod_that_was_placed_is_not_remembered() -> None:
    desk = Desk()
    desk.recorder.record(scheduled(WEB, "n1"), NAME)
    desk.drain()
    assert desk.recorder.remembered == 0


def test_what_was_on_its_way_when_the_writers_were_stopped_is_sent_by_the_drain() -> None:
    """Whoever ends the process right after a bind would otherwise never hear of it."""
    desk = Desk()

    class Slow:
        async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
            await asyncio.Event().wait()
            raise AssertionError

    async def for_a_while() -> None:
        task = asyncio.create_task(desk.recorder.run(Slow(), _always))
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    desk.recorder.record(scheduled(WEB, "n1"), NAME)
    asyncio.run(for_a_while())
    assert desk.recorder.waiting == 1
    assert [body["reason"] for _, body in desk.drain()] == ["Scheduled"]


class Hanging(Answers):
    """Answers about the namespace "evil" after so long, or never, and at once about all others. Knows when a namespace
    was first told, and how many calls were in flight after the first ones were given up."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.heard, self.seconds, self.now, self.most = dict[str, float](), seconds, 0, 0

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if call.namespace == "evil":
            self.now += 1
            await elapse(self.seconds or timeout)
            if asyncio.get_running_loop().time() > timeout:
                self.most = max(self.most, self.now)
            self.now -= 1
            if not self.seconds:
                raise Uncertain("no answer")
        self.heard.setdefault(call.namespace, asyncio.get_running_loop().time())
        return b"{}"


def about(desk: Desk, namespace: str, count: int) -> None:
    for i in range(count):
        pod = a_pod(f"{namespace}-{i}", namespace=namespace, uid=f"{namespace}-{i}")
        desk.recorder.record(failed_scheduling(pod, "no"), NAME)


@pytest.mark.parametrize(
    ("seconds", "patience"),
    [
        pytest.param(0.0, 1.1, id="that hang"),
        pytest.param(0.005, 0.02, id="that are answered"),
    ],
)
def test_ten_thousand_events_of_one_namespace_delay_none_of_another(seconds: float, patience: float) -> None:
    desk = Desk(look=10_000.0)
    desk.api = api = Hanging(seconds)
    about(desk, "evil", 10_000)
    about(desk, "good", 1)
    desk.run(seconds=20.0)
    assert api.heard["good"] <= patience
    assert desk.recorder.dropped == {}


def test_a_namespace_whose_events_hang_has_two_writers_and_is_reported() -> None:
    desk = Desk(look=10_000.0)
    desk.api = api = Hanging()
    about(desk, "evil", 100)
    desk.run(seconds=40.0)
    assert (api.most, desk.stalled) == (2, {"evil": 100})


def test_when_the_queue_is_full_the_namespace_with_the_most_gives_way() -> None:
    desk = Desk(waiting=10)
    about(desk, "good", 3)
    about(desk, "evil", 100)
    about(desk, "good", 4)
    names = [body["regarding"]["namespace"] for _, body in desk.drain()]
    assert (names.count("good"), names.count("evil"), desk.recorder.dropped) == (4, 6, {"full": 94})


def test_at_the_end_events_that_hang_keep_no_others_from_being_sent() -> None:
    desk, api = Desk(), Hanging()
    about(desk, "evil", 3)
    about(desk, "good", 3)

    async def farewell() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.0):
                await desk.recorder.drain(api)

    loop.run(farewell())
    assert api.heard == {"good": 0.0}
