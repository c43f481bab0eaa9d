"""The independent watch: a process of its own that notes when each pod was created and when it was bound.

One watch on the pods *without* a node says both: a pod appears in it when it is created and leaves it when it is bound.
Only names are asked for, so that the witness costs every contestant the same and little.
"""

import asyncio
import contextlib
import multiprocessing
import ssl
from multiprocessing.connection import Connection
from typing import NamedTuple

import aiohttp
import msgspec

from kubenexus.base.clock import WallClock
from kubenexus.testing.controlplane import ControlPlane

NAMES = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
CHANGES = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
UNBOUND = {"fieldSelector": "spec.nodeName="}
PREFIX = "p-"  # of the pods that count
READY, WHOLE, STOP = "ready", "whole", "stop"
CLOCK = WallClock()


class Where(NamedTuple):
    """Whom to ask, as whom, and about how many pods."""

    server: str
    authority: str
    token: str
    namespace: str
    pods: int


class Testimony(msgspec.Struct):
    """Moments by name, in seconds since 1970; how many bytes the watch had, and how often it was begun."""

    created: dict[str, float] = {}
    bound: dict[str, float] = {}
    created_bytes: int = 0
    bound_bytes: int = 0
    watches: int = 0

    def note(self, line: bytes, now: float) -> str:
        """A line of the watch; returns the version it brings us to."""
        change = _LINE.decode(line)
        name, version = change.object.metadata.name, change.object.metadata.resource_version
        if name.startswith(PREFIX) and change.type == "ADDED":
            self.created.setdefault(name, now)
            self.created_bytes += len(line)
        elif name.startswith(PREFIX) and change.type == "DELETED":
            self.bound.setdefault(name, now)
            self.bound_bytes += len(line)
        return version


class Witness:
    """For the one who measures: starts the process, waits for it, asks it."""

    def __init__(self, plane: ControlPlane, namespace: str, pods: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        where = Where(plane.server, str(plane.authority), plane.token(), namespace, pods)
        self._process = context.Process(target=_run, args=(where, theirs), daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    async def ready(self) -> None:
        """Until it watches."""
        assert await asyncio.to_thread(self._pipe.recv) == READY

    async def whole(self, seconds: float) -> bool:
        """Whether all pods were bound within so long."""
        return await asyncio.to_thread(self._pipe.poll, seconds) and self._pipe.recv() == WHOLE

    async def testimony(self) -> Testimony:
        """What it has seen. Ends it."""
        self._pipe.send(STOP)
        found = await asyncio.to_thread(self._pipe.recv)
        while found == WHOLE:
            found = await asyncio.to_thread(self._pipe.recv)
        self.close()
        return msgspec.json.decode(found, type=Testimony)

    def close(self) -> None:
        """Safe to call twice."""
        self._process.terminate()
        self._process.join()


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Change(msgspec.Struct):
    type: str
    object: _Object


_LINE = msgspec.json.Decoder(_Change)
_LIST = msgspec.json.Decoder(_Object)


# ---- in the process --------------------------------------------------------------------------------------------------


def _run(where: Where, pipe: Connection) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_testify(where, pipe))


async def _testify(where: Where, pipe: Connection) -> None:
    seen = Testimony()
    watching = asyncio.create_task(_watch(where, pipe, seen))
    stopped = asyncio.create_task(asyncio.to_thread(pipe.recv))
    await asyncio.wait({watching, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if watching.done():
        watching.result()
    watching.cancel()
    pipe.send(msgspec.json.encode(seen))


async def _watch(where: Where, pipe: Connection, seen: Testimony) -> None:
    url = f"{where.server}/api/v1/namespaces/{where.namespace}/pods"
    who = {"Authorization": f"Bearer {where.token}"}
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=where.authority))
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, headers=who, timeout=timeout) as session:
        async with session.get(url, params=UNBOUND, headers=NAMES) as answer:
            version = _LIST.decode(await answer.read()).metadata.resource_version
        pipe.send(READY)
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                version = await _follow(session, url, version, where.pods, pipe, seen)


async def _follow(
    session: aiohttp.ClientSession, url: str, version: str, pods: int, pipe: Connection, seen: Testimony
) -> str:
    """One watch, until the server ends it. Returns how far it came."""
    asked = {**UNBOUND, "watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true"}
    seen.watches += 1
    async with session.get(url, params=asked, headers=CHANGES) as answer:
        answer.raise_for_status()
        with contextlib.suppress(aiohttp.ClientPayloadError):
            async for line in answer.content:
                before = len(seen.bound)
                version = seen.note(line, CLOCK.now())
                if before < len(seen.bound) == pods:
                    pipe.send(WHOLE)
    return version
