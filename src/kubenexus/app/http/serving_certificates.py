"""The certificate of the secure port: from files, which are read again when they change, or self-signed.

A self-signed certificate is made by the `openssl` program, or by the `cryptography` package if that is installed;
neither is a dependency. It serves for encryption only: no client can verify it.
"""

import asyncio
import contextlib
import importlib.util
import ipaddress
import os
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from kubenexus.api.codec import from_json
from kubenexus.api.meta import ApiObject
from kubenexus.base.clock import WallClock
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.client.kinds import CONFIG_MAPS
from kubenexus.client.verbs import get

AUTHORITY: Final = ("kube-system", "extension-apiserver-authentication")  # a ConfigMap
NO_WAY: Final = (
    "cannot make a certificate for the secure port: there is neither an openssl program nor the cryptography package; "
    "name --tls-cert-file and --tls-private-key-file (a scheduler can do without the port: --secure-port 0)"
)
YEAR: Final = 365


class _ConfigMap(ApiObject):
    data: dict[str, str] = {}


class CertificateSwitch:
    """A TLS context for a server, whose certificate can be exchanged: `context` is for the server. Connections that
    are open keep the certificate they began with."""

    def __init__(self, first: ssl.SSLContext) -> None:
        self.context = self._current = first
        self.context.sni_callback = self._on_connect

    def switch(self, context: ssl.SSLContext) -> None:
        """Presents the certificate of `context` to new connections."""
        self._current = context

    def before_connection(self) -> None:
        """Called for each new connection."""

    def _on_connect(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        self.before_connection()
        connection.context = self._current


class ReloadingCertificate(CertificateSwitch):
    """A certificate and its key in two files that are read again when they change, as cert-manager and kubelets renew
    them. The files are checked at each new connection. Files that cannot be used (half written, not matching) are
    reported once, and the old certificate stays.
    """

    def __init__(
        self, certificate: Path, key: Path, authority: str = "", on_problem: Callable[[str], None] = lambda _: None
    ) -> None:
        self._certificate, self._key, self._authority, self._on_problem = certificate, key, authority, on_problem
        self._stamp = self._file_stamp()
        super().__init__(self._load())

    def before_connection(self) -> None:
        stamp = self._file_stamp()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self.switch(self._load())
            except KubeNexusError as error:
                self._on_problem(str(error))

    def _file_stamp(self) -> tuple[Any, ...]:
        found = []
        for path in (self._certificate, self._key):
            with contextlib.suppress(OSError):
                seen = path.stat()
                found.append((seen.st_mtime_ns, seen.st_size, seen.st_ino))
        return tuple(found)

    def _load(self) -> ssl.SSLContext:
        return server_context(self._certificate, self._key, self._authority)


def server_context(certificate: str | Path, key: str | Path, authority: str = "") -> ssl.SSLContext:
    """Returns a TLS context, 1.2 or newer. With `authority` (PEM), clients may present certificates that it signed;
    without, no client certificate is requested."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        _check_readable(certificate, key)
        context.load_cert_chain(certificate, key)
        if authority:
            context.load_verify_locations(cadata=authority)
            context.verify_mode = ssl.CERT_OPTIONAL
    except (OSError, ssl.SSLError, ValueError) as error:
        raise KubeNexusError(f"cannot use the certificate {certificate} with the key {key}: {error}") from error
    return context


def _check_readable(certificate: str | Path, key: str | Path) -> None:
    """Raises OSError with the name of the file that cannot be read. OpenSSL does not name it."""
    for name, path in (("certificate", certificate), ("key", key)):
        try:
            Path(path).open("rb").close()
        except OSError as error:
            raise OSError(f"the {name} cannot be read: {error.strerror}") from None


async def self_signed(host: str, authority: str = "") -> ssl.SSLContext:
    """Returns a context with a certificate for this process only. Raises KubeNexusError with the remedy if none can be
    made."""
    return context_from_pem(await asyncio.to_thread(make_self_signed, (host,), YEAR), authority)


def context_from_pem(pem: bytes, authority: str = "") -> ssl.SSLContext:
    """Returns a context with the key and the certificate in `pem`. Raises KubeNexusError."""
    with _as_file(pem) as path:
        return server_context(path, path, authority)


async def client_authority(api: Api) -> str:
    """Returns the CA for client certificates in this cluster as PEM, "" if it cannot be read. Tokens work without
    it."""
    try:
        found = from_json(await api.send(get(CONFIG_MAPS, *AUTHORITY)), _ConfigMap)
        return found.data.get("client-ca-file", "")
    except (ApiError, Unreachable, Uncertain, Malformed):
        return ""


def make_self_signed(hosts: Sequence[str], days: int) -> bytes:
    """Returns key and certificate for these hosts, and for this machine, as PEM, one after the other. Blocks for some
    milliseconds. Raises KubeNexusError with the remedy."""
    program = shutil.which("openssl")
    if program is not None:
        return _self_signed_by_openssl(program, hosts, days)
    if importlib.util.find_spec("cryptography") is not None:
        return self_signed_by_cryptography(hosts, days)
    raise KubeNexusError(NO_WAY)


def _self_signed_by_openssl(program: str, hosts: Sequence[str], days: int) -> bytes:
    result = subprocess.run(
        [
            *(program, "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-days", str(days), "-subj", f"/CN={_common_name(hosts[0])}"),
            *("-addext", f"subjectAltName={_names(hosts)}"),
            *("-keyout", "/dev/stdout", "-out", "/dev/stdout"),
        ],
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=30,
    )
    if result.returncode:
        errors = result.stderr.decode(errors="replace").strip().splitlines()
        raise KubeNexusError(
            f"cannot make a certificate for the secure port: openssl: {errors[-1] if errors else 'failed'}"
        )
    return result.stdout


def _common_name(host: str) -> str:
    """Returns the host cut to the length that a certificate allows."""
    return _dns_name(host)[:60]


def _dns_name(host: str) -> str:
    """Returns the host without characters that the options of openssl interpret."""
    return "".join(c if c.isalnum() or c in "-." else "-" for c in host)[:253] or "localhost"


def _names(hosts: Sequence[str]) -> str:
    return ",".join([*map(_alternative_name, hosts), "DNS:localhost", "IP:127.0.0.1", "IP:::1"])


def _alternative_name(host: str) -> str:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return f"DNS:{_dns_name(host)}"
    return f"IP:{host}"


@contextlib.contextmanager
def _as_file(pem: bytes) -> Iterator[str]:
    """Yields a path to the PEM, because `ssl` reads keys only from files. The file is in memory where possible: this
    works on a read-only disk, and the key is never on one."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("certificate"), "wb") as file:
            file.write(pem)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(pem)
            file.flush()
            yield file.name


def self_signed_by_cryptography(hosts: Sequence[str], days: int) -> bytes:
    """Returns key and certificate as PEM, one after the other. The `cryptography` package is optional, so it is
    imported by name and has no types here."""
    x509: Any = import_module("cryptography.x509")
    hashes: Any = import_module("cryptography.hazmat.primitives.hashes")
    forms: Any = import_module("cryptography.hazmat.primitives.serialization")
    ec: Any = import_module("cryptography.hazmat.primitives.asymmetric.ec")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, hosts[0][:60])])
    now = datetime.fromtimestamp(WallClock().now(), UTC)  # wall time: clients compare it with their own
    local = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    names = x509.SubjectAlternativeName([*map(x509.DNSName, hosts), x509.DNSName("localhost"), local])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).add_extension(names, critical=False)
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=days))
    certificate = builder.sign(key, hashes.SHA256())
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    return bytes(private + certificate.public_bytes(forms.Encoding.PEM))
