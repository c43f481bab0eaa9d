"""The entries of a kubeconfig, and what follows from them: trusted authority, client certificate, credentials."""

import base64
import binascii
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.base.clock import Clock
from kubenexus.client.credentials import (
    ClientConfigError,
    Credentials,
    StaticCredentials,
    TokenFileCredentials,
    basic_auth_header,
    bearer_header,
)
from kubenexus.client.exec_plugin import ExecConfig, ExecPlugin
from kubenexus.client.tls import PemSource


class ContextEntry(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class ClusterEntry(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""


class UserEntry(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    auth_provider: dict[str, Any] | None = None
    exec_: ExecConfig | None = msgspec.field(default=None, name="exec")


class KubeconfigUser(msgspec.Struct, frozen=True, kw_only=True):
    """A selected context: a user on a cluster. All properties and methods may raise ClientConfigError."""

    source: str
    namespace: str
    cluster: ClusterEntry
    cluster_at: str
    cluster_folder: str
    user: UserEntry
    user_at: str
    user_folder: str

    @property
    def server(self) -> str:
        return self.cluster.server

    @property
    def server_name(self) -> str:
        return self.cluster.tls_server_name

    @property
    def proxy_url(self) -> str:
        return self.cluster.proxy_url

    @property
    def insecure(self) -> bool:
        return self.cluster.insecure_skip_tls_verify

    @property
    def authority(self) -> PemSource | None:
        """The certificate authority to trust. Raises if `insecure` is set as well, as kubectl does."""
        field = f"{self.cluster_at}.certificate-authority"
        entry = self.cluster
        found = _material(field, entry.certificate_authority, entry.certificate_authority_data, self.cluster_folder)
        if found is not None and self.insecure:
            raise ClientConfigError(
                f"{self.cluster_at}.insecure-skip-tls-verify: a certificate authority is given as well"
            )
        return found

    @property
    def certificate(self) -> tuple[PemSource, PemSource] | None:
        """The client certificate and its key."""
        at, entry, folder = self.user_at, self.user, self.user_folder
        shown = _material(f"{at}.client-certificate", entry.client_certificate, entry.client_certificate_data, folder)
        key = _material(f"{at}.client-key", entry.client_key, entry.client_key_data, folder)
        if shown is None and key is None:
            return None
        if shown is None or key is None:
            missing, there = ("client-certificate", "client-key") if key else ("client-key", "client-certificate")
            raise ClientConfigError(f"{at}.{missing}: missing, though there is a {there}")
        return shown, key

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The impersonation headers."""
        entry = self.user
        if entry.as_user_extra:
            raise ClientConfigError(f"{self.user_at}.as-user-extra: not supported")
        named = [("Impersonate-User", entry.as_), ("Impersonate-Uid", entry.as_uid)]
        named += [("Impersonate-Group", group) for group in entry.as_groups]
        asked = tuple((name, value) for name, value in named if value)
        if asked and not entry.as_:
            raise ClientConfigError(f"{self.user_at}.as: missing, though there is as-uid or as-groups")
        if any(not value.isascii() or not value.isprintable() for _, value in asked):
            raise ClientConfigError(f"{self.user_at}.as: has characters that cannot be sent")
        return asked

    def credentials(self, clock: Clock, env: Mapping[str, str]) -> Credentials:
        """Returns the credentials for each call."""
        entry, at = self.user, self.user_at
        if entry.auth_provider is not None:
            raise ClientConfigError(
                f"{at}.auth-provider: no longer supported by Kubernetes; use an exec plugin instead"
            )
        if entry.username and (entry.token or entry.token_file):
            raise ClientConfigError(f"{at}.username: there is a token as well; only one of them can be used")
        if entry.token_file:
            path = os.path.join(self.user_folder, entry.token_file)
            return TokenFileCredentials(path, clock, subject=f"{at}.tokenFile", fallback=entry.token)
        if entry.token:
            return StaticCredentials(bearer_header(entry.token, f"{at}.token"))
        if entry.username:
            return StaticCredentials(basic_auth_header(entry.username, entry.password))
        return self._plugin(entry.exec_, clock, env) if entry.exec_ is not None else StaticCredentials()

    def _plugin(self, config: ExecConfig, clock: Clock, env: Mapping[str, str]) -> Credentials:
        cluster = self._described() if config.provide_cluster_info else None
        return ExecPlugin(config, clock, env, at=f"{self.user_at}.exec", folder=self.user_folder, cluster=cluster)

    def _described(self) -> dict[str, Any]:
        """Returns the cluster in the form that exec plugins expect."""
        authority, entry = self.authority, self.cluster
        told = {
            "server": entry.server,
            "tls-server-name": entry.tls_server_name,
            "insecure-skip-tls-verify": entry.insecure_skip_tls_verify,
            "certificate-authority-data": base64.b64encode(authority.read()).decode() if authority else "",
            "proxy-url": entry.proxy_url,
        }
        return {key: value for key, value in told.items() if value}


def _material(field: str, path: str, data: str, folder: str) -> PemSource | None:
    """Returns the PEM of an entry. Data wins over a file, as with kubectl."""
    if data:
        try:
            return PemSource(f"{field}-data", data=base64.b64decode("".join(data.split()), validate=True))
        except (binascii.Error, ValueError):
            raise ClientConfigError(f"{field}-data: not base64") from None
    return PemSource(field, path=os.path.join(folder, path)) if path else None
