"""`TlsContextFactory`: makes `ssl` contexts from certificates in files or in a kubeconfig, which may be renewed while
the process runs."""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kubenexus.client.certificate_expiry import certificate_expiry
from kubenexus.client.credentials import ClientConfigError

Pair = tuple[bytes, bytes]


class PemSource(msgspec.Struct, frozen=True):
    """A certificate or a key: in a file, or as data. `at` is where it was named, for messages."""

    at: str
    path: str = ""
    data: bytes = b""

    def read(self) -> bytes:
        """Returns the PEM. Raises ClientConfigError."""
        if not self.path:
            return self.data
        try:
            return Path(self.path).read_bytes()
        except OSError as error:
            raise ClientConfigError(f"{self.at}: {self.path}: {error.strerror or error}") from None

    def stamp(self) -> object:
        """Returns a value that changes with the file."""
        if not self.path:
            return ""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size


class TlsContextFactory:
    """Makes the context for new connections, and makes it again when a file has changed. The dialer calls it."""

    def __init__(
        self,
        authority: PemSource | None = None,
        certificate: tuple[PemSource, PemSource] | None = None,
        *,
        insecure: bool = False,
    ) -> None:
        self._authority = authority
        self._certificate = certificate
        self._insecure = insecure
        self._made: ssl.SSLContext | None = None
        self._stamp: object = None

    def for_server(self, authority: PemSource | None, *, insecure: bool) -> "TlsContextFactory":
        """Returns a factory that shows the same client certificate to a server with another authority."""
        return TlsContextFactory(authority, self._certificate, insecure=insecure)

    def check(self, now: float) -> None:
        """Raises ClientConfigError for errors that can be found before the first call, such as an expired
        certificate."""
        self.context()
        if self._certificate is not None:
            shown = self._certificate[0]
            until = certificate_expiry(shown.read())
            if until is not None and until.timestamp() <= now:
                raise ClientConfigError(f"{shown.at}: the certificate expired at {until:%Y-%m-%dT%H:%M:%SZ}")

    def context(self, given: Pair | None = None) -> ssl.SSLContext:
        """Returns the context for a new connection; `given` is a certificate that came with the credentials.

        If files cannot be read, for example while they are being replaced, the last context stays.
        """
        stamp = (self._authority and self._authority.stamp(), given, [each.stamp() for each in self._certificate or ()])
        if self._made is not None and stamp == self._stamp:
            return self._made
        try:
            self._made, self._stamp = self._make(given), stamp
        except ClientConfigError:
            if self._made is None:
                raise
        return self._made

    def _make(self, given: Pair | None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self._insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self._authority is not None:
            _trust(context, self._authority)
        else:
            context.load_default_certs()
        if given is not None:
            _show(context, given, "the certificate of the exec plugin")
        elif self._certificate is not None:
            shown, key = self._certificate
            _show(context, (shown.read(), key.read()), shown.at)
        return context


def _trust(context: ssl.SSLContext, authority: PemSource) -> None:
    try:
        context.load_verify_locations(cadata=authority.read().decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ClientConfigError(f"{authority.at}: no certificate in PEM form") from None


def _show(context: ssl.SSLContext, pair: Pair, at: str) -> None:
    with _on_disk(pair) as path:
        try:
            # Without this argument `ssl` prompts for a password on the terminal; an empty one is just wrong.
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, ValueError) as error:
            why = "the key does not belong to it" if "MISMATCH" in str(error) else "no certificate and key in PEM form"
            raise ClientConfigError(f"{at}: {why}") from None


@contextlib.contextmanager
def _on_disk(pair: Pair) -> Iterator[str]:
    """Writes a certificate and its key to a file, since `ssl` reads keys only from files. Mode 0600, and deleted at
    once."""
    handle, path = tempfile.mkstemp(prefix="kubenexus-", suffix=".pem")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pair[0].rstrip() + b"\n" + pair[1])
        yield path
    finally:
        os.unlink(path)
