"""What only the embedded server can be asked: compaction, the clock, the token, its own mistakes."""

import json

import pytest

from kubenexus.sim.apiserver.store import Store
from tests.sim.server.boxes import PODS, Box, pod


def test_an_old_version_has_expired() -> None:
    box = Box(store=Store(log_length=3))
    version = box.do("GET", PODS)["metadata"]["resourceVersion"]
    first = box.do("POST", PODS, pod("a"))
    page = box.do("POST", PODS, pod("b")) and box.do("GET", f"{PODS}?limit=1")["metadata"]["continue"]
    for name in "cdefgh":
        box.do("POST", PODS, pod(name))
    events = box.watch(f"{PODS}?watch=1&resourceVersion={version}")
    assert [(each["type"], each["object"]["code"], each["object"]["reason"]) for each in events] == [
        ("ERROR", 410, "Expired")
    ]
    old = first["metadata"]["resourceVersion"]
    for query in (f"resourceVersion={old}&resourceVersionMatch=Exact", f"limit=1&continue={page}"):
        answer = box.ask("GET", f"{PODS}?{query}")
        assert (answer.code, json.loads(answer.body)["reason"]) == (410, "Expired")


def test_a_short_log_forgets_by_itself() -> None:
    box = Box(store=Store(log_length=5))
    version = box.do("GET", PODS)["metadata"]["resourceVersion"]
    for number in range(8):
        box.do("POST", PODS, pod(f"p{number}"))
    assert box.watch(f"{PODS}?watch=1&resourceVersion={version}")[0]["type"] == "ERROR"


def test_time_is_the_clocks() -> None:
    box = Box()
    made = box.do("POST", PODS, pod("a"))["metadata"]["creationTimestamp"]
    box.clock.advance(90)
    assert box.do("POST", PODS, pod("b"))["metadata"]["creationTimestamp"] != made
    table = box.do("GET", PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    ages = {row["cells"][0]: row["cells"][4] for row in table["rows"]}
    assert ages == {"a": "90s", "b": "0s"}


def test_the_same_seed_gives_the_same_cluster() -> None:
    first, second = Box(), Box()
    for box in (first, second):
        box.do("POST", PODS, {"metadata": {"generateName": "x-"}, "spec": pod("a")["spec"]})
    assert first.do("GET", PODS) == second.do("GET", PODS)


def test_without_the_token_nobody_comes_in() -> None:
    box = Box(token="secret")
    assert box.ask("GET", PODS).code == 401
    assert box.ask("GET", PODS, authorization="Bearer wrong").code == 401
    assert box.ask("GET", PODS, authorization="Bearer secret").code == 200
    assert box.ask("GET", "/healthz").code == 200


def test_a_mistake_of_ours_ends_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box()
    monkeypatch.setattr(box.server._resources, "serve", lambda *_: 1 / 0)
    answer = box.ask("GET", PODS)
    assert (answer.code, json.loads(answer.body)["reason"]) == (500, "InternalError")


def test_an_event_is_written_once_for_all_who_watch() -> None:
    box = Box()
    lines: list[bytes] = []
    for _ in range(3):
        watch = box.ask("GET", f"{PODS}?watch=1").watch
        assert watch is not None
        watch.open(lines.append)
    box.do("POST", PODS, pod("a"))
    assert len(lines) == 3
    assert lines[0] is lines[1] is lines[2]
