"""Serves the live API for a cluster that was read: from a file, or every few seconds from the API server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from kubenexus.app.http.api import paths
from kubenexus.app.http.api.decision_log import DecisionLog
from kubenexus.app.http.api.readers import Reader
from kubenexus.app.http.api.request_problem import RequestProblem
from kubenexus.app.http.api.routes import ApiRoutes
from kubenexus.app.http.api.state_copies import StateCopies
from kubenexus.base.clock import Clock
from kubenexus.base.errors import KubeNexusError
from kubenexus.explain.cluster_dump import ClusterDump
from kubenexus.explain.dump_answers import ClusterView, DumpAnswers

REFRESH_SECONDS: Final = 10.0  # after which a question reads the cluster again

ReadCluster = Callable[[], Awaitable[ClusterDump]]


class ClusterRoutes:
    """Answers in copies of this process, as a scheduler does. `read` reads the cluster again; None for a file."""

    def __init__(self, dump: ClusterDump, answers: DumpAnswers, clock: Clock, read: ReadCluster | None = None) -> None:
        self._view, self._clock, self._read = ClusterView(dump), clock, read
        self._copies, self._decisions = StateCopies(clock), DecisionLog()
        self._read_at = clock.now()
        self._reading: asyncio.Task[None] | None = None
        self._routes = ApiRoutes(
            self._view, answers, self._decisions, self._copies, clock, lambda request: Reader(None)
        )

    def add_to(self, application: web.Application) -> None:
        if self._read is not None:
            application.middlewares.append(self._refreshed)
        self._routes.add_to(application)

    async def close(self) -> None:
        self._decisions.close()
        await self._copies.close()

    @web.middleware
    async def _refreshed(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        due = self._clock.now() - self._read_at >= REFRESH_SECONDS
        if due and request.path.startswith(paths.ROOT):
            if self._reading is None or self._reading.done():
                self._reading = asyncio.ensure_future(self._refresh())
            await asyncio.shield(self._reading)
        return await handler(request)

    async def _refresh(self) -> None:
        """Reads the cluster once for all requests that wait. Raises RequestProblem."""
        try:
            if self._read is not None:
                self._view.dump = await self._read()
        except KubeNexusError as error:
            raise RequestProblem(502, "BadGateway", str(error)) from None
        finally:
            self._read_at = self._clock.now()
