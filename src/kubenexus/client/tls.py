"""What we trust and what we show: an `ssl` context made of certificates that may be in files, in a kubeconfig, or may
be renewed while we run."""

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
    """A certificate or a key: in a file, or right here. `at` says where it was named, for messages."""

    at: str
    path: str = ""
    data: bytes = b""

    def read(self) -> bytes:
        """The PEM. Raises ClientConfigError."""
        if not self.path:
            return self.data
        try:
            return Path(self.path).read_bytes()
        except OSError as error:
            raise ClientConfigError(f"{self.at}: {self.path}: {error.strerror or error}") from None

    def stamp(self) -> object:
        """Moves when the file does."""
        if not self.path:
            return ""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size


class TlsContextFactory:
    """Makes the context for new connections, and makes it anew when a file has changed. The dialer asks."""

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

    def check(self, now: float) -> None:
        """Raises ClientConfigError for what is seen to be wrong before the first call, an expired certificate
        included."""
        self.context()
        if self._certificate is not None:
            shown = self._certificate[0]
            until = certificate_expiry(shown.read())
            if until is not None and until.timestamp() <= now:
                raise ClientConfigError(f"{shown.at}: the certificate expired at {until:%Y-%m-%dT%H:%M:%SZ}")

    def context(self, given: Pair | None = None) -> ssl.SSLContext:
        """The context for a new connection; `given` is a certificate that came with the credentials.

        Files that cannot be read for a moment, say while they are being replaced, change nothing: the last ones stay.
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
            # A password would be asked for on the terminal; an empty one is simply wrong.
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, ValueError) as error:
            why = "the key does not belong to it" if "MISMATCH" in str(error) else "no certificate and key in PEM form"
            raise ClientConfigError(f"{at}: {why}") from None


@contextlib.contextmanager
def _on_disk(pair: Pair) -> Iterator[str]:
    """`ssl` reads a key from nothing but a file: one that only we may read, and that is gone a moment later."""
    handle, path = tempfile.mkstemp(prefix="kubenexus-", suffix=".pem")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pair[0].rstrip() + b"\n" + pair[1])
        yield path
    finally:
        os.unlink(path)
