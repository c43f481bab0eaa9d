"""The HTTP server of the webhook: `/validate`, `/mutate/gang`, `/mutate/scheduler-name`, `/mutate/gpu-class`, health.

A request has bounds: the size of its body, the time in which the body has to arrive, and the bytes that all requests
together may hold. A request beyond them gets an HTTP error, and the API server goes on by its `failurePolicy`.

The paths are a table and aiohttp's router is not used: it is a tenth of what a review takes.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

from kubenexus.app.http import health
from kubenexus.base.errors import KubeNexusError, Malformed, cannot_listen, described
from kubenexus.observe import logs
from kubenexus.webhook.admission import (
    ALLOWED,
    AdmissionRequest,
    Response,
    decode_outline,
    decode_review,
    encode_review,
)
from kubenexus.webhook.mutation import GpuClassSettings, mutate_gang, mutate_gpu_class, mutate_scheduler_name
from kubenexus.webhook.namespaces import NamespaceLabels
from kubenexus.webhook.validation import ValidationSettings, validate

MAX_BODY: Final = 8 << 20  # bytes: the largest object that etcd stores, old and new, as JSON
MAX_HELD: Final = 64 << 20  # bytes of all bodies together
BODY_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 120.0  # of a connection; more than the 90 after which an API server closes its own
_PLACES: Final = ("livez", "readyz", "healthz")
_JSON: Final = {"Content-Type": "application/json"}

log = logs.get("webhook")

Review = Callable[[AdmissionRequest], Awaitable[Response]]
Decode = Callable[[bytes], AdmissionRequest]
Page = Callable[[web.BaseRequest], Awaitable[web.Response]]


class WebhookSettings(msgspec.Struct, frozen=True):
    """`scheduler_name` is put into the templates of jobs that ask for a gang; "" leaves them alone."""

    validation: ValidationSettings = ValidationSettings()
    gpu_class: GpuClassSettings = GpuClassSettings()
    scheduler_name: str = ""


class WebhookServer:
    """Serves admission reviews over HTTPS. `checks` are those of `/readyz`; `held_bytes` is the size of all bodies."""

    def __init__(self, settings: WebhookSettings, namespaces: NamespaceLabels, checks: health.Checks) -> None:
        self._settings, self._namespaces, self._checks = settings, namespaces, checks
        self._runner: web.ServerRunner | None = None
        self._pages: Mapping[str, tuple[str, Page]] = self._by_path()
        self.held_bytes = 0

    @property
    def paths(self) -> frozenset[str]:
        """The paths that are served."""
        return frozenset(self._pages)

    async def start(self, host: str, port: int, context: ssl.SSLContext | None) -> int:
        """Opens the port and returns it; the system chooses one if `port` is 0. Raises KubeNexusError."""
        server = web.Server(
            self._page,
            request_factory=_request,
            access_log=None,
            lingering_time=0.5,  # for the rest of a body that is not read
            keepalive_timeout=IDLE_SECONDS,
        )
        self._runner = runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=10.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, ssl_context=context).start()
        except OSError as error:
            await runner.cleanup()
            raise KubeNexusError(cannot_listen(host, port, error)) from error
        return int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Closes the port, after responses in progress are sent."""
        if self._runner is not None:
            await self._runner.cleanup()

    def _by_path(self) -> dict[str, tuple[str, Page]]:
        """Returns the method and the page of each path."""
        reviewed = self._reviewed
        return {
            "/validate": ("POST", reviewed(self._validate, decode_outline)),
            "/mutate/gang": ("POST", reviewed(self._mutate_gang)),
            "/mutate/scheduler-name": ("POST", reviewed(self._mutate_scheduler_name)),
            "/mutate/gpu-class": ("POST", reviewed(self._mutate_gpu_class)),
            **{f"/{place}": ("GET", self._health) for place in _PLACES},
        }

    # --- reviews ----------------------------------------------------------------------------------------------------

    async def _validate(self, request: AdmissionRequest) -> Response:
        return validate(request, self._settings.validation)

    async def _mutate_gang(self, request: AdmissionRequest) -> Response:
        return mutate_gang(request, self._settings.scheduler_name)

    async def _mutate_scheduler_name(self, request: AdmissionRequest) -> Response:
        return await self._for_namespace(request, "its scheduler", mutate_scheduler_name)

    async def _mutate_gpu_class(self, request: AdmissionRequest) -> Response:
        settings = self._settings.gpu_class
        return await self._for_namespace(
            request, "its GPU class", lambda each, labels: mutate_gpu_class(each, labels, settings)
        )

    async def _for_namespace(
        self, request: AdmissionRequest, what: str, change: Callable[[AdmissionRequest, dict[str, str]], Response]
    ) -> Response:
        if not request.namespace:
            return ALLOWED
        labels = await self._namespaces.find(request.namespace)
        if labels is None:
            return Response(warnings=(f"the labels of the namespace could not be read: {what} was not set",))
        return change(request, dict(labels))

    # --- HTTP -------------------------------------------------------------------------------------------------------

    async def _page(self, request: web.BaseRequest) -> web.Response:
        method, page = self._pages.get(request.path, ("", None))
        if page is None:
            return _error(404, "not found")
        if request.method != method and not (method == "GET" and request.method == "HEAD"):
            return _error(405, f"this path takes {method}", {"Allow": method})
        return await page(request)

    def _reviewed(self, review: Review, decode: Decode = decode_review) -> Page:
        async def answer(request: web.BaseRequest) -> web.Response:
            size = MAX_BODY if request.content_length is None else request.content_length
            if size > MAX_BODY:
                return _error(413, f"a review has at most {MAX_BODY} bytes")
            if self.held_bytes + size > MAX_HELD:
                return _error(503, "too many reviews at the same time")
            self.held_bytes += size
            try:
                return await self._answer(request, review, decode)
            finally:
                self.held_bytes -= size

        return answer

    async def _answer(self, request: web.BaseRequest, review: Review, decode: Decode) -> web.Response:
        try:
            if request.content.is_eof():  # all of it is there: no timer is needed
                body = await request.read()
            else:
                async with asyncio.timeout(BODY_SECONDS):
                    body = await request.read()
        except TimeoutError:
            return _error(408, "the body did not arrive in time")
        try:
            asked = decode(body)
            found = await review(asked)
        except Malformed as problem:
            return _error(400, str(problem))
        except Exception as error:  # a bug must not end the connection, which other reviews share
            log.error("Cannot review an object", err=described(error), path=request.path)
            return _error(500, "the review failed")
        if not found.allowed:
            log.v(1, "Refused", kind=asked.kind.kind, namespace=asked.namespace or "", why=found.message)
        return web.Response(body=encode_review(asked.uid, found), headers=_JSON)

    async def _health(self, request: web.BaseRequest) -> web.Response:
        place = request.path.strip("/")
        checks = self._checks if place == "readyz" else {"ping": health.ping}
        status, text = health.root_page(place, checks, verbose="verbose" in request.query)
        return web.Response(status=status, text=text)


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY)


def _error(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=text + "\n", headers=headers)
