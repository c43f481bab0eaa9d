"""An API server with a Secret, two webhook configurations and namespaces, for the webhook's own calls."""

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from kubenexus.client.calls import ApiError, Call

SECRET = "/api/v1/namespaces/home/secrets/papers"
CONFIGURATIONS = tuple(
    f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/hook" for kind in ("validating", "mutating")
)


class FakeApi:
    def __init__(self, configurations: Sequence[str] = CONFIGURATIONS) -> None:
        self.objects: dict[str, dict[str, Any]] = {
            path: {
                "metadata": {"resourceVersion": "1"},
                "webhooks": [{"name": "a", "clientConfig": {}, "rules": ["kept"]}, {"name": "b", "clientConfig": {}}],
            }
            for path in configurations
        }
        self.calls: list[tuple[str, str]] = []
        self.trouble: Exception | None = None
        self.gate: asyncio.Event | None = None

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        self.calls.append((call.method, call.path))
        if self.gate is not None:
            await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble
        return msgspec.json.encode(getattr(self, call.method.lower())(call))

    def get(self, call: Call) -> Any:
        if call.path not in self.objects:
            raise ApiError(404, "NotFound")
        return self.objects[call.path]

    def post(self, call: Call) -> Any:
        body = msgspec.json.decode(call.body)
        path = f"{call.path}/{body['metadata']['name']}"
        if path in self.objects:
            raise ApiError(409, "AlreadyExists")
        return self.store(path, body)

    def patch(self, call: Call) -> Any:
        body, found = msgspec.json.decode(call.body), self.get(call)
        self.compare(call.path, body)
        if "data" in body:
            found["data"] = body["data"]
        for each in body.get("webhooks", ()):
            (webhook,) = [known for known in found["webhooks"] if known["name"] == each["name"]]
            webhook["clientConfig"] |= each["clientConfig"]
        return self.store(call.path, found)

    def compare(self, path: str, body: Any) -> None:
        if body["metadata"]["resourceVersion"] != self.objects[path]["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict")

    def store(self, path: str, body: Any) -> Any:
        before = self.objects.get(path, {"metadata": {"resourceVersion": "0"}})
        body["metadata"]["resourceVersion"] = str(int(before["metadata"]["resourceVersion"]) + 1)
        self.objects[path] = body
        return body

    def writes(self) -> list[str]:
        return [f"{method} {path.rpartition('/v1/')[2]}" for method, path in self.calls if method != "GET"]

    def secret(self, name: str) -> str:
        return base64.b64decode(self.objects[SECRET]["data"][name]).decode()

    def bundles(self) -> set[str]:
        """The certificates that the API server trusts, in all webhooks of all configurations."""
        return {
            base64.b64decode(webhook["clientConfig"].get("caBundle", "")).decode()
            for path, found in self.objects.items()
            if "webhooks" in found
            for webhook in found["webhooks"]
        }
