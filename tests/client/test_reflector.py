"""A list that goes on as a watch: complete, in order, and going on whatever the server does."""

import asyncio
import random
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest

from kubenexus.api.codec import Unreadable
from kubenexus.api.core import Pod
from kubenexus.base.clock import VirtualClock
from kubenexus.client import kinds
from kubenexus.client.backoff import Backoff
from kubenexus.client.calls import ApiError, Call, Uncertain, Unreachable
from kubenexus.client.reflector import Reflector
from kubenexus.client.watch_protocols import LineStream, WatchTarget, WatchTiming
from tests.async_helpers import yield_to_loop
from tests.client.cluster import GONE, PODS, QUICK, Told, bookmark, event, following, page, pod, refuses, says
from tests.client.server import Talk, both_loops, http, run, status


class Noted:
    """A sleep that takes no time, and how long each was to be."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


@both_loops
def test_a_list_goes_on_as_a_watch(run) -> None:
    async def main() -> None:
        events = [event("ADDED", pod("c", 11)), event("MODIFIED", pod("a", 12)), event("DELETED", pod("b", 13))]
        async with following([page(pod("a", 1), pod("b", 2))], [says(*events)]) as it:
            await it.until(lambda: it.reflector.version == "13")
            assert sorted(it.told.held) == ["a", "c"]
            assert it.told.log[:3] == ["begin", ["a", "b"], "end"]
            assert [each for batch in it.told.log[3:] for each in batch] == ["ADDED c", "MODIFIED a", "DELETED b"]
            first, watch = it.asked
            assert first == {"limit": "500"}
            seconds = int(watch.pop("timeoutSeconds"))
            assert 300 <= seconds <= 600
            assert watch == {"watch": "1", "resourceVersion": "10", "allowWatchBookmarks": "true"}
            state = it.reflector
            assert state.synced
            assert state.watching
            assert state.last_event_at > 0
            assert (state.last_error, state.restarts) == ("", 0)

    run(main())


def test_what_is_in_the_buffer_is_handed_over_at_once() -> None:
    async def all_at_once(talk: Talk) -> None:
        everything = b"".join(event("ADDED", pod(f"p{i}", 20 + i)) for i in range(300))
        await talk.say(b"HTTP/1.1 200 OK\r\n\r\n" + everything)
        await talk.gone()

    async def main() -> None:
        async with following([page()], [all_at_once]) as it:
            await it.until(lambda: len(it.told.held) == 300)
            batches = [len(each) for each in it.told.log if isinstance(each, list) and each]
            assert max(batches) > 50
            assert max(batches) <= 256, "but not so many that the loop stands still"

    run(main())


def test_pages_are_turned_until_the_list_is_complete() -> None:
    async def main() -> None:
        pages = [page(pod("a", 1), more="x/="), page(pod("b", 2), more="y"), page(pod("c", 3), version=10)]
        async with following(pages, [], timing=msgspec.structs.replace(QUICK, page=1)) as it:
            await it.until(lambda: it.reflector.synced)
            assert it.told.log == ["begin", ["a"], ["b"], ["c"], "end"]
            assert it.asked[:3] == [{"limit": "1"}, {"limit": "1", "continue": "x/="}, {"limit": "1", "continue": "y"}]

    run(main())


def test_the_next_page_is_asked_for_while_this_one_is_told() -> None:
    class Pages:
        """Two pages, one object each."""

        asked = 0

        async def send(self, call: Call, **_: Any) -> bytes:
            self.asked += 1
            more = "x" if self.asked == 1 else ""
            return page(pod(f"p{self.asked}", self.asked), more=more).partition(b"\r\n\r\n")[2]

        async def stream(self, path: str, **_: Any) -> LineStream:
            raise Unreachable("there is no watch here")

    class Counting(Told):
        def list_page(self, items: list[Any], unreadable: tuple[Unreadable, ...]) -> None:
            super().list_page(items, unreadable)
            self.log.append(source.asked)

    source, told = Pages(), Counting()
    run(Reflector(source, PODS, told, clock=VirtualClock(), rng=random.Random(1)).step())
    assert told.log == ["begin", ["p1"], 2, ["p2"], 2, "end"]


def test_pages_that_are_too_long_to_be_read_become_smaller() -> None:
    class LargeObjects:
        """Eighty pods of which 31 are as much as an answer may hold."""

        def __init__(self) -> None:
            self.limits: list[int] = []

        async def send(self, call: Call, **_: Any) -> bytes:
            asked = parse_qs(call.path.partition("?")[2])
            self.limits.append(int(asked["limit"][0]))
            if self.limits[-1] > 31:
                raise Uncertain("the body of the answer is longer than 536870912 bytes")
            first = int(asked.get("continue", ["0"])[0])
            last = min(first + self.limits[-1], 80)
            pods = [pod(f"p{i}", i + 1) for i in range(first, last)]
            return page(*pods, more=str(last) if last < 80 else "").partition(b"\r\n\r\n")[2]

        async def stream(self, path: str, **_: Any) -> LineStream:
            raise Unreachable("there is no watch here")

    async def no_wait(seconds: float) -> None: ...

    async def main() -> None:
        source, told = LargeObjects(), Told()
        reflector = Reflector(source, PODS, told, clock=VirtualClock(), rng=random.Random(1), sleep=no_wait)
        for _ in range(20):
            await reflector.step()
            if reflector.synced:
                break
        assert source.limits == [500, 125, 31, 31, 31]
        assert reflector.synced
        assert len(told.held) == 80

    run(main())


def test_after_a_page_of_large_objects_fewer_are_asked_for() -> None:
    async def main() -> None:
        large = pod("a", 1) | {"spec": {"note": "x" * 3_000_000}}
        async with following([page(large, more="x"), page(pod("b", 2))], []) as it:
            await it.until(lambda: it.reflector.synced)
            assert it.asked[:2] == [{"limit": "500"}, {"limit": "5", "continue": "x"}]

    run(main())


def test_pages_that_grew_too_old_are_listed_anew_as_a_whole() -> None:
    async def main() -> None:
        pages = [page(pod("a", 1), more="x"), GONE, page(pod("b", 2))]
        async with following(pages, []) as it:
            await it.until(lambda: it.reflector.synced)
            assert it.told.log == ["begin", ["a"], "begin", ["b"], "end"]
            assert list(it.told.held) == ["b"]
            assert it.asked[2] == {}, "no pages, so that none can grow old"

    run(main())


def test_a_watch_the_server_ends_goes_on_at_once_where_it_was() -> None:
    async def main() -> None:
        watches = [says(event("ADDED", pod("b", 12)), end="end"), says(bookmark(40), end="end"), says()]
        async with following([page()], watches) as it:
            await it.until(lambda: len(it.watches) == 3)
            assert [each["resourceVersion"] for each in it.watches] == ["10", "12", "40"]
            assert it.reflector.restarts == 0
            assert it.told.log.count("begin") == 1

    run(main())


@pytest.mark.parametrize("end", ["reset", "half"])
@both_loops
def test_a_watch_that_breaks_goes_on_after_its_last_whole_line(run, end: str) -> None:
    async def main() -> None:
        async with following([page()], [says(event("ADDED", pod("b", 12)), end=end)]) as it:
            await it.until(lambda: len(it.watches) == 2)
            assert it.watches[1]["resourceVersion"] == "12"
            assert it.reflector.restarts == 1
            assert list(it.told.held) == ["b"]
            assert it.told.log.count("begin") == 1

    run(main())


def test_what_is_being_sent_when_a_watch_breaks_comes_again() -> None:
    async def main() -> None:
        again = [says(event("ADDED", pod("b", 12)), end="half"), says(event("ADDED", pod("c", 13)))]
        async with following([page()], again) as it:
            await it.until(lambda: "c" in it.told.held)
            assert sorted(it.told.held) == ["b", "c"]

    run(main())


@pytest.mark.parametrize(
    "expired",
    [
        pytest.param(refuses(GONE), id="when the watch is asked for"),
        pytest.param(
            says(event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})),
            id="in the middle of it",
        ),
        pytest.param(says(event("ERROR", {"kind": "Status", "reason": "Gone"})), id="by its reason alone"),
    ],
)
def test_too_old_means_a_new_list(expired) -> None:
    async def main() -> None:
        async with following([page(pod("a", 1)), page(pod("b", 20), version=30)], [expired]) as it:
            await it.until(lambda: len(it.watches) == 2)
            assert list(it.told.held) == ["b"], "a deletion that was missed is found"
            assert it.watches[1]["resourceVersion"] == "30"
            assert it.told.troubles == []

    run(main())


def test_too_old_again_and_again_is_not_asked_without_pause() -> None:
    sleep = Noted()

    async def main() -> None:
        async with following([page()], [refuses(GONE)] * 5, sleep=sleep) as it:
            await it.until(lambda: len(sleep.waits) >= 4)
        assert sleep.waits[0] == 0
        assert sleep.waits[1] > 0
        assert sleep.waits[3] > sleep.waits[1]

    run(main())


@pytest.mark.parametrize(
    "earlier",
    [
        pytest.param([bookmark(7)], id="by a bookmark"),
        pytest.param([event("ADDED", pod("x", 7))], id="by an event"),
        pytest.param([event("ADDED", pod("x", 14)) + event("MODIFIED", pod("x", 9))], id="from one event to the next"),
        pytest.param(
            [event("ERROR", {"kind": "Status", "code": 504, "message": "Too large resource version: 10, current: 7"})],
            id="by its own word",
        ),
    ],
)
def test_a_server_that_goes_back_is_listed_once(earlier: list[bytes]) -> None:
    async def main() -> None:
        async with following([page(pod("a", 1)), page(pod("b", 3), version=8)], [says(*earlier)]) as it:
            await it.until(lambda: len(it.watches) == 2)
            assert it.told.log == ["begin", ["a"], "end", "begin", ["b"], "end"], "nothing of the watch was believed"
            assert it.watches[1]["resourceVersion"] == "8"
            assert it.reflector.rewinds == 1
            said = ["the server went back from resourceVersion 10 to 8; listed again", ""]
            assert [each.text for each in it.told.troubles] == said

    run(main())


def test_a_server_that_goes_back_again_and_again_is_not_asked_without_pause() -> None:
    sleep = Noted()

    async def main() -> None:
        async with following([page()], [says(bookmark(7))] * 5, sleep=sleep) as it:
            await it.until(lambda: len(sleep.waits) >= 4)
        assert sleep.waits[0] == 0
        assert 0 < sleep.waits[1] < sleep.waits[3]

    run(main())


@pytest.mark.parametrize(
    ("end", "asked"),
    [
        pytest.param("reset", True, id="after a watch that broke"),
        pytest.param("end", True, id="after a watch without a word"),
        pytest.param("bookmark", False, id="not after one that told how far the server is"),
    ],
)
def test_a_server_is_asked_whether_it_is_as_far_as_the_last_watch(end: str, asked: bool) -> None:
    too_large = http(status(504, "Timeout", "Timeout: Too large resource version: 10, current: 7"), "504 X")
    watch = says(bookmark(10), end="end") if end == "bookmark" else says(end=end)

    async def main() -> None:
        async with following([page(pod("a", 1)), too_large, page(pod("b", 3), version=8)], [watch]) as it:
            await it.until(lambda: len(it.watches) == 2)
            question = {"limit": "1", "resourceVersion": "10", "resourceVersionMatch": "NotOlderThan"}
            assert (question in it.asked) is asked
            assert list(it.told.held) == (["b"] if asked else ["a"])
            assert it.reflector.rewinds == asked

    run(main())


def test_a_gateway_that_is_late_does_not_cost_a_list() -> None:
    async def main() -> None:
        late = http(b"upstream request timeout", "504 Gateway Timeout")
        async with following([page(pod("a", 1)), late, page()], [says(end="reset")]) as it:
            await it.until(lambda: len(it.watches) == 2)
            assert it.told.log.count("begin") == 1
            assert it.watches[1]["resourceVersion"] == "10"

    run(main())


def test_an_error_in_a_watch_is_told_once_and_its_end_too() -> None:
    async def main() -> None:
        broken = says(event("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError", "message": "etcd"}))
        async with following([page()], [broken, broken, says(bookmark(50))]) as it:
            await it.until(lambda: it.reflector.version == "50")
            assert [(each.code, each.text) for each in it.told.troubles] == [(500, "etcd"), (0, "")]
            assert it.reflector.last_error == ""

    run(main())


def test_a_watch_that_falls_silent_is_dropped_when_its_time_is_over() -> None:
    async def main() -> None:
        timing = msgspec.structs.replace(QUICK, shortest=0.01, longest=0.02, grace=0.01)
        async with following([page()], [], timing=timing) as it:
            await it.until(lambda: len(it.watches) >= 2)
            assert it.watches[1]["resourceVersion"] == "10"
            assert it.told.troubles[0].text == "the watch fell silent and was dropped"

    run(main())


def test_a_watch_that_had_bookmarks_is_dropped_sooner() -> None:
    async def main() -> None:
        timing = msgspec.structs.replace(QUICK, silence=0.01)
        async with following([page()], [says(bookmark(20))], timing=timing) as it:
            await it.until(lambda: len(it.watches) >= 2)
            assert it.watches[1]["resourceVersion"] == "20"

    run(main())


def test_watches_that_end_at_once_without_a_word_are_a_failure() -> None:
    async def main() -> None:
        timing = msgspec.structs.replace(QUICK, short=1.0)
        async with following([page()], [says(end="end")], timing=timing, clock=VirtualClock(5.0)) as it:
            await it.until(lambda: len(it.watches) == 2)
            assert it.reflector.restarts == 1
            assert it.told.troubles[0].text == "the watch ended at once, without a word"

    run(main())


def test_a_kind_that_is_not_served_is_told_once_and_found_later() -> None:
    async def main() -> None:
        missing = http(b"404 page not found\n", "404 Not Found")
        target = WatchTarget(kinds.POD_GROUPS, Pod, fallback_resources=(kinds.POD_GROUPS_ALPHA,))
        async with following([missing] * 5 + [page(pod("g", 3))], [], target=target) as it:
            await it.until(lambda: it.reflector.synced)
            assert not it.reflector.served
            assert it.told.log == ["begin", "end"], "there are none: whoever waits for this kind need not"
            await it.until(lambda: it.reflector.served)
            assert it.told.held.keys() == {"g"}
            assert [each.code for each in it.told.troubles] == [404, 0]
            assert it.reflector.resource is kinds.POD_GROUPS_ALPHA, "the forms are tried in turn"

    run(main())


def test_a_server_that_does_not_know_pods_for_a_moment_has_not_lost_them() -> None:
    async def main() -> None:
        missing = refuses(http(b"404 page not found\n", "404 Not Found"))
        async with following([page(pod("a", 1))], [missing] * 8 + [says(bookmark(60))]) as it:
            await it.until(lambda: it.reflector.version == "60")
            assert list(it.told.held) == ["a"]
            assert it.told.log.count("begin") == 1

    run(main())


def test_a_kind_that_is_removed_is_believed_after_some_time() -> None:
    async def main() -> None:
        missing = http(b"404 page not found\n", "404 Not Found")
        target = WatchTarget(kinds.POD_GROUPS, Pod)
        async with following([page(pod("g", 1)), missing], [refuses(missing)] * 9, target=target) as it:
            await it.until(lambda: not it.reflector.served)
            assert it.told.held == {}
            assert it.reflector.restarts >= 5

    run(main())


def test_forbidden_is_told_clearly_and_asked_again_slowly() -> None:
    sleep = Noted()

    async def main() -> None:
        text = "pods is forbidden: User x cannot list resource pods"
        refused = http(status(403, "Forbidden", text), "403 Forbidden")
        async with following([refused] * 3 + [page()], [], timing=WatchTiming(), sleep=sleep) as it:
            await it.until(lambda: it.reflector.synced)
            assert [(each.code, each.text) for each in it.told.troubles] == [(403, text), (0, "")]
        assert all(15 <= wait <= 30 for wait in sleep.waits[:3])

    run(main())


class Restarted:
    """A server that answers one list, and then each call with the next of some errors. The last repeats."""

    def __init__(self, errors: list[Exception]) -> None:
        self._errors: list[Exception] = errors
        self._listed = False

    async def send(self, call: Call, **_: Any) -> bytes:
        if not self._listed:
            self._listed = True
            return page(pod("a", 1)).partition(b"\r\n\r\n")[2]
        raise self._errors.pop(0) if len(self._errors) > 1 else self._errors[0]

    async def stream(self, path: str, **_: Any) -> LineStream:
        raise self._errors.pop(0) if len(self._errors) > 1 else self._errors[0]


@pytest.mark.parametrize(
    "away",
    [pytest.param(0, id="the watch ended"), pytest.param(9, id="after an outage that raised the backoff to its limit")],
)
def test_a_403_on_a_kind_that_was_listed_is_doubted_for_a_minute(away: int) -> None:
    """A kube-apiserver that starts answers 403 until it has read the RBAC rules."""
    clock, waits = VirtualClock(), list[float]()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)
        await asyncio.sleep(0)

    async def main() -> None:
        outage: list[Exception] = [Unreachable("connection refused") for _ in range(away)]
        source = Restarted([*outage, ApiError(403, "Forbidden", "pods is forbidden")])
        reflector = Reflector(source, PODS, Told(), clock=clock, rng=random.Random(1), sleep=sleep)
        for _ in range(1 + away + 20):
            await reflector.step()
        soon, slow = waits[away : away + 5], [each for each in waits[away:] if each > 10.0]
        assert sum(soon[:3]) < 4.0, "the backoff begins anew"
        assert all(each <= 10.0 for each in soon)
        first = waits.index(slow[0])
        assert sum(waits[away:first]) >= 60.0
        assert all(15.0 <= each <= 30.0 for each in waits[first:])

    run(main())


@pytest.mark.parametrize("code", [410, 504], ids=["too old", "too new for a server whose watch cache is empty"])
def test_after_an_outage_a_version_that_the_server_refuses_is_listed_at_once(code: int) -> None:
    """Not after the backoff that the outage has raised. If it happens again and again, it is a failure."""
    waits = list[float]()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    async def main() -> None:
        outage: list[Exception] = [Unreachable("connection refused") for _ in range(9)]
        source = Restarted([*outage, ApiError(code, "Expired", "Too large resource version: 10, current: 3")])
        reflector = Reflector(source, PODS, Told(), clock=VirtualClock(), rng=random.Random(1), sleep=sleep)
        for _ in range(1 + 9 + 3):
            await reflector.step()
        assert all(wait > 0 for wait in waits[:9])
        assert waits[9] == 0.0
        assert all(wait >= 5.0 for wait in waits[10:])

    run(main())


def test_a_watch_that_stays_open_ends_the_count_of_failures() -> None:
    """Though nothing happens in it: the next failure gets the shortest wait, not the one of an outage before."""

    async def main() -> None:
        broken = refuses(http(status(500, "InternalError", "no"), "500 X"))
        async with following([page()], [broken] * 4 + [refuses(GONE), says()]) as it:
            await it.until(lambda: len(it.watches) == 6)
            await it.until(lambda: it.reflector._backoff.failures == 0)
            assert it.reflector.watching

    run(main())


def test_the_wait_after_failures_grows_is_spread_and_is_bounded() -> None:
    waits = [Backoff(random.Random(seed), 0.5, 10.0) for seed in range(20)]
    first = {backoff.next() for backoff in waits}
    assert len(first) == 20
    assert all(0.25 <= wait <= 0.5 for wait in first)
    for backoff in waits:
        several = [backoff.next() for _ in range(100)]
        assert all(5.0 <= wait <= 10.0 for wait in several[5:])
        backoff.reset()
        assert backoff.next() <= 0.5


@pytest.mark.parametrize(
    ("error", "helps"),
    [
        pytest.param(Unreachable("connection refused"), True, id="no answer"),
        pytest.param(ApiError(503, message="busy"), True, id="an answer of a server that is not well"),
        pytest.param(ApiError(503, message="busy", retry_after=60.0), False, id="the server says for how long"),
        pytest.param(ApiError(403, message="forbidden"), True, id="a server that may not have read its RBAC rules yet"),
        pytest.param(ApiError(401, message="Unauthorized"), True, id="or its service accounts"),
        pytest.param(ApiError(422, message="invalid"), False, id="the server has refused"),
    ],
)
def test_a_wait_for_a_server_that_answers_others_is_cut_short_once_in_a_while(error: Exception, helps: bool) -> None:
    class Away:
        asked = 0

        async def send(self, call: Call, **_: Any) -> bytes:
            self.asked += 1
            raise error

        async def stream(self, path: str, **_: Any) -> LineStream:
            raise error

    async def for_ever(seconds: float) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        source, clock = Away(), VirtualClock()
        reflector = Reflector(source, PODS, Told(), clock=clock, rng=random.Random(1), sleep=for_ever)
        task, asked = asyncio.ensure_future(reflector.run()), list[int]()
        for passed in (0.0, 0.0, 4.9, 0.2):
            await yield_to_loop()
            clock.advance(passed)
            reflector.retry()
            await yield_to_loop()
            asked.append(source.asked)
        assert asked == ([2, 2, 2, 3] if helps else [1, 1, 1, 1])
        task.cancel()

    run(main())


def test_how_long_the_server_asks_to_wait_is_respected() -> None:
    sleep = Noted()

    async def main() -> None:
        busy = http(status(503, "ServiceUnavailable", "starting"), "503 X", Retry_After="7")
        async with following([busy, page()], [], sleep=sleep) as it:
            await it.until(lambda: it.reflector.synced)
        assert sleep.waits[0] == 7.0

    run(main())


def test_a_selection_holds_for_the_list_and_for_the_watch() -> None:
    async def main() -> None:
        fields = "status.phase!=Succeeded,status.phase!=Failed"
        async with following([page()], [], target=WatchTarget(kinds.PODS, Pod, fields)) as it:
            await it.until(lambda: len(it.watches) == 1)
            assert [each["fieldSelector"] for each in it.asked] == [fields, fields]

    run(main())


@both_loops
def test_a_line_of_five_megabytes(run) -> None:
    async def main() -> None:
        big = pod("big", 11)
        big["metadata"]["annotations"] = {"x": "y" * 5_000_000}
        async with following([page()], [says(event("ADDED", big), event("ADDED", pod("small", 12)))]) as it:
            await it.until(lambda: len(it.told.held) == 2)
            assert len(it.told.held["big"].metadata.annotations["x"]) == 5_000_000
            assert it.reflector.restarts == 0

    run(main())


def test_what_a_receiver_gets_wrong_is_not_hidden() -> None:
    async def main() -> None:
        async with following([page(pod("a", 1))], []) as it:

            def broken() -> None:
                raise ZeroDivisionError

            it.told.list_finished = broken  # type: ignore[method-assign]
            await it.until(lambda: it.watches)

    with pytest.raises(ZeroDivisionError):
        run(main())


def test_two_reflectors_of_one_seed_ask_for_the_same() -> None:
    async def lengths(seed: int) -> list[str]:
        async with following([page()], [says(bookmark(20 + i), end="end") for i in range(4)], seed=seed) as it:
            await it.until(lambda: len(it.watches) == 5)
            return [each["timeoutSeconds"] for each in it.watches]

    async def main() -> None:
        assert await lengths(3) == await lengths(3)
        assert len(set(await lengths(3))) > 1

    run(main())


def test_a_list_without_a_version_is_not_watched_from_nowhere() -> None:
    async def main() -> None:
        async with following([http(b'{"kind":"PodList","metadata":{},"items":[]}'), page()], []) as it:
            await it.until(lambda: it.reflector.synced)
            assert it.told.troubles[0].text == "list of pods: metadata: has no resourceVersion"

    run(main())


@pytest.mark.parametrize("body", [b'{"kind":"Status","code":500}', b"[]", b"nothing"])
def test_what_is_no_list_is_not_taken_for_an_empty_cluster(body: bytes) -> None:
    async def main() -> None:
        async with following([page(pod("a", 1)), http(body), page(pod("a", 1))], [refuses(GONE)]) as it:
            await it.until(lambda: len(it.watches) == 2)
            assert list(it.told.held) == ["a"]
            assert it.told.log.count("begin") == 2

    run(main())
