"""The webhook as the API server meets it: over a real socket, with bounds."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from kubenexus.base.clock import VirtualClock
from kubenexus.client.calls import Unreachable
from kubenexus.webhook import server as server_module
from kubenexus.webhook.namespaces import AT_A_TIME, NamespaceLabels
from kubenexus.webhook.server import MAX_BODY, WebhookServer, WebhookSettings
from tests.async_helpers import wait_until
from tests.webhook.fake_api import FakeApi
from tests.webhook.requests import GROUPS, job, pod, template

LOCAL = "127.0.0.1"


def review(kind: str, data: Any, operation: str = "CREATE", namespace: str = "ml") -> bytes:
    request = {"uid": "u-1", "operation": operation, "object": data, "namespace": namespace}
    request["kind"] = {"group": GROUPS.get(kind, ""), "version": "v1", "kind": kind}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


class Visitor:
    def __init__(self, api: FakeApi | None = None, problem: str | None = None) -> None:
        self.api, self.clock, self.problem = api or FakeApi(), VirtualClock(100.0), problem
        self.api.objects["/api/v1/namespaces/ml"] = {
            "metadata": {
                "name": "ml",
                "labels": {"scheduling.kubenexus.io/scheduler-name": "ours", "tenant.kubenexus.io/tier": "gold"},
            }
        }
        namespaces = NamespaceLabels(self.api, self.clock)
        self.server = WebhookServer(WebhookSettings(), namespaces, {"certificate": lambda: self.problem})

    def visit(self, doing: Callable[["Visitor"], Awaitable[None]]) -> None:
        async def opening() -> None:
            self.port = await self.server.start(LOCAL, 0, None)
            try:
                async with aiohttp.ClientSession() as self.session:
                    await doing(self)
            finally:
                await self.server.stop()

        asyncio.run(opening())

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        async with self.session.post(f"http://{LOCAL}:{self.port}{path}", data=body) as answer:
            text = await answer.text()
            return answer.status, json.loads(text)["response"] if answer.status == 200 else text

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session.get(f"http://{LOCAL}:{self.port}{path}") as answer:
            return answer.status, await answer.text()


def test_an_object_is_allowed_refused_or_changed() -> None:
    async def story(visitor: Visitor) -> None:
        assert await visitor.post("/validate", review("Pod", pod())) == (200, {"uid": "u-1", "allowed": True})
        _, refused = await visitor.post("/validate", review("Pod", pod({"workload.kubenexus.io/type": "x"})))
        assert (refused["allowed"], refused["status"]["code"]) == (False, 403)
        assert refused["status"]["message"].startswith("label workload.kubenexus.io/type: must be one of")
        _, warned = await visitor.post("/validate", review("Pod", pod({"workload.kubenexus.io/tpye": "x"})))
        assert (warned["allowed"], len(warned["warnings"])) == (True, 1)
        asks = job(template(), 8, annotations={"kubenexus.io/gang-scheduling": "true"})
        _, changed = await visitor.post("/mutate/gang", review("Job", asks))
        assert (changed["allowed"], changed["patchType"]) == (True, "JSONPatch")

    Visitor().visit(story)


def test_labels_of_the_namespace_are_read_once_in_ten_seconds() -> None:
    async def story(visitor: Visitor) -> None:
        body = review("Pod", pod())
        answers = await asyncio.gather(*(visitor.post("/mutate/scheduler-name", body) for _ in range(20)))
        assert {answer["patchType"] for _, answer in answers} == {"JSONPatch"}
        assert len(visitor.api.calls) == 1
        visitor.api.objects["/api/v1/namespaces/ml"]["metadata"]["labels"] = {}
        visitor.clock.advance(11.0)
        assert await visitor.post("/mutate/scheduler-name", body) == (200, {"uid": "u-1", "allowed": True})

    Visitor().visit(story)


def test_without_the_labels_the_object_goes_on_as_it_is_with_a_warning() -> None:
    async def story(visitor: Visitor) -> None:
        visitor.api.trouble = Unreachable("away")
        for path, what in (("scheduler-name", "its scheduler"), ("gpu-class", "its GPU class")):
            _, answer = await visitor.post(f"/mutate/{path}", review("Pod", pod()))
            assert answer["allowed"]
            assert answer["warnings"] == [f"the labels of the namespace could not be read: {what} was not set"]
        visitor.api.trouble = None
        _, found = await visitor.post("/mutate/scheduler-name", review("Pod", pod()))
        assert "patch" in found, "a failure is not remembered"

    Visitor().visit(story)


def test_only_so_many_namespaces_are_read_at_a_time() -> None:
    async def story(visitor: Visitor) -> None:
        visitor.api.gate = asyncio.Event()
        waiting = [
            asyncio.ensure_future(visitor.post("/mutate/gpu-class", review("Pod", pod(), namespace=f"n{i}")))
            for i in range(AT_A_TIME)
        ]
        await wait_until(lambda: len(visitor.api.calls) == AT_A_TIME)
        _, answer = await visitor.post("/mutate/gpu-class", review("Pod", pod(), namespace="more"))
        assert answer["warnings"]
        visitor.api.gate.set()
        await asyncio.gather(*waiting)

    Visitor().visit(story)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"", 400, id="nothing"),
        pytest.param(b"{}", 400, id="no review"),
        pytest.param(b"[" * 100_000, 400, id="brackets"),
        pytest.param(b" " * (MAX_BODY + 1), 413, id="too large"),
    ],
)
def test_what_is_no_review_is_an_http_error(body: bytes, status: int) -> None:
    async def story(visitor: Visitor) -> None:
        assert (await visitor.post("/validate", io.BytesIO(body)))[0] == status

    Visitor().visit(story)


def test_a_large_body_without_a_length_is_refused_too() -> None:
    async def story(visitor: Visitor) -> None:
        async def portions() -> Any:
            for _ in range(9):
                yield b" " * (1 << 20)

        assert (await visitor.post("/validate", portions()))[0] == 413

    Visitor().visit(story)


def test_bodies_that_come_slowly_hold_a_bounded_part_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(visitor: Visitor) -> None:
        monkeypatch.setattr(server_module, "BODY_SECONDS", 0.2)
        writers = []
        for _ in range(server_module.MAX_HELD // MAX_BODY):
            _, writer = await asyncio.open_connection(LOCAL, visitor.port)
            writer.write(f"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: {MAX_BODY}\r\n\r\n{{".encode())
            writers.append(writer)
        await wait_until(lambda: visitor.server.held_bytes == server_module.MAX_HELD)
        assert (await visitor.post("/validate", review("Pod", pod())))[0] == 503
        await wait_until(lambda: visitor.server.held_bytes == 0)
        assert (await visitor.post("/validate", review("Pod", pod())))[0] == 200
        for writer in writers:
            writer.close()

    Visitor().visit(story)


def test_a_bug_is_an_http_error_and_the_connection_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    async def story(visitor: Visitor) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(server_module, "validate", broken)
            assert (await visitor.post("/validate", review("Pod", pod()))) == (500, "the review failed\n")
        assert (await visitor.post("/validate", review("Pod", pod())))[0] == 200

    Visitor().visit(story)


def test_health() -> None:
    async def story(visitor: Visitor) -> None:
        assert await visitor.get("/livez") == (200, "ok")
        assert await visitor.get("/readyz") == (200, "ok")
        visitor.problem = "the certificate has expired"
        assert (await visitor.get("/livez"))[0] == 200
        status, text = await visitor.get("/readyz?verbose")
        assert (status, "[-]certificate failed" in text) == (500, True)
        assert (await visitor.get("/validate"))[0] == 405
        assert (await visitor.post("/livez", b""))[0] == 405
        assert (await visitor.get("/elsewhere"))[0] == 404

    Visitor().visit(story)
