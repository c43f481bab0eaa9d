"""The ceiling: lists pods, binds them to the nodes in turn, and says nothing about it. No decisions, no events.

aiohttp, 64 binds in flight, and of all objects only what they are called: whatever schedules on this machine through
this API server does at least this much.
"""

import asyncio
import itertools
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.live.cases import SCHEDULER

IN_FLIGHT = 64
NAMES = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
CHANGES = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
WAITING = {"fieldSelector": f"spec.nodeName=,spec.schedulerName={SCHEDULER}"}

Metadata = dict[str, Any]


class NullBinder:
    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session, self._server = session, server
        self._pods: asyncio.Queue[Metadata] = asyncio.Queue()
        self._nodes: Iterator[str] = iter(())

    async def run(self) -> None:
        """Until it is stopped."""
        nodes, _ = await self._list("nodes", {})
        self._nodes = itertools.cycle([node["name"] for node in nodes])
        pods, version = await self._list("pods", WAITING)
        for pod in pods:
            self._pods.put_nowait(pod)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(IN_FLIGHT):
                tasks.create_task(self._bind())
            tasks.create_task(self._watch(version))

    async def _list(self, what: str, asked: dict[str, str]) -> tuple[list[Metadata], str]:
        async with self._session.get(f"{self._server}/api/v1/{what}", params=asked, headers=NAMES) as answer:
            answer.raise_for_status()
            return read(await answer.read())

    async def _watch(self, version: str) -> None:
        """The server ends a watch whenever it likes; the next goes on where it ended."""
        while True:
            asked = {**WAITING, "watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true"}
            url = f"{self._server}/api/v1/pods"
            async with self._session.get(url, params=asked, headers=CHANGES, timeout=FOREVER) as answer:
                answer.raise_for_status()
                async for line in answer.content:
                    change = msgspec.json.decode(line)
                    version = change["object"]["metadata"]["resourceVersion"]
                    if change["type"] == "ADDED":
                        self._pods.put_nowait(change["object"]["metadata"])

    async def _bind(self) -> None:
        while True:
            pod = await self._pods.get()
            target = {"apiVersion": "v1", "kind": "Node", "name": next(self._nodes)}
            meta = {"name": pod["name"], "namespace": pod["namespace"], "uid": pod["uid"]}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
            url = f"{self._server}/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}/binding"
            async with self._session.post(url, data=msgspec.json.encode(body), headers=JSON) as answer:
                await answer.read()


def read(page: bytes) -> tuple[list[Metadata], str]:
    """What is listed, and the version of the list. If there is nothing, the items are null."""
    listed = msgspec.json.decode(page)
    return [item["metadata"] for item in listed["items"] or ()], listed["metadata"]["resourceVersion"]


FOREVER = aiohttp.ClientTimeout(total=None)
JSON = {"Content-Type": "application/json"}


async def main(server: str, authority: str, token: str) -> None:
    trust = ssl.create_default_context(cafile=authority)
    who = {"Authorization": f"Bearer {Path(token).read_text()}"}
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT + 2, ssl=trust)
    async with aiohttp.ClientSession(connector=connector, headers=who) as session:
        await NullBinder(session, server).run()


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*sys.argv[1:]))
