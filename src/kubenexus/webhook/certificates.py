"""The webhook's own certificate: made by itself, kept in a Secret, renewed in time, and trusted by the API server.

    make ──▶ Secret ──▶ caBundle of the webhook configurations ──▶ serve

The certificate signs itself, so it is its own authority. All replicas serve the pair in the Secret; of two that make
one at the same time, the first to write wins. A new pair is served one round after its certificate was put into the
configurations, beside the old one: until then the API server may still know only the old one.
"""

import asyncio
import base64
import binascii
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from kubenexus.api.codec import from_json
from kubenexus.api.meta import ApiObject, ObjectMeta
from kubenexus.app.http.serving_certificates import CertificateSwitch, context_from_pem, make_self_signed
from kubenexus.base.clock import Clock
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import STRATEGIC_PATCH, Api, ApiError
from kubenexus.client.certificate_expiry import certificate_expiry
from kubenexus.client.kinds import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, ApiResource
from kubenexus.client.verbs import create, get, patch
from kubenexus.observe import logs

DAYS: Final = 365
RENEW_BEFORE: Final = 120 * 86_400.0  # seconds that are left when a new one is made
_MAX_BUNDLE: Final = 4  # certificates that are trusted at the same time
_TRIES: Final = 3  # of a write that another replica may win
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"

log = logs.get("webhook")

MakePair = Callable[[Sequence[str], int], bytes]


class CertificateTerms(msgspec.Struct, frozen=True):
    """Where the pair is kept, for which hosts it is, and the name of the configurations that have to trust it."""

    namespace: str
    secret: str
    hosts: Sequence[str]
    configuration: str


class CertificatePair(msgspec.Struct, frozen=True):
    """A key and its certificate, and the certificates to trust, all as PEM."""

    certificate: str
    key: str
    bundle: str

    @property
    def pem(self) -> bytes:
        return f"{self.key}\n{self.certificate}".encode()

    @property
    def data(self) -> dict[str, str]:
        """The data of the Secret."""
        return {"tls.crt": _encoded(self.certificate), "tls.key": _encoded(self.key), "ca.crt": _encoded(self.bundle)}

    @property
    def expires_at(self) -> float:
        """Seconds since 1970; 0 if the certificate cannot be read."""
        return expires_at(self.certificate)


class _Secret(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] | None = None


class _ClientConfig(ApiObject):
    ca_bundle: str = ""


class _Webhook(ApiObject):
    name: str = ""
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    webhooks: list[_Webhook] = []


