"""An API server that answers TokenReviews and SubjectAccessReviews: who has which token, and who may read what."""

import asyncio
from typing import Any

import msgspec

from kubenexus.client.calls import ApiError, Call

PROMETHEUS = {"username": "prometheus", "uid": "7", "groups": ["system:authenticated"], "extra": {"k": ["v"]}}


class Reviews:
    def __init__(self) -> None:
        self.users: dict[str, dict[str, Any]] = {"good": PROMETHEUS, "poor": {"username": "poor"}}
        self.may = {("prometheus", "get", "/metrics")}
        self.asked: list[dict[str, Any]] = []
        self.trouble: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.configmap: dict[str, Any] | None = None

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if self.gate is not None:
            await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble
        if call.method == "GET":
            if self.configmap is None:
                raise ApiError(403, "Forbidden")
            return msgspec.json.encode(self.configmap)
        review = msgspec.json.decode(call.body)
        self.asked.append(review)
        return msgspec.json.encode(review | {"status": self._answer(review)})

    def _answer(self, review: dict[str, Any]) -> dict[str, Any]:
        spec = review["spec"]
        if review["kind"] == "TokenReview":
            user = self.users.get(spec["token"])
            return {"authenticated": user is not None} | ({} if user is None else {"user": user})
        if objects := spec.get("resourceAttributes"):
            right = (spec["user"], objects["verb"], f"{objects['resource']} in {objects['namespace'] or '*'}")
        else:
            wanted = spec["nonResourceAttributes"]
            right = (spec["user"], wanted["verb"], wanted["path"])
        allowed = right in self.may
        return {"allowed": allowed} | ({} if allowed else {"reason": "no such right"})

    @property
    def kinds(self) -> list[str]:
        return [review["kind"] for review in self.asked]
