"""Bugs of other schedulers that begin at the client: nothing dropped, nothing invented, nothing reordered."""

import json

import pytest

from kubenexus.api.core import Pod
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError
from kubenexus.client.verbs import bind, delete
from kubenexus.client.watch_events import WatchEvent, decode_watch_lines, version_at_least
from kubenexus.client.watch_protocols import WatchTarget
from tests.client.cluster import STREAM, bookmark, event, following, page, pod, says
from tests.client.server import Talk, answering, calling, chunk, http, run, status


def test_f25_a_pod_recreated_under_its_name_is_two_changes_in_order() -> None:
    async def main() -> None:
        again = [event("DELETED", pod("a", 11, "u-1")), event("ADDED", pod("a", 12, "u-2"))]
        async with following([page(pod("a", 1, "u-1"))], [says(b"".join(again))]) as it:
            await it.until(lambda: it.reflector.version == "12")
            assert it.told.log[-1] == ["DELETED a", "ADDED a"]
            assert it.told.held["a"].metadata.uid == "u-2"

    run(main())


def test_f25_what_we_do_to_a_pod_is_never_done_to_its_successor() -> None:
    assert json.loads(bind("ns", "a", "u-1", "n").body)["metadata"]["uid"] == "u-1"
    assert json.loads(delete(kinds.PODS, "ns", "a", "u-1").body)["preconditions"] == {"uid": "u-1"}


def test_f27_a_pod_bound_by_somebody_else_is_a_conflict_and_not_sent_again() -> None:
    async def main() -> None:
        taken = http(status(409, "Conflict", "pod a is already assigned to node x"), "409 Conflict")
        async with calling(answering(then=taken)) as (client, served):
            with pytest.raises(ApiError, match="already assigned") as caught:
                await client.send(bind("ns", "a", "u-1", "n"))
            assert caught.value.reason == "Conflict"
            assert len(served.requests) == 1

    run(main())


def test_f39_a_change_of_something_never_seen_is_passed_on() -> None:
    async def main() -> None:
        foreign = event("MODIFIED", pod("foreign", 11, nodeName="n"))
        async with following([page()], [says(foreign)]) as it:
            await it.until(lambda: "foreign" in it.told.held)
            assert it.told.held["foreign"].spec.node_name == "n"

    run(main())


def test_f42_a_standby_that_was_cut_off_hears_the_same_as_the_leader() -> None:
    events = [event("ADDED", pod(f"p{i}", 20 + i)) for i in range(6)] + [event("DELETED", pod("p2", 40))]

    async def main() -> None:
        async with following([page(pod("a", 1))], [says(*events)]) as leader:
            cut_off = [says(*events[:3], end="half"), says(*events[3:5], end="reset"), says(*events[5:])]
            async with following([page(pod("a", 1))], cut_off) as standby:
                await leader.until(lambda: leader.reflector.version == "40")
                await standby.until(lambda: standby.reflector.version == "40")
                assert standby.told.held == leader.told.held
                assert standby.reflector.restarts == 2

    run(main())


def test_f59_pods_that_ran_to_their_end_are_not_even_asked_for() -> None:
    async def main() -> None:
        async with following([page()], [], target=WatchTarget(kinds.PODS, Pod, kinds.LIVE_PODS_FIELD_SELECTOR)) as it:
            await it.until(lambda: it.watches)
            assert all("Succeeded" in each["fieldSelector"] and "Failed" in each["fieldSelector"] for each in it.asked)

    run(main())


def test_f59_a_list_of_many_pages_is_handed_over_page_by_page() -> None:
    async def main() -> None:
        pages = [page(*(pod(f"p{n}-{i}", 1) for i in range(100)), more="x" if n < 29 else "") for n in range(30)]
        async with following(pages, []) as it:
            await it.until(lambda: it.reflector.synced)
            assert len(it.told.held) == 3000
            assert [len(each) for each in it.told.log if isinstance(each, list)] == [100] * 30

    run(main())


BAD = {
    "metadata": {"name": "bad", "namespace": "a", "resourceVersion": "12"},
    "spec": {"nodeName": "n", "priority": "x"},
}


