"""A served cluster: address, token, certificate and kubeconfig."""

import asyncio
import base64
import ipaddress
import json
import os
import random
import ssl
import tempfile
from pathlib import Path

import msgspec

from kubenexus.app.http.serving_certificates import self_signed, server_context
from kubenexus.base.clock import Clock
from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.apiserver.listening import Listener, listen
from kubenexus.sim.apiserver.server import ApiServer

NAME = "kubenexus"


class ServingOptions(msgspec.Struct, frozen=True):
    """Where a cluster is served and how clients authenticate. A token requires HTTPS: kubectl sends none over plain
    HTTP. For `gates` and `versions` see `optional_kinds`."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    certificate: str = ""
    key: str = ""
    gates: tuple[str, ...] = ()
    versions: dict[str, bool] = {}

    @property
    def secure(self) -> bool:
        return bool(self.token or self.certificate)


class ServedCluster:
    """A cluster that listens on a port. The owner must call `close`."""

    def __init__(self, server: ApiServer, listener: Listener, options: ServingOptions, authority: str) -> None:
        self.server, self._listener, self._options, self._authority = server, listener, options, authority

    @property
    def address(self) -> str:
        host = f"[{self._options.host}]" if ":" in self._options.host else self._options.host
        return f"{'https' if self._options.secure else 'http'}://{host}:{self._listener.port}"

    def kubeconfig(self) -> str:
        """Returns a kubeconfig for kubectl and other clients. JSON is valid YAML."""
        cluster: dict[str, str] = {"server": self.address}
        if self._authority:
            cluster["certificate-authority-data"] = base64.b64encode(self._authority.encode()).decode()
            cluster["tls-server-name"] = "localhost"
        user = {"token": self._options.token} if self._options.token else {}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": cluster}],
            "users": [{"name": NAME, "user": user}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
            "current-context": NAME,
        }
        return json.dumps(content, indent=2) + "\n"

    async def close(self) -> None:
        await self._listener.close()


async def serve(options: ServingOptions, clock: Clock, rng: random.Random) -> ServedCluster:
    """Starts an empty cluster. Raises KubeNexusError if the port is in use, or if a host beyond the loopback has no
    token."""
    if not options.token and not _loopback(options.host):
        raise KubeNexusError(f"--host {options.host} is open to others: set --token, or serve the loopback only")
    context = await _context(options)
    server = ApiServer(clock, rng, token=options.token, gates=options.gates, versions=options.versions)
    listener = await listen(server, options.host, options.port, context)
    authority = await _authority(listener.port, options) if context else ""
    return ServedCluster(server, listener, options, authority)


def write_kubeconfig(served: ServedCluster, path: Path) -> None:
    """Writes the kubeconfig, readable by its owner only: it may contain a token.

    An existing file or link is replaced by a new file, since its mode and open handles would stay. A pipe or a terminal
    is written to.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(served.kubeconfig(), encoding="utf-8")
        else:
            _replace(path, served.kubeconfig())
    except OSError as error:
        raise KubeNexusError(f"cannot write {path}: {error.strerror}") from None


def _replace(path: Path, text: str) -> None:
    """Writes the file atomically, with mode 0600 from the first byte."""
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(number, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _context(options: ServingOptions) -> ssl.SSLContext | None:
    if options.certificate:
        return server_context(options.certificate, options.key or options.certificate)
    return await self_signed(options.host) if options.token else None


async def _authority(port: int, options: ServingOptions) -> str:
    """Returns the certificate authority for clients: a self-signed certificate is its own, for files it is unknown
    ("")."""
    if options.certificate:
        return ""
    host = options.host if _loopback(options.host) else "127.0.0.1"
    try:
        return await asyncio.to_thread(ssl.get_server_certificate, (host, port), timeout=5)
    except OSError:
        return ""
