"""The server of `kubenexus web`: the page, and the live API behind it, for one user on this machine.

browser ── token, Host, Origin checked ──▶ LocalServer ──▶ a scheduler's live API, as the user of the kubeconfig
                                                      └─▶ or copies of this process, about a cluster that was read
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from aiohttp import web

from kubenexus.app.http.api.request_problem import RequestProblem
from kubenexus.app.http.headers import HEADERS
from kubenexus.base.errors import KubeNexusError, cannot_listen
from kubenexus.web.local_guard import LocalGuard
from kubenexus.web.page_routes import ROOT, PageRoutes, PageSettings, Report

LOOPBACK: Final = "127.0.0.1"
# A report is a file that the user names. It may not run anything.
REPORT_HEADERS: Final = HEADERS | {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'self'",
    "Content-Type": "text/html; charset=utf-8",
    "Referrer-Policy": "no-referrer",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Routes(Protocol):
    def add_to(self, application: web.Application) -> None: ...


class LocalServer:
    """Serves one user until `stop`. `api` has the routes of the live API. The token is new with each start."""

    def __init__(self, api: Routes, settings: PageSettings, reports: Sequence[Path] = ()) -> None:
        self._api, self._settings, self._reports = api, settings, reports
        self._token, self._report_root = secrets.token_urlsafe(32), f"/reports/{secrets.token_urlsafe(32)}/"
        self._guard: LocalGuard | None = None
        self._runner: web.AppRunner | None = None

    async def start(self, port: int) -> str:
        """Listens on the loopback address. Returns the address for the browser. Raises KubeNexusError."""
        application = web.Application(middlewares=[self._answer], client_max_size=2**16)
        PageRoutes(self._told()).add_to(application)
        self._api.add_to(application)
        application.router.add_get(self._report_root + "{number:[0-9]{1,4}}", self._report)
        self._runner = runner = web.AppRunner(
            application, access_log=None, handle_signals=False, shutdown_timeout=1.0, lingering_time=1.0
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, port).start()
        except OSError as error:
            await runner.cleanup()
            raise KubeNexusError(cannot_listen(LOOPBACK, port, error)) from error
        found = int(runner.addresses[0][1])
        self._guard = LocalGuard(self._token, found, self._report_root)
        return f"http://{LOOPBACK}:{found}{ROOT}#token={self._token}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def _told(self) -> PageSettings:
        told = self._settings
        reports = tuple(Report(path.name, f"{self._report_root}{i}") for i, path in enumerate(self._reports))
        return PageSettings(told.source, told.title, told.namespace, asks_token=False, reports=reports)

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if self._guard is not None:
                self._guard.check(request)
            return await handler(request)
        except RequestProblem as problem:
            return _failure(problem)
        except web.HTTPNotFound:
            return _failure(RequestProblem(404, "NotFound", "there is no such page"))
        except web.HTTPMethodNotAllowed:
            return _failure(RequestProblem(405, "MethodNotAllowed", "the page only reads"))

    async def _report(self, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if number >= len(self._reports):
            raise web.HTTPNotFound
        try:
            return web.Response(body=self._reports[number].read_bytes(), headers=REPORT_HEADERS)
        except OSError as error:
            raise RequestProblem(404, "NotFound", f"the report cannot be read: {error.strerror}") from None


def _failure(problem: RequestProblem) -> web.Response:
    return web.Response(
        status=problem.status, body=problem.body, headers=HEADERS | {"Content-Type": "application/json"}
    )
