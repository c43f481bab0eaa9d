"""The live API over a real socket: what it answers, in copies of the process, and to whom."""

import asyncio
import json

import pytest

from kubenexus.app.http.api import routes, state_copies
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_pod
from tests.app.api_fixture import LOCAL, OURS, ApiFixture, served
from tests.async_helpers import HANGS, yield_to_loop

READ = [
    "/api/v1/explain?namespace=ml&name=train",
    "/api/v1/eta?namespace=ml",
    "/api/v1/jobs?namespace=ml",
    "/api/v1/queues?namespace=ml",
    "/api/v1/gangs?namespace=ml",
    "/api/v1/map?namespace=ml",
    "/api/v1/nodes",
    "/api/v1/devices",
    "/api/v1/decisions?namespace=ml",
]
A_POD = """
apiVersion: v1
kind: Pod
metadata: {name: next}
spec:
  schedulerName: kubenexus-scheduler
  containers: [{name: main, resources: {requests: {cpu: "2"}}}]
"""


# --- what it answers ------------------------------------------------------------------------------------------------


def test_it_says_why_a_pod_waits_and_what_would_help_and_changes_nothing() -> None:
    async def story(api: ApiFixture) -> None:
        before = digest(api.fixture.ledger)
        reply = await api.get("/api/v1/explain?namespace=ml&name=train")
        assert reply.status == 200, reply.text
        said = reply.json()
        assert said["pod"] == "ml/train"
        assert not said["placed"]
        assert said["message"].startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable")
        assert "node cordoned-node is uncordoned" in [each["text"] for each in said["starts_if"]["suggestions"]]
        assert said["explanation"]["decision"]["job"] == "ml/train"
        assert digest(api.fixture.ledger) == before
        assert api.fixture.queue.state("ml/train").value == "unschedulable"

    served(story)


def test_it_says_what_would_become_of_a_manifest_without_submitting_it() -> None:
    async def story(api: ApiFixture) -> None:
        wanted = {"manifest": A_POD, "uncordon": ["cordoned-node"]}
        reply = await api.post("/api/v1/whatif?namespace=ml", wanted)
        assert reply.status == 200, reply.text
        (job,) = reply.json()["jobs"]
        assert job["nodes"] == {"ml/next": "cordoned-node"}
        assert (await api.post("/api/v1/whatif?namespace=ml", {"manifest": A_POD})).json()["jobs"][0]["nodes"] == {}

    served(story)


def test_pages_name_jobs_queues_nodes_and_devices() -> None:
    async def story(api: ApiFixture) -> None:
        (job,) = (await api.get("/api/v1/jobs")).json()["items"]
        assert (job["name"], job["namespace"], job["state"], job["pods"]) == ("ml/train", "ml", "unschedulable", 1)
        assert job["why"].startswith("0/2 nodes are available")
        (queue,) = (await api.get("/api/v1/queues")).json()["items"]
        assert (queue["namespace"], queue["unschedulable"], queue["pods"]) == ("ml", 1, 1)
        first = (await api.get("/api/v1/nodes?limit=1")).json()
        assert (first["items"][0]["name"], first["items"][0]["cordoned"]) == ("cordoned-node", True)
        second = (await api.get(f"/api/v1/nodes?limit=1&continue={first['next']}")).json()
        (node,) = second["items"]
        assert (node["name"], node["pods"], second["next"]) == ("secret-node", 1, "")
        assert {"name": "cpu", "allocatable": 2000, "used": 2000} in node["resources"]
        assert (await api.get("/api/v1/devices")).json() == {"items": [], "next": ""}

    served(story)


def test_the_map_has_nodes_and_what_holds_them_and_names_no_job_of_another_namespace() -> None:
    async def story(api: ApiFixture) -> None:
        found = (await api.get("/api/v1/map")).json()
        assert found["names"] == ["cordoned-node", "secret-node"]
        assert (found["states"], found["gpus"], found["cpu"]) == ([1, 0], [0, 0], [0, 1000])
        assert found["cells"] == [-1] * 8 + [0] * 8
        assert found["owners"] == [{"kind": "pod", "namespace": "web", "name": "shop", "tenant": "web"}]
        hidden = await api.get("/api/v1/map?namespace=ml")
        assert hidden.json()["owners"] == [{"kind": "", "namespace": "", "name": "", "tenant": ""}]
        assert "shop" not in hidden.text

    served(story)


def test_a_large_answer_is_compressed_for_clients_that_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "PACKED_FROM", 100)

    async def story(api: ApiFixture) -> None:
        plain = await api.get("/api/v1/map", **{"Accept-Encoding": "identity, gzip;q=0"})
        packed = await api.get("/api/v1/map", **{"Accept-Encoding": "br, gzip"})
        assert [each.headers.get("Content-Encoding") for each in (plain, packed)] == [None, "gzip"]
        assert plain.json() == packed.json()

    served(story)