@pytest.mark.parametrize(
    ("line", "name", "node"),
    [
        pytest.param(event("ADDED", BAD), "bad", "n", id="a field of the wrong type"),
        pytest.param(event("ADDED", {"metadata": {"namespace": "a"}}), "", "", id="no name"),
        pytest.param(b'{"type":"ADDED","object":null}\n', "", "", id="nothing"),
        pytest.param(
            b'{"type":"ADDED","object":{"metadata":{"name":"nan","namespace":"a"},"spec":{"nodeName":"n","priority":NaN}}}\n',
            "nan",
            "n",
            id="a number that is none",
        ),
        pytest.param(b'{"type":"ADDED","object":{"metadata":{"name":"cut"\n', "cut", "", id="half an object"),
        pytest.param(b"\xff\xfe what\n", "", "", id="not even a text"),
        pytest.param(
            b'{"type":"ADDED","object":{"metadata":{"name":"deep"},"x":' + b"[" * 9999 + b"]" * 9999 + b"}}\n",
            "deep",
            "",
            id="nested without end",
        ),
    ],
)
def test_f64_one_bad_object_is_passed_on_as_such_and_the_watch_goes_on(line: bytes, name: str, node: str) -> None:
    async def main() -> None:
        good = event("ADDED", pod("good", 13))
        async with following([page()], [says(line, good)]) as it:
            await it.until(lambda: "good" in it.told.held)
            (bad,) = it.told.unreadable
            assert (bad.kind, bad.name, bad.node) == ("Pod", name, node)
            assert bad.problem
            assert it.reflector.restarts == 0

    run(main())


def test_f64_one_bad_object_does_not_spoil_a_list() -> None:
    async def main() -> None:
        async with following([page(pod("a", 1), BAD, pod("b", 2))], []) as it:
            await it.until(lambda: it.reflector.synced)
            assert sorted(it.told.held) == ["a", "b"]
            assert [(bad.name, bad.node) for bad in it.told.unreadable] == [("bad", "n")]

    run(main())


def test_f66_a_reflector_nobody_knows_any_more_says_so() -> None:
    async def main() -> None:
        unknown = http(status(401, "Unauthorized", "Unauthorized"), "401 Unauthorized")
        async with following([page(), unknown], []) as it:
            await it.until(lambda: it.reflector.watching)
            it.reflector.relist()
            await it.until(lambda: it.told.troubles and it.told.troubles[-1].code == 401)
            assert it.reflector.last_error == "Unauthorized"
            assert not it.reflector.watching
            assert it.reflector._client.unauthorized_since is not None  # type: ignore[attr-defined]

    run(main())


def test_a_hundred_thousand_lines_are_not_a_hundred_thousand_steps() -> None:
    lines = [event("MODIFIED", pod("a", 100 + i))[:-1] for i in range(500)]
    batch = decode_watch_lines(lines, Pod)
    assert len(batch.changes) == 500
    assert batch.version == "599"
    assert isinstance(batch.changes[0], WatchEvent)


def test_a_bookmark_moves_the_version_and_nothing_else() -> None:
    batch = decode_watch_lines([bookmark(70)[:-1], b'{"type":"BOOKMARK","object":7}'], Pod)
    assert (batch.version, batch.changes, batch.bookmarked) == ("70", [], True)


@pytest.mark.parametrize(
    ("version", "moment", "reached"),
    [("10", "9", True), ("9", "10", False), ("9", "9", True), ("", "1", False), ("x", "x", False), ("5", "", False)],
)
def test_how_far_is_a_number_not_a_text(version: str, moment: str, reached: bool) -> None:
    assert version_at_least(version, moment) is reached


def test_a_watch_within_a_chunk_that_never_ends() -> None:
    async def main() -> None:
        async def one_huge_chunk(talk: Talk) -> None:
            lines = [event("ADDED", pod(f"p{i}", 20 + i)) for i in range(3)]
            await talk.say(STREAM + b"fffffff\r\n", *lines)
            await talk.gone()

        async with following([page()], [one_huge_chunk]) as it:
            await it.until(lambda: len(it.told.held) == 3)
            assert it.reflector.version == "22"
            assert chunk(b"x") == b"1\r\nx\r\n"

    run(main())