class ManagedCertificate:
    """Keeps the certificate of the server. `refresh` is called at the start and then every minute; `context` is for
    the server once `refresh` has returned."""

    def __init__(self, api: Api, clock: Clock, terms: CertificateTerms, make: MakePair = make_self_signed) -> None:
        self._api, self._clock, self._terms, self._make = api, clock, terms, make
        self._switch: CertificateSwitch | None = None
        self._served: CertificatePair | None = None

    @property
    def context(self) -> ssl.SSLContext:
        if self._switch is None:
            raise KubeNexusError("there is no certificate yet")
        return self._switch.context

    def check(self) -> str | None:
        """Returns why the certificate cannot be used, for readiness."""
        if self._served is None:
            return "there is no certificate yet"
        return "the certificate has expired" if self._served.expires_at <= self._clock.now() else None

    async def refresh(self) -> None:
        """Reads the pair, makes a new one if it is missing or about to expire, and makes the API server trust it.
        Raises ApiError, Unreachable, Uncertain, or KubeNexusError if no certificate can be made."""
        pair = await self._stored_pair()
        patched = [await self._trust(kind, pair.bundle) for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)]
        if self._served == pair:
            return
        if self._served is not None and any(patched) and self.check() is None:
            return  # in the next round, when the API server has seen the configurations
        context = context_from_pem(pair.pem)
        if self._switch is None:
            self._switch = CertificateSwitch(context)
        else:
            self._switch.switch(context)
            log.info("Serving a new certificate", secret=f"{self._terms.namespace}/{self._terms.secret}")
        self._served = pair

    async def _stored_pair(self) -> CertificatePair:
        name = (self._terms.namespace, self._terms.secret)
        for _ in range(_TRIES):
            secret = await self._secret()
            found = None if secret is None else read_pair(secret.data or {}, self._clock.now())
            if found is not None and found.expires_at - self._clock.now() > RENEW_BEFORE:
                return found
            made = await self._made(found or self._served)  # if the Secret is gone, what is served stays trusted
            try:
                if secret is None:
                    await self._api.send(create(SECRETS, self._new_secret(made), self._terms.namespace))
                else:
                    change = {"metadata": {"resourceVersion": secret.metadata.resource_version}, "data": made.data}
                    await self._api.send(patch(SECRETS, *name, change))
            except ApiError as error:
                if error.reason in ("AlreadyExists", "Conflict"):
                    continue
                raise
            log.info("Made a certificate", secret=f"{self._terms.namespace}/{self._terms.secret}")
            return made
        raise KubeNexusError(
            f"the Secret {self._terms.namespace}/{self._terms.secret} is changed by others all the time"
        )

    async def _secret(self) -> _Secret | None:
        try:
            body = await self._api.send(get(SECRETS, self._terms.namespace, self._terms.secret))
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return from_json(body, _Secret)

    async def _made(self, old: CertificatePair | None) -> CertificatePair:
        pem = (await asyncio.to_thread(self._make, self._terms.hosts, DAYS)).decode("ascii")
        (certificate,) = certificates_in(pem)
        key = pem.replace(certificate, "").strip() + "\n"
        trusted = [certificate, *(certificates_in(old.bundle) if old is not None else ())][:_MAX_BUNDLE]
        return CertificatePair(certificate, key, "".join(trusted))

    def _new_secret(self, pair: CertificatePair) -> dict[str, Any]:
        metadata = {"name": self._terms.secret, "namespace": self._terms.namespace}
        identity = {"apiVersion": SECRETS.api_version, "kind": SECRETS.kind, "metadata": metadata}
        return identity | {"type": "Opaque", "data": pair.data}

    async def _trust(self, kind: ApiResource, bundle: str) -> bool:
        """Puts the bundle into the webhooks of a configuration. Returns whether that changed something. There may be
        no such configuration: each of the two is optional."""
        name, wanted = self._terms.configuration, _encoded(bundle)
        try:
            body = await self._api.send(get(kind, "", name))
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        found = from_json(body, _Configuration)
        stale = [each.name for each in found.webhooks if each.client_config.ca_bundle != wanted]
        if not stale:
            return False
        change = {
            "metadata": {"resourceVersion": found.metadata.resource_version},
            "webhooks": [{"name": each, "clientConfig": {"caBundle": wanted}} for each in stale],
        }
        await self._api.send(patch(kind, "", name, change, content_type=STRATEGIC_PATCH))
        return True


def read_pair(data: dict[str, str], now: float) -> CertificatePair | None:
    """Returns the pair in a Secret's data, without authorities that have expired; None if it cannot be used."""
    try:
        certificate, key, bundle = (
            base64.b64decode(data.get(name, ""), validate=True).decode("ascii")
            for name in ("tls.crt", "tls.key", "ca.crt")
        )
        context_from_pem(f"{key}\n{certificate}".encode())
    except (binascii.Error, UnicodeDecodeError, KubeNexusError):
        return None
    trusted = [each for each in certificates_in(bundle) if expires_at(each) > now]
    return CertificatePair(certificate, key, "".join(trusted[:_MAX_BUNDLE])) if trusted else None


def certificates_in(pem: str) -> list[str]:
    """Returns each certificate of a PEM text by itself."""
    parts = [each.partition(_END)[0] for each in pem.split(_BEGIN)[1:]]
    return [f"{_BEGIN}{each}{_END}\n" for each in parts]


def expires_at(certificate: str) -> float:
    """Returns when the first certificate of a PEM text expires, in seconds since 1970; 0 if it cannot be read."""
    expiry = certificate_expiry(certificate.encode("ascii", "replace"))
    return 0.0 if expiry is None else expiry.timestamp()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode("ascii")).decode("ascii")
