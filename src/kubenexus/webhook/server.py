"""The HTTP server of the webhook: `/validate`, `/mutate/gang`, `/mutate/scheduler-name`, `/mutate/gpu-class`, health.

A request has bounds: the size of its body, the time in which the body has to arrive, and the bytes that all requests
together may hold. A request beyond them gets an HTTP error, and the API server goes on by its `failurePolicy`.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web

from kubenexus.app.http import health
from kubenexus.base.errors import KubeNexusError, Malformed, described
from kubenexus.observe import logs
from kubenexus.webhook.admission import ALLOWED, AdmissionRequest, Response, decode_review, encode_review
from kubenexus.webhook.mutation import GpuClassSettings, mutate_gang, mutate_gpu_class, mutate_scheduler_name
from kubenexus.webhook.namespaces import NamespaceLabels
from kubenexus.webhook.validation import ValidationSettings, validate

MAX_BODY: Final = 8 << 20  # bytes: the largest object that etcd stores, old and new, as JSON
MAX_HELD: Final = 64 << 20  # bytes of all bodies together
BODY_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 120.0  # of a connection; more than the 90 after which an API server closes its own
_PLACES: Final = ("livez", "readyz", "healthz")

log = logs.get("webhook")

Review = Callable[[AdmissionRequest], Awaitable[Response]]


class WebhookSettings(msgspec.Struct, frozen=True):
    """`scheduler_name` is put into the templates of jobs that ask for a gang; "" leaves them alone."""

    validation: ValidationSettings = ValidationSettings()
    gpu_class: GpuClassSettings = GpuClassSettings()
    scheduler_name: str = ""


class WebhookServer:
    """Serves admission reviews over HTTPS. `checks` are those of `/readyz`; `held_bytes` is the size of all bodies."""

    def __init__(self, settings: WebhookSettings, namespaces: NamespaceLabels, checks: health.Checks) -> None:
        self._settings, self._namespaces, self._checks = settings, namespaces, checks
        self._runner: web.AppRunner | None = None
        self.held_bytes = 0

    async def start(self, host: str, port: int, context: ssl.SSLContext | None) -> int:
        """Opens the port and returns it; the system chooses one if `port` is 0. Raises KubeNexusError."""
        self._runner = runner = web.AppRunner(
            self.application(),
            access_log=None,
            handle_signals=False,
            shutdown_timeout=10.0,
            lingering_time=0.5,  # for the rest of a body that is not read
            keepalive_timeout=IDLE_SECONDS,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, ssl_context=context).start()
        except OSError as error:
            await runner.cleanup()
            raise KubeNexusError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        return int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Closes the port, after responses in progress are sent."""
        if self._runner is not None:
            await self._runner.cleanup()

    def application(self) -> web.Application:
        """Returns the pages by their paths."""
        application = web.Application(client_max_size=MAX_BODY)
        application.router.add_post("/validate", self._reviewed(self._validate))
        application.router.add_post("/mutate/gang", self._reviewed(self._mutate_gang))
        application.router.add_post("/mutate/scheduler-name", self._reviewed(self._mutate_scheduler_name))
        application.router.add_post("/mutate/gpu-class", self._reviewed(self._mutate_gpu_class))
        for place in _PLACES:
            application.router.add_get(f"/{place}", self._health)
        return application

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

    def _reviewed(self, review: Review) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            size = MAX_BODY if request.content_length is None else request.content_length
            if size > MAX_BODY:
                return _error(413, f"a review has at most {MAX_BODY} bytes")
            if self.held_bytes + size > MAX_HELD:
                return _error(503, "too many reviews at the same time")
            self.held_bytes += size
            try:
                return await self._answer(request, review)
            finally:
                self.held_bytes -= size

        return answer

    async def _answer(self, request: web.Request, review: Review) -> web.Response:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.read()
        except TimeoutError:
            return _error(408, "the body did not arrive in time")
        try:
            asked = decode_review(body)
            found = await review(asked)
        except Malformed as problem:
            return _error(400, str(problem))
        except Exception as error:  # a bug must not end the connection, which other reviews share
            log.error("Cannot review an object", err=described(error), path=request.path)
            return _error(500, "the review failed")
        if not found.allowed:
            log.v(1, "Refused", kind=asked.kind.kind, namespace=asked.namespace or "", why=found.message)
        return web.Response(body=encode_review(asked.uid, found), content_type="application/json")

    async def _health(self, request: web.Request) -> web.Response:
        place = request.path.strip("/")
        checks = self._checks if place == "readyz" else {"ping": health.ping}
        status, text = health.root_page(place, checks, verbose="verbose" in request.query)
        return web.Response(status=status, text=text)


def _error(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text + "\n")