def test_gangs_are_listed_with_the_reason_why_they_wait() -> None:
    async def story(api: ApiFixture) -> None:
        labels = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "2"}
        api.fixture.pods(*(a_pod(f"g{i}", namespace="ml", cpu=2, labels=labels, scheduler_name=OURS) for i in range(2)))
        await api.fixture.work()
        (gang,) = (await api.get("/api/v1/gangs?namespace=ml", "member")).json()["items"]
        assert [gang[name] for name in ("name", "members", "minimum", "placed", "state")] == ["g", 2, 2, 0, "Pending"]
        assert "0 of at least 2 members fit" in gang["why"]
        (alone,) = (await api.get("/api/v1/gangs?namespace=ml&name=g", "member")).json()["items"]
        assert alone["nodes"] == {"ml/g0": "", "ml/g1": ""}

    served(story)


def test_decisions_are_listed_and_followed() -> None:
    async def story(api: ApiFixture) -> None:
        listed = (await api.get("/api/v1/decisions")).json()["items"]
        assert [(each["job"], each["outcome"]) for each in listed] == [("web/shop", "placed"), ("ml/train", "waits")]
        assert listed[0]["nodes"] == {"web/shop": "secret-node"}
        url = f"http://{LOCAL}:{api.port}/api/v1/decisions?namespace=ml&follow=1"
        assert api.session is not None
        async with api.session.get(url, headers={"Authorization": "Bearer member"}) as stream:
            assert stream.headers["Content-Type"] == "text/event-stream"
            api.fixture.pods(
                a_pod("other", namespace="web", cpu=9, scheduler_name=OURS),
                a_pod("late", namespace="ml", cpu=7, scheduler_name=OURS),
            )
            await api.fixture.work()
            lines = [await stream.content.readline() for _ in range(3)]
        assert lines[:2] == [b"id: 4\n", b"event: decision\n"]
        assert json.loads(lines[2].removeprefix(b"data: "))["job"] == "ml/late"

    served(story)


# --- to whom --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", READ)
def test_nothing_is_said_without_a_token_or_with_a_wrong_one_or_to_a_stranger(path: str) -> None:
    async def story(api: ApiFixture) -> None:
        replies = [await api.get(path, token) for token in ("", "made up", "stranger")]
        assert [each.status for each in replies] == [403, 401, 403]
        for reply in replies:
            assert "node" not in reply.text.replace("nodes", "")
            assert "train" not in reply.text
        assert api.live.copies is not None
        assert api.live.copies.copies == 0, "no work is done for them"

    served(story)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/explain?namespace=web&name=shop", 403),
        ("/api/v1/jobs?namespace=web", 403),
        ("/api/v1/jobs", 403),
        ("/api/v1/queues", 403),
        ("/api/v1/gangs", 403),
        ("/api/v1/gangs?namespace=web", 403),
        ("/api/v1/gangs?namespace=ml", 200),
        ("/api/v1/map", 403),
        ("/api/v1/map?namespace=ml", 403),
        ("/api/v1/nodes", 403),
        ("/api/v1/devices", 403),
        ("/api/v1/decisions", 403),
        ("/api/v1/decisions?follow=1", 403),
        ("/api/v1/jobs?namespace=ml", 200),
    ],
)
def test_a_member_of_one_namespace_sees_that_one(path: str, status: int) -> None:
    async def story(api: ApiFixture) -> None:
        reply = await api.get(path, "member")
        assert reply.status == status, reply.text
        assert "shop" not in reply.text.removeprefix(path)

    served(story)


def test_a_reader_who_may_not_list_nodes_gets_an_explanation_without_them() -> None:
    async def story(api: ApiFixture) -> None:
        reply = await api.get("/api/v1/explain?namespace=ml&name=train", "member")
        assert reply.status == 200
        assert reply.json()["message"].startswith("0/2 nodes are available")
        assert reply.json()["explanation"] is None
        assert "secret-node" not in reply.text
        assert "cordoned-node" not in reply.text
        assert "shop" not in reply.text

    served(story)


def test_what_happens_to_pods_of_other_namespaces_is_counted_and_not_named() -> None:
    async def story(api: ApiFixture) -> None:
        api.reviews.may.add(("member", "list", "nodes in *"))
        urgent = A_POD.replace("spec:", "spec:\n  priority: 1000")
        reply = await api.post("/api/v1/whatif?namespace=ml", {"manifest": urgent}, "member")
        assert reply.status == 200, reply.text
        assert reply.json()["hidden_evictions"] == 1
        assert "shop" not in reply.text
        everything = await api.post("/api/v1/whatif?namespace=ml", {"manifest": urgent})
        assert everything.json()["jobs"][0]["evicts"] == ["web/shop"]
        other = A_POD.replace("name: next", "name: next, namespace: web")
        assert (await api.post("/api/v1/whatif?namespace=ml", {"manifest": other}, "member")).status == 403
        assert (await api.post("/api/v1/whatif?namespace=web", {"manifest": A_POD}, "member")).status == 403
        assert (await api.post("/api/v1/whatif?namespace=ml", {"manifest": A_POD}, "stranger")).status == 403
        removed = await api.post("/api/v1/whatif?namespace=ml", {"removeNodes": ["secret-node"]}, "member")
        assert (removed.json()["hidden_jobs"], "shop" in removed.text) == (1, False)

    served(story)


