"""An API server for tests: remembers what it is told, and answers what it is told to answer."""

import asyncio
from collections import deque
from typing import Any

import msgspec

from kubenexus.base.clock import VirtualClock
from kubenexus.client.calls import ApiError, Call


class Answers:
    """Says yes to everything, after the answers in `script`: an exception is raised, None is a yes."""

    def __init__(self, *script: Exception | None) -> None:
        self.calls: list[Call] = []
        self.script = deque(script)
        self.timeouts: set[float] = set()
        self.moments: list[float] = []  # at which it was called, by the loop

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        self.calls.append(call)
        self.timeouts.add(timeout)
        self.moments.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        answer = self.script.popleft() if self.script else None
        if answer is not None:
            raise answer
        return b"{}"

    @property
    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """Methods and bodies."""
        return [(call.method, msgspec.json.decode(call.body)) for call in self.calls]


class Sleeper:
    """Sleeping moves the clock and nothing else."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)
        await asyncio.sleep(0)


NOT_FOUND = ApiError(404, "NotFound")
TAKEN = ApiError(409, "AlreadyExists")
FORBIDDEN = ApiError(403, "Forbidden", "namespace web is being terminated")
BUSY = ApiError(503, "ServiceUnavailable")
