"""The HTTP server: health, metrics and debug pages over HTTPS, and health in plain HTTP for probes.

`app.http.endpoints` creates one `HttpServer`, starts its ports and stops it at the end. All pages but health require
authorization by `RequestAuthorizer`.
"""

import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec
from aiohttp import web

from kubenexus.app.http import debug_pages, health
from kubenexus.app.http.api.readers import Reader
from kubenexus.app.http.api.request_problem import RequestProblem
from kubenexus.app.http.authorization import AuthFailure, RequestAuthorizer, user_of_certificate
from kubenexus.app.http.headers import HEADERS
from kubenexus.app.http.health import Checks, Warnings
from kubenexus.base.clock import Clock
from kubenexus.base.errors import KubeNexusError, cannot_listen
from kubenexus.config.v1 import SCHEDULER, KubeSchedulerConfiguration

PLACES: Final = ("livez", "readyz", "healthz")
MORE: Final = ("/configz", "/metrics", "/statusz", "/version")

MetricsText = Callable[[str], Awaitable[tuple[bytes, str]]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ServedContent(msgspec.Struct, frozen=True):
    """What the server serves. `checks` and `warnings` are by path: livez, readyz, healthz. `metrics` is called with the
    `Accept` header and returns the body and its content type."""

    checks: Mapping[str, Checks]
    metrics: MetricsText
    configuration: KubeSchedulerConfiguration
    clock: Clock
    started: float
    component: str = SCHEDULER
    warnings: Mapping[str, Warnings] = {}


class HttpServer:
    """Serves the pages on up to two ports. With `authorizer=None` requests are not authorized: for tests only.
    `add_routes` adds further routes to the secured port."""

    def __init__(
        self,
        content: ServedContent,
        authorizer: RequestAuthorizer | None,
        add_routes: Callable[[web.Application], None] = lambda application: None,
        more_paths: Sequence[str] = (),
    ) -> None:
        self._content = content
        self._authorizer = authorizer
        self._add_routes, self._more_paths = add_routes, more_paths
        self._runners: list[web.AppRunner] = []

    async def start_secure(self, host: str, port: int, context: ssl.SSLContext | None) -> int:
        """Serves all pages on `--bind-address` and `--secure-port`. Returns the port, which the system chooses if
        `port` is 0."""
        return await self._start(self._all_pages(), host, port, context)

    async def start_health(self, host: str, port: int) -> int:
        """Serves only the health paths, in plain HTTP and without authorization, on `--health-bind-address`. Returns
        the port."""
        return await self._start(self._health(web.Application()), host, port, None)

    async def stop(self) -> None:
        """Closes the ports, after responses in progress are sent."""
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()

    async def _start(self, application: web.Application, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        runner = web.AppRunner(
            application, access_log=None, handle_signals=False, shutdown_timeout=5.0, lingering_time=1.0
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, ssl_context=tls).start()
        except OSError as error:
            await runner.cleanup()
            raise KubeNexusError(cannot_listen(host, port, error)) from error
        self._runners.append(runner)
        return int(runner.addresses[0][1])

    # --- pages ----------------------------------------------------------------------------------------------------

    def _all_pages(self) -> web.Application:
        application = web.Application(middlewares=[self._authorize_request], client_max_size=2**16)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/configz", self._configz)
        application.router.add_get("/statusz", self._statusz)
        application.router.add_get("/version", self._version)
        self._add_routes(application)
        return self._health(application)

    def _health(self, application: web.Application) -> web.Application:
        for place in PLACES:
            checks = self._content.checks.get(place) or {"ping": health.ping}
            warnings = self._content.warnings.get(place, tuple)
            application.router.add_get(f"/{place}", _root_handler(place, checks, warnings))
            for name, check in checks.items():
                application.router.add_get(f"/{place}/{name}", _check_handler(check))
        return application

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = await self._content.metrics(request.headers.get("Accept", ""))
        return web.Response(body=body, headers=HEADERS | {"Content-Type": content_type})

    async def _configz(self, request: web.Request) -> web.Response:
        return _json(debug_pages.configz(self._content.configuration))

    async def _statusz(self, request: web.Request) -> web.Response:
        paths = sorted((*(f"/{place}" for place in PLACES), *MORE, *self._more_paths))
        now = self._content.clock.now()
        return _text(200, debug_pages.statusz(self._content.component, self._content.started, now, paths))

    async def _version(self, request: web.Request) -> web.Response:
        return _json(debug_pages.version())

    # --- authorization --------------------------------------------------------------------------------------------

    @web.middleware
    async def _authorize_request(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = await self._refusal(request)
        if refusal is not None:
            return _json(refusal.body, refusal.code)
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return _text(404, "404 page not found\n")
        except web.HTTPMethodNotAllowed:
            return _text(405, "405 method not allowed\n")
        except RequestProblem as problem:
            return _json(problem.body, problem.status)

    async def _refusal(self, request: web.Request) -> AuthFailure | None:
        if self._authorizer is None:
            return None
        sender = request_reader(request, self._authorizer)
        return await self._authorizer.authorize(request.path, request.method.lower(), sender.token, sender.known)


def request_reader(request: web.Request, authorizer: RequestAuthorizer | None) -> Reader:
    """Returns the sender of a request, by its bearer token or its client certificate."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    bearer_token = token.strip() if scheme.lower() == "bearer" else ""
    certificate = None if request.transport is None else request.transport.get_extra_info("peercert")
    return Reader(authorizer, bearer_token, user_of_certificate(certificate))


def parse_host_port(text: str) -> tuple[str, int]:
    """Parses the `host:port` of `--health-bind-address`, also `[::1]:10251`. Nothing before the colon means all
    addresses."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise KubeNexusError(f'--health-bind-address: "{text}" is not host:port')
    return host.strip("[]") or "0.0.0.0", int(port)


def _root_handler(place: str, checks: Checks, warnings: Warnings) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        excluded = request.query.getall("exclude", [])
        verbose = "verbose" in request.query
        return _text(*health.root_page(place, checks, excluded, verbose=verbose, warnings=warnings))

    return answer


def _check_handler(check: health.Check) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return _text(*health.check_page(check))

    return answer


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text, headers=HEADERS)


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(status=status, body=body, headers=HEADERS | {"Content-Type": "application/json"})
