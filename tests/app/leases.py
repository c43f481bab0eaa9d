"""A server with one lease, for tests of leader election: versions, conflicts, and whatever goes wrong on the way."""

import asyncio
from collections import deque
from typing import Any

import msgspec

from kubenexus.base.clock import VirtualClock
from kubenexus.client.calls import ApiError, Call, Uncertain

CONFLICT = ApiError(409, "Conflict", "the object has been modified")


class LeaseServer:
    """What the API server does with a Lease. `apply` is the whole of it, and takes no time."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0

    def apply(self, call: Call) -> bytes:
        if call.method == "GET":
            return self._answer()
        wanted = msgspec.json.decode(call.body)
        if call.method == "POST" and self.lease is not None:
            raise ApiError(409, "AlreadyExists")
        if call.method == "PUT":
            self._compare(wanted)
        self.version += 1
        wanted["metadata"]["resourceVersion"] = str(self.version)
        self.lease = wanted
        return self._answer()

    def _answer(self) -> bytes:
        if self.lease is None:
            raise ApiError(404, "NotFound")
        return msgspec.json.encode(self.lease)

    def _compare(self, wanted: dict[str, Any]) -> None:
        if self.lease is None:
            raise ApiError(404, "NotFound")
        if wanted["metadata"].get("resourceVersion") != self.lease["metadata"]["resourceVersion"]:
            raise CONFLICT

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec


class Line:
    """From one candidate to the server. `script`: an exception is the answer instead; "lost" is done but not heard."""

    def __init__(self, server: LeaseServer, clock: VirtualClock) -> None:
        self.server = server
        self.clock = clock
        self.script: deque[Exception | str | None] = deque()
        self.always: Exception | None = None
        self.calls: list[str] = []
        self.timeouts: list[float] = []

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        self.calls.append(call.method)
        self.timeouts.append(timeout)
        await asyncio.sleep(0)
        trouble = self.script.popleft() if self.script else self.always
        if isinstance(trouble, Exception):
            if isinstance(trouble, Uncertain):
                self.clock.advance(timeout)
            raise trouble
        answer = self.server.apply(call)
        if trouble == "lost":
            self.clock.advance(timeout)
            raise Uncertain("no answer")
        return answer
