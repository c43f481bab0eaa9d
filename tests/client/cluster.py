"""A server of one kind for tests of the watch: its answers to each list and each watch are written down beforehand."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubenexus.api.codec import Unreadable
from kubenexus.api.core import Pod
from kubenexus.base.clock import Clock, WallClock
from kubenexus.client import kinds
from kubenexus.client.reflector import Reflector
from kubenexus.client.watch_events import WatchEvent
from kubenexus.client.watch_protocols import WatchHandler, WatchProblem, WatchTarget, WatchTiming
from tests.async_helpers import wait_until, yield_to_loop
from tests.client.server import Talk, calling, chunk, http, status

Watch = Callable[[Talk], Awaitable[None]]
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
QUICK = WatchTiming(backoff=0.001, longest_backoff=0.004, absent=0.004, forbidden=0.004, short=0.0)
PODS = WatchTarget(kinds.PODS, Pod)
GONE = http(status(410, "Expired", "too old resource version"), "410 Gone")


def pod(name: str, version: int, uid: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "a", "uid": uid or f"u-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": spec}


def page(*items: dict[str, Any], version: int = 10, more: str = "", **fields: str) -> bytes:
    body = {"kind": "PodList", "metadata": {"resourceVersion": str(version), "continue": more}, "items": items}
    return http(json.dumps(body).encode(), **fields)


def event(what: str, thing: dict[str, Any]) -> bytes:
    return json.dumps({"type": what, "object": thing}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def says(*events: bytes, end: str = "stay") -> Watch:
    """A watch that says this and then stays open, ends as it should, is reset, or stops within a line."""

    async def watch(talk: Talk) -> None:
        await talk.say(STREAM, *map(chunk, events))
        if end == "stay":
            await talk.gone()
        elif end == "end":
            await talk.say(b"0\r\n\r\n")
        elif end == "reset":
            await yield_to_loop()  # what has been said is read; a reset would take it along
            talk.reset()
        elif end == "half":
            await talk.say(b'100\r\n{"type":"ADD')

    return watch


def refuses(answer: bytes) -> Watch:
    async def watch(talk: Talk) -> None:
        await talk.say(answer)

    return watch


class Told:
    """A receiver that writes down what it is told, and keeps the objects as a ledger would."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.troubles: list[WatchProblem] = []
        self.held: dict[str, Any] = {}
        self.unreadable: list[Unreadable] = []
        self._listing: dict[str, Any] = {}

    def list_started(self) -> None:
        self._listing = {}
        self.log.append("begin")

    def list_page(self, items: list[Any], unreadable: tuple[Unreadable, ...]) -> None:
        self._listing |= {each.metadata.name: each for each in items}
        self.unreadable += unreadable
        self.log.append([each.metadata.name for each in items])

    def list_finished(self) -> None:
        self.held = self._listing
        self.log.append("end")

    def events(self, changes: list[WatchEvent]) -> None:
        self.log.append([f"{change.type} {_name(change.object)}" for change in changes])
        for change in changes:
            if isinstance(change.object, Unreadable):
                self.unreadable.append(change.object)
            elif change.type == "DELETED":
                self.held.pop(change.object.metadata.name, None)
            else:
                self.held[change.object.metadata.name] = change.object

    def problem_changed(self, trouble: WatchProblem) -> None:
        self.troubles.append(trouble)


def _name(thing: Any) -> str:
    return thing.name if isinstance(thing, Unreadable) else thing.metadata.name


class Following:
    """A reflector at work, and what it asked and was told."""

    def __init__(self, reflector: Reflector, told: Told, requests: list[Any], task: asyncio.Future[None]) -> None:
        self.reflector, self.told, self._requests, self._task = reflector, told, requests, task

    @property
    def asked(self) -> list[dict[str, str]]:
        """The queries so far."""
        return [{key: v[0] for key, v in parse_qs(urlsplit(each.path).query).items()} for each in self._requests]

    @property
    def watches(self) -> list[dict[str, str]]:
        return [each for each in self.asked if "watch" in each]

    async def until(self, condition: Callable[[], object]) -> None:
        """A reflector that has ended meanwhile says why."""
        await wait_until(lambda: condition() or self._task.done())
        if self._task.done():
            self._task.result()


@contextlib.asynccontextmanager
async def following(
    lists: list[bytes],
    watches: list[Watch],
    *,
    target: WatchTarget = PODS,
    timing: WatchTiming = QUICK,
    clock: Clock | None = None,
    seed: int = 1,
    receiver: WatchHandler | None = None,
    **settings: Any,
) -> AsyncIterator[Following]:
    """Lists are answered in order, the last again and again; so are watches, and after the last they stay open.
    `receiver` is told instead of a `Told`."""
    lists, watches = list(lists), list(watches)

    async def handler(talk: Talk) -> None:
        while (request := await talk.request()) is not None:
            if "watch=1" in request.path:
                await (watches.pop(0) if watches else says())(talk)
                return
            await talk.say(lists.pop(0) if len(lists) > 1 else lists[0])

    async with calling(handler) as (client, served):
        told = Told()
        time, rng = clock or WallClock(), random.Random(seed)
        reflector = Reflector(client, target, receiver or told, clock=time, rng=rng, timing=timing, **settings)
        task = asyncio.ensure_future(reflector.run())
        try:
            yield Following(reflector, told, served.requests, task)
            if task.done():
                task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
