"""The process of `kubenexus webhook`: its certificate, its server, and the renewal of the certificate."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from kubenexus.app.http.serving_certificates import ReloadingCertificate
from kubenexus.base.clock import Clock, Sleep
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.observe import logs
from kubenexus.webhook.certificates import CertificateTerms, ManagedCertificate, expires_at
from kubenexus.webhook.namespaces import NamespaceLabels
from kubenexus.webhook.server import WebhookServer, WebhookSettings

ROUND: Final = 60.0  # seconds between two looks at the Secret and the configurations
RETRY: Final = 2.0  # seconds, before there is a first certificate

log = logs.get("webhook")


class ServingOptions(msgspec.Struct, frozen=True):
    """Where to listen. With `certificate` and `key` these files are served, else the pair that `terms` describe."""

    host: str
    port: int
    certificate: str = ""
    key: str = ""
    terms: CertificateTerms | None = None


class GivenCertificate:
    """A certificate in files that another program renews, such as cert-manager."""

    def __init__(self, certificate: Path, key: Path, clock: Clock) -> None:
        self._certificate, self._clock = certificate, clock
        self.context = ReloadingCertificate(certificate, key, on_problem=_log_certificate_problem).context

    def check(self) -> str | None:
        """Returns why the certificate cannot be used, for readiness."""
        try:
            expiry = expires_at(self._certificate.read_text(encoding="ascii", errors="replace"))
        except OSError as error:
            return f"the certificate cannot be read: {error.strerror}"
        return "the certificate has expired" if expiry <= self._clock.now() else None


class WebhookProcess:
    """Runs until `stop` is called."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        settings: WebhookSettings,
        options: ServingOptions,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._api, self._clock, self._options, self._sleep = api, clock, options, sleep
        self._settings = settings
        self._ended = asyncio.Event()
        self.port = 0

    def stop(self) -> None:
        """Makes `run` answer the reviews in progress and return. Called on SIGTERM."""
        self._ended.set()

    async def run(self) -> None:
        """Raises KubeNexusError if the port or the given certificate cannot be used."""
        serving = asyncio.ensure_future(self._serve())
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait([serving, ended], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
        finally:
            for task in (serving, ended):
                task.cancel()
            await asyncio.gather(serving, ended, return_exceptions=True)

    async def _serve(self) -> None:
        options = self._options
        managed: ManagedCertificate | None = None
        certificate: ManagedCertificate | GivenCertificate
        if options.terms is None:
            certificate = GivenCertificate(Path(options.certificate), Path(options.key), self._clock)
        else:
            certificate = managed = ManagedCertificate(self._api, self._clock, options.terms)
            while not await self._refreshed(managed):
                await self._sleep(RETRY)
        server = WebhookServer(
            self._settings, NamespaceLabels(self._api, self._clock), {"certificate": certificate.check}
        )
        self.port = await server.start(options.host, options.port, certificate.context)
        log.info("Serving admission reviews", address=options.host, port=self.port)
        try:
            while True:
                await self._sleep(ROUND)
                if managed is not None:
                    await self._refreshed(managed)
        finally:
            await server.stop()

    async def _refreshed(self, certificate: ManagedCertificate) -> bool:
        try:
            await certificate.refresh()
        except (ApiError, Unreachable, Uncertain) as error:
            log.warning("Cannot look after the certificate; trying again", err=str(error))
            return False
        except KubeNexusError as error:
            if certificate.check() is not None:
                raise
            log.error("Cannot renew the certificate", err=str(error))
            return False
        return True


def _log_certificate_problem(text: str) -> None:
    log.error("Cannot use the new certificate; keeping the old one", err=text)
