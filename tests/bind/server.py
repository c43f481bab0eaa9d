"""An API server with pods, for tests of binding: does what it is asked, after whatever goes wrong on the way."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from kubenexus.api.codec import encode
from kubenexus.api.core import Pod
from kubenexus.client.calls import ApiError, Call, Uncertain, Unreachable

LOST = "done, but the answer is lost"
AWAY = Unreachable("connection refused")
SILENT = Uncertain("no answer within 5 s")
FORBIDDEN = ApiError(403, "Forbidden", 'pods "web" is forbidden')
BUSY = ApiError(503, "ServiceUnavailable", "try again")


class Guard:
    """Whether we lead is said by the test."""

    def __init__(self, write_timeout: float = 5.0) -> None:
        self.leads, self.write_timeout = True, write_timeout

    def may_write(self) -> bool:
        return self.leads


class PodServer:
    """`script`: for each bind an exception that is the answer instead, LOST, or None; afterwards all is well. `looks`
    is the same for reads."""

    def __init__(self, *pods: Pod) -> None:
        self.pods = {pod.key: pod for pod in pods}
        self.calls: list[Call] = []
        self.script: deque[Exception | str | None] = deque()
        self.looks: deque[Exception | None] = deque()
        self.patches: deque[Exception | None] = deque()
        self.outage: Callable[[], Exception | str | None] = lambda: None  # as `script`, for whatever is asked
        self.in_flight = self.most = 0
        self.held: asyncio.Event | None = None  # answers wait for it

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        self.calls.append(call)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await asyncio.sleep(0)
            if self.held is not None and call.path.endswith("/binding"):
                await self.held.wait()
            return self._answer(call)
        finally:
            self.in_flight -= 1

    async def stream(self, path: str, *, timeout: float = 30.0) -> Any:
        raise Unreachable("nobody watches here")

    @property
    def binds(self) -> list[str]:
        """Which pod to which node, in order."""
        bodies = [msgspec.json.decode(call.body) for call in self.calls if call.path.endswith("/binding")]
        return [f"{body['metadata']['name']} to {body['target']['name']}" for body in bodies]

    def said(self, part: str) -> list[Any]:
        """The bodies of what was sent to such paths."""
        return [msgspec.json.decode(call.body) for call in self.calls if part in call.path and call.body]

    def _answer(self, call: Call) -> bytes:
        if call.method == "PATCH" or "/events" in call.path:
            _raise(self.patches.popleft() if self.patches else None)
            return b"{}"
        key = "/".join((call.path.split("/")[4], call.path.split("/")[6]))
        outage = self.outage()
        if call.method == "GET":
            if outage is not None:
                raise SILENT
            _raise(self.looks.popleft() if self.looks else None)
            return encode(self._pod(key))
        fault = self.script.popleft() if self.script else outage
        if isinstance(fault, Exception):
            raise fault
        if call.path.endswith("/eviction") or call.method == "DELETE":
            return b"{}"
        self._bind(key, msgspec.json.decode(call.body))
        if fault == LOST:
            raise SILENT
        return b"{}"

    def _pod(self, key: str) -> Pod:
        if key not in self.pods:
            raise ApiError(404, "NotFound", f'pods "{key}" not found')
        return self.pods[key]

    def _bind(self, key: str, body: Any) -> None:
        pod = self._pod(key)
        if pod.metadata.uid != body["metadata"]["uid"] or pod.spec.node_name or pod.metadata.deletion_timestamp:
            raise ApiError(409, "Conflict", f"pod {key} is already assigned, another, or being deleted")
        spec = msgspec.structs.replace(pod.spec, node_name=body["target"]["name"])
        texts = pod.metadata.annotations | (body["metadata"].get("annotations") or {})  # merged in the same write
        metadata = msgspec.structs.replace(pod.metadata, annotations=texts)
        self.pods[key] = msgspec.structs.replace(pod, metadata=metadata, spec=spec)


def _raise(fault: Exception | None) -> None:
    if fault is not None:
        raise fault
