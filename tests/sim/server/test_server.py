"""What only the embedded server can be asked: compaction, the clock, the token, its own mistakes."""

import json

import pytest

from kubenexus.sim.apiserver.store import Store
from tests.sim.server.server_fixture import PODS, ServerFixture, pod


def test_an_old_version_has_expired() -> None:
    server = ServerFixture(store=Store(log_length=3))
    version = server.do("GET", PODS)["metadata"]["resourceVersion"]
    first = server.do("POST", PODS, pod("a"))
    page = server.do("POST", PODS, pod("b")) and server.do("GET", f"{PODS}?limit=1")["metadata"]["continue"]
    for name in "cdefgh":
        server.do("POST", PODS, pod(name))
    events = server.watch(f"{PODS}?watch=1&resourceVersion={version}")
    assert [(each["type"], each["object"]["code"], each["object"]["reason"]) for each in events] == [
        ("ERROR", 410, "Expired")
    ]
    old = first["metadata"]["resourceVersion"]
    for query in (f"resourceVersion={old}&resourceVersionMatch=Exact", f"limit=1&continue={page}"):
        answer = server.ask("GET", f"{PODS}?{query}")
        assert (answer.code, json.loads(answer.body)["reason"]) == (410, "Expired")


def test_a_short_log_forgets_by_itself() -> None:
    server = ServerFixture(store=Store(log_length=5))
    version = server.do("GET", PODS)["metadata"]["resourceVersion"]
    for number in range(8):
        server.do("POST", PODS, pod(f"p{number}"))
    assert server.watch(f"{PODS}?watch=1&resourceVersion={version}")[0]["type"] == "ERROR"


def test_time_is_the_clocks() -> None:
    server = ServerFixture()
    made = server.do("POST", PODS, pod("a"))["metadata"]["creationTimestamp"]
    server.clock.advance(90)
    assert server.do("POST", PODS, pod("b"))["metadata"]["creationTimestamp"] != made
    table = server.do("GET", PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    ages = {row["cells"][0]: row["cells"][4] for row in table["rows"]}
    assert ages == {"a": "90s", "b": "0s"}


def test_the_same_seed_gives_the_same_cluster() -> None:
    first, second = ServerFixture(), ServerFixture()
    for server in (first, second):
        server.do("POST", PODS, {"metadata": {"generateName": "x-"}, "spec": pod("a")["spec"]})
    assert first.do("GET", PODS) == second.do("GET", PODS)


def test_without_the_token_nobody_comes_in() -> None:
    server = ServerFixture(token="secret")
    assert server.ask("GET", PODS).code == 401
    assert server.ask("GET", PODS, authorization="Bearer wrong").code == 401
    assert server.ask("GET", PODS, authorization="Bearer secret").code == 200
    assert server.ask("GET", "/healthz").code == 200


def test_a_mistake_of_ours_ends_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ServerFixture()
    monkeypatch.setattr(server.server._resources, "serve", lambda *_: 1 / 0)
    answer = server.ask("GET", PODS)
    assert (answer.code, json.loads(answer.body)["reason"]) == (500, "InternalError")


def test_an_event_is_written_once_for_all_who_watch() -> None:
    server = ServerFixture()
    lines: list[bytes] = []
    for _ in range(3):
        watch = server.ask("GET", f"{PODS}?watch=1").watch
        assert watch is not None
        watch.open(lines.append)
    server.do("POST", PODS, pod("a"))
    assert len(lines) == 3
    assert lines[0] is lines[1] is lines[2]


@pytest.mark.parametrize(
    ("accept", "kind", "first"),
    [
        pytest.param(
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            b"\x0a\x032.0\x12",
            id="kubectl reads protobuf before it creates an object of an unknown kind",
        ),
        pytest.param("application/json", "application/json", b'{"swagger":"2.0"', id="others read JSON"),
    ],
)
def test_openapi_v2_is_served(accept: str, kind: str, first: bytes) -> None:
    answer = ServerFixture().ask("GET", "/openapi/v2", accept=accept)
    assert (answer.code, answer.content_type) == (200, kind)
    assert answer.body.startswith(first)