# --- hostile clients ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/explain?namespace=ml&name=..%2F..%2Fetc%2Fpasswd", 400),
        ("/api/v1/explain?namespace=..&name=train", 400),
        ("/api/v1/explain?namespace=ml&name=<script>alert(1)</script>", 400),
        ("/api/v1/explain?namespace=ml&name=train&name=other", 400),
        ("/api/v1/explain?namespace=ml&name=" + "x" * 300, 400),
        ("/api/v1/explain?namespace=ml&name=train%00", 400),
        ("/api/v1/explain?namespace=ml&name=train&kind=a%0Ab", 400),
        ("/api/v1/explain?namespace=ml&name=nothing-like-it", 404),
        ("/api/v1/explain?namespace=ml", 400),
        ("/api/v1/nodes?limit=0", 400),
        ("/api/v1/nodes?limit=501", 400),
        ("/api/v1/nodes?limit=%D9%A3", 400),
        ("/api/v1/nodes?secret=1", 400),
    ],
)
def test_hostile_parameters_are_refused(path: str, status: int) -> None:
    async def story(api: ApiFixture) -> None:
        reply = await api.get(path)
        assert reply.status == status, reply.text
        assert reply.headers["Content-Type"].startswith("application/json")
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.json()["code"] == status

    served(story)


@pytest.mark.parametrize(
    "path", ["/api/v1/../../etc/passwd", "/api/v1/explain/../../x", "/api/v1/%2e%2e/x", "/api/v1/"]
)
def test_there_are_no_other_paths(path: str) -> None:
    async def story(api: ApiFixture) -> None:
        reader, writer = await asyncio.open_connection(LOCAL, api.port)
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        status = (await reader.read()).split()[1]
        writer.close()
        assert status in (b"403", b"404")

    served(story)


def test_a_manifest_of_10_mb_is_refused_and_so_is_one_that_expands_to_gigabytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_copies, "MAX_MEMORY", 64 << 20)

    async def story(api: ApiFixture) -> None:
        large = await api.post("/api/v1/whatif?namespace=ml", {"manifest": "x" * (10 << 20)})
        assert large.status == 413
        levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
        bomb = "kind: Pod\na0: &a0 [x]\n" + "\n".join(levels)
        reply = await api.post("/api/v1/whatif?namespace=ml", {"manifest": bomb})
        assert reply.status in (400, 500, 504), reply.text
        assert (await api.post("/api/v1/whatif?namespace=ml", b"{not json")).status == 400
        assert (await api.post("/api/v1/whatif?namespace=ml", {"manifest": "a: [1"})).status == 400
        assert (await api.get("/api/v1/jobs")).status == 200

    served(story)


def test_a_body_that_comes_too_slowly_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "BODY_SECONDS", 0.05)

    async def story(api: ApiFixture) -> None:
        reader, writer = await asyncio.open_connection(LOCAL, api.port)
        head = "POST /api/v1/whatif?namespace=ml HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n"
        writer.write(f"{head}Content-Length: 100\r\nConnection: close\r\n\r\n".encode() + b"{")
        assert (await reader.readline()).split()[1] == b"408"
        writer.close()

    served(story)


def test_a_follower_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "WRITE_SECONDS", 0.05)
    large = b"x" * (1 << 20)
    monkeypatch.setattr(routes, "_event", lambda number, data: large)

    async def story(api: ApiFixture) -> None:
        _, writer = await asyncio.open_connection(LOCAL, api.port, limit=1024)
        head = "GET /api/v1/decisions?follow=1&continue=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n\r\n"
        writer.write(head.encode())
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        decision = api.live.decisions.after(0, 1)[0].decision
        for _ in range(32):  # 32 MiB: more than the buffers of the connection hold
            api.live.decisions.add(decision)
        with pytest.raises(ConnectionError):
            await _write_until_closed(writer)

    served(story)


def test_one_user_has_a_part_of_the_followers_and_leaves_the_others_to_other_users() -> None:
    async def story(api: ApiFixture) -> None:
        assert api.session is not None
        url = f"http://{LOCAL}:{api.port}/api/v1/decisions?follow=1&namespace=ml"
        statuses, open_ones = [], []
        for name in ["member"] * (routes.MAX_FOLLOWERS_OF_USER + 2) + ["admin"]:
            reply = await api.session.get(url, headers={"Authorization": f"Bearer {name}"})
            statuses.append(reply.status)
            open_ones.append(reply)
        assert statuses == [200] * routes.MAX_FOLLOWERS_OF_USER + [429] * 2 + [200]
        for reply in open_ones:
            reply.close()

    served(story)


async def _write_until_closed(writer: asyncio.StreamWriter) -> None:
    """Writes on, and never reads what comes: a write fails once the server has closed the connection."""
    async with asyncio.timeout(HANGS):
        while True:
            writer.write(b"x")
            await writer.drain()
            await yield_to_loop()
