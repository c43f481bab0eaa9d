"""A scheduler whose live API is served over a real socket, with readers of different rights."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import aiohttp

from kubenexus.app.http.api.live_api import LiveApi, WebPage
from kubenexus.app.http.api.paths import PATHS
from kubenexus.app.http.authorization import ALWAYS_ALLOWED, RequestAuthorizer
from kubenexus.app.http.server import HttpServer, ServedContent
from kubenexus.app.scheduler import SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.base.clock import WallClock
from kubenexus.config.v1 import KubeSchedulerConfiguration
from kubenexus.explain.live_answers import LiveAnswers
from kubenexus.observe.metrics import Metrics
from kubenexus.testing.builders import a_node, a_pod
from tests.app.reviews import Reviews
from tests.app.scheduler_fixture import SchedulerFixture

LOCAL = "127.0.0.1"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: kubenexus-scheduler}]
"""
OURS = "kubenexus-scheduler"


class Reply(NamedTuple):
    status: int
    body: bytes
    headers: Any

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class ApiFixture:
    """`admin` may read everything, `member` the pods of namespace ml, `stranger` nothing, each by a token."""

    def __init__(self, page: Callable[[], WebPage] | None = None) -> None:
        self.live = LiveApi(LiveAnswers(), page)
        options = SchedulerOptions(loop=LoopOptions(on_decision=self.live.decisions.add))
        self.fixture = SchedulerFixture(CONFIG, settings=options)
        self.fixture.scheduler.watches = SimpleNamespace(unsynced=[])  # type: ignore[assignment]
        self.reviews = Reviews()
        self.reviews.users |= {name: {"username": name} for name in ("admin", "member", "stranger")}
        self.reviews.may |= {(name, "get", path) for name in self.reviews.users for path in PATHS}
        self.reviews.may |= {(name, "post", "/api/v1/whatif") for name in ("admin", "member")}
        self.reviews.may |= {("admin", verb, f"{what} in *") for verb in ("get", "list") for what in ("pods", "nodes")}
        for verb in ("get", "list"):
            self.reviews.may |= {(name, verb, "pods in ml") for name in ("admin", "member")}
            self.reviews.may.add(("admin", verb, "pods in web"))
        self.session: aiohttp.ClientSession | None = None
        self.port = 0

    async def fill(self) -> None:
        """A node that a pod of another namespace fills, a pod that waits for it, and a gang."""
        self.fixture.nodes(a_node("secret-node", cpu=2), a_node("cordoned-node", cpu=8, cordoned=True))
        self.fixture.pods(a_pod("shop", namespace="web", cpu=2, scheduler_name=OURS))
        await self.fixture.work()
        self.fixture.echo()
        self.fixture.pods(a_pod("train", namespace="ml", cpu=2, scheduler_name=OURS))
        await self.fixture.work()

    async def get(self, path: str, token: str = "admin", **headers: str) -> Reply:
        return await self.send("GET", path, token, headers=headers)

    async def post(self, path: str, body: Any, token: str = "admin") -> Reply:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.send("POST", path, token, data=io.BytesIO(data))

    async def send(self, method: str, path: str, token: str, **more: Any) -> Reply:
        assert self.session is not None
        headers = more.pop("headers", {}) | ({"Authorization": f"Bearer {token}"} if token else {})
        url = f"http://{LOCAL}:{self.port}{path}"
        async with self.session.request(method, url, headers=headers, **more) as reply:
            return Reply(reply.status, await reply.read(), reply.headers)


def served(story: Callable[[ApiFixture], Awaitable[None]], page: Callable[[], WebPage] | None = None) -> None:
    """Runs a story with a server."""

    async def life() -> None:
        api, clock = ApiFixture(page), WallClock()
        authorizer = RequestAuthorizer(api.reviews, clock, (*ALWAYS_ALLOWED, *api.live.public))
        content = ServedContent({}, Metrics().text, KubeSchedulerConfiguration(), clock, clock.now())
        add_routes, paths = api.live.open(api.fixture.scheduler, clock, authorizer)
        server = HttpServer(content, authorizer, add_routes, paths)
        api.port = await server.start_secure(LOCAL, 0, None)
        try:
            async with aiohttp.ClientSession() as session:
                api.session = session
                await api.fill()
                await story(api)
        finally:
            await api.live.close()
            await server.stop()

    asyncio.run(life())
