"""The two ports of the process: all pages over HTTPS with authorization, and health in plain HTTP for probes."""

import asyncio
import importlib
import ssl
from pathlib import Path

from kubenexus.app.election.leader import LeaderElector
from kubenexus.app.flags import Flags
from kubenexus.app.http.api.live_api import LiveApi
from kubenexus.app.http.health import Checks, Warnings
from kubenexus.app.scheduler import Scheduler
from kubenexus.app.watch.watches import OUTDATED
from kubenexus.base.clock import Clock
from kubenexus.client.transport import ApiClient
from kubenexus.config.v1 import KubeSchedulerConfiguration
from kubenexus.observe import logs

MAX_UNANSWERED_SECONDS = 30.0  # seconds without an answer of the API server until the process is no longer ready
_WARN_SECONDS = 10.0  # and until `/readyz?verbose` names them

log = logs.get("serving")


class HttpEndpoints:
    """Opens and closes the ports that the flags name. Called by `app.process`."""

    def __init__(
        self,
        document: KubeSchedulerConfiguration,
        flags: Flags,
        client: ApiClient,
        clock: Clock,
        live: LiveApi | None = None,
    ) -> None:
        self._document, self._flags, self._client, self._clock = document, flags, client, clock
        self._live = live
        self._server: object = None

    @property
    def any(self) -> bool:
        return bool(self._flags.secure_port or self._flags.health_bind_address)

    async def load(self) -> None:
        """Imports the web server in a worker thread, if there is a port to serve. The import takes a tenth of a second,
        which is spent while the process waits for the API server."""
        if self.any:
            await asyncio.to_thread(importlib.import_module, "kubenexus.app.http.server")

    async def open(self, scheduler: Scheduler, elector: LeaderElector | None) -> None:
        """Opens the ports. Raises KubeNexusError if a port is taken or a certificate cannot be used."""
        flags = self._flags
        if not self.any:
            return
        from kubenexus.app.http.authorization import ALWAYS_ALLOWED, RequestAuthorizer
        from kubenexus.app.http.server import HttpServer, ServedContent, parse_host_port

        checks = _checks(scheduler, self._client, elector)
        now, warnings = self._clock.now(), {"readyz": _warnings(scheduler, self._client)}
        content = ServedContent(checks, scheduler.metrics.text, self._document, self._clock, now, warnings=warnings)
        public = () if self._live is None else self._live.public
        authorizer = RequestAuthorizer(self._client, self._clock, (*ALWAYS_ALLOWED, *public))
        if self._live is None:
            self._server = server = HttpServer(content, authorizer)
        else:
            add_routes, paths = self._live.open(scheduler, self._clock, authorizer)
            self._server = server = HttpServer(content, authorizer, add_routes, paths)
        if flags.health_bind_address:
            host, port = parse_host_port(flags.health_bind_address)
            log.info("Serving health", port=await server.start_health(host, port))
        if flags.secure_port:
            context = await self._tls_context()
            port = await server.start_secure(flags.bind_address, flags.secure_port, context)
            log.info("Serving securely", address=flags.bind_address, port=port)

    async def close(self) -> None:
        if self._live is not None:
            await self._live.close()
        if self._server is not None:
            await self._server.stop()  # type: ignore[attr-defined]

    async def _tls_context(self) -> ssl.SSLContext:
        from kubenexus.app.http.serving_certificates import ReloadingCertificate, client_authority, self_signed

        authority = await client_authority(self._client)
        flags = self._flags
        if flags.tls_cert_file:
            files = ReloadingCertificate(
                Path(flags.tls_cert_file), Path(flags.tls_private_key_file), authority, _log_certificate_problem
            )
            return files.context
        return await self_signed("localhost", authority)


def _log_certificate_problem(text: str) -> None:
    log.error("Cannot use the new certificate; keeping the old one", err=text)


def _warnings(scheduler: Scheduler, client: ApiClient) -> Warnings:
    def warnings() -> list[str]:
        kinds, silence = ",".join(sorted(scheduler.watches.missing)), _silence(client, _WARN_SECONDS)
        missing = f"optional kinds cannot be listed or watched: {kinds}" if kinds else None
        return [each for each in (missing, silence) if each]

    return warnings


def _silence(client: ApiClient, bound: float) -> str | None:
    """Returns how long the API server has not answered, None if that is less than `bound`."""
    seconds = client.unanswered_seconds
    return None if seconds < bound else f"the API server has not answered for {seconds:.0f} seconds"


def _checks(scheduler: Scheduler, client: ApiClient, elector: LeaderElector | None) -> dict[str, Checks]:
    def synced() -> str | None:
        missing, outdated = scheduler.watches.unsynced, scheduler.watches.outdated(OUTDATED)
        if missing:
            return f"not listed yet: {', '.join(missing)}"
        return f"not heard of for {OUTDATED:.0f} seconds: {', '.join(outdated)}" if outdated else None

    def access() -> str | None:
        if client.unauthorized_since is not None:
            return "the API server answers 401 Unauthorized"
        return _silence(client, MAX_UNANSWERED_SECONDS)

    def leads() -> str | None:
        return None if elector is None else elector.check()

    ready: Checks = {"leaderElection": leads, "informer-sync": synced, "api-server-access": access}
    # Not in livez: a restart does not bring the API server back, and loses the state.
    return {"livez": {"leaderElection": leads}, "readyz": ready, "healthz": {"leaderElection": leads}}
