"""The server of `kubenexus web` over a real socket, for a small cluster that was read."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from kubenexus.base.clock import WallClock
from kubenexus.cli.profiles import profile_of
from kubenexus.explain.cluster_dump import read_dump
from kubenexus.explain.dump_answers import DumpAnswers
from kubenexus.web.cluster_routes import ClusterRoutes
from kubenexus.web.local_server import LocalServer
from kubenexus.web.page_routes import PageSettings


class Reply(NamedTuple):
    status: int
    body: bytes
    headers: Any

    def json(self) -> Any:
        return json.loads(self.body)


class Browser:
    """Sends requests as the browser of the user does, or as somebody else's."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self.base, _, self.token = address.partition("/web/#token=")

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.send("GET", path, {"Authorization": f"Bearer {self.token}"} | headers)

    async def send(self, method: str, path: str, headers: dict[str, str], data: Any = None) -> Reply:
        url = URL(self.base + path, encoded=True)
        async with self._session.request(method, url, headers=headers, data=data, allow_redirects=False) as reply:
            return Reply(reply.status, await reply.read(), reply.headers)


def served(
    dump: bytes, story: Callable[[Browser], Awaitable[None]], reports: tuple[Path, ...] = (), **settings: Any
) -> None:
    """Runs a story with a server for this cluster."""

    async def life() -> None:
        clock = WallClock()
        routes = ClusterRoutes(read_dump(dump, "test"), DumpAnswers(lambda pod: profile_of(pod, None)), clock)
        server = LocalServer(routes, PageSettings(**({"source": "file"} | settings)), reports)
        address = await server.start(0)
        try:
            async with aiohttp.ClientSession() as session:
                await story(Browser(session, address))
        finally:
            await routes.close()
            await server.stop()

    asyncio.run(life())
