"""Credentials of the client: a fixed token, a token in a file that changes, a name with a password."""

import base64
from pathlib import Path
from typing import Protocol

from kubenexus.base.clock import Clock
from kubenexus.base.errors import KubeNexusError

REREAD = 60.0  # seconds; the kubelet renews a service account's token long before it expires


class ClientConfigError(KubeNexusError):
    """The server or the credentials are not known. The message names the file, the field and what is wrong."""


class Credentials(Protocol):
    """What the client sends with each call. Only the client calls these methods; they must not call the API server."""

    def current(self) -> str | None:
        """Returns the value of the `Authorization` field, "" for none; None if it has to be fetched first."""

    async def fetch(self) -> None:
        """Fetches what `current` lacks. Raises ClientConfigError."""

    async def refused(self, authorization: str) -> bool:
        """Handles a 401. Returns True if there are other credentials now, so that one more try is worth it."""

    def certificate(self) -> tuple[bytes, bytes] | None:
        """Returns a client certificate and its key, both as PEM, that came with the credentials."""


class StaticCredentials:
    """The same credentials for the life of the process."""

    def __init__(self, authorization: str = "") -> None:
        self._authorization = authorization

    def current(self) -> str | None:
        return self._authorization

    async def fetch(self) -> None:
        return None

    async def refused(self, authorization: str) -> bool:
        return False

    def certificate(self) -> tuple[bytes, bytes] | None:
        return None


class TokenFileCredentials(StaticCredentials):
    """A token in a file, read again every minute and each time the server refuses it.

    If the file cannot be read, for example while it is being replaced, the last token stays.
    """

    def __init__(self, path: str, clock: Clock, *, subject: str = "", fallback: str = "") -> None:
        self._path = Path(path)
        self._clock = clock
        self._subject = subject or f"token file {path}"
        super().__init__(bearer_header(fallback, self._subject) if fallback else "")
        self._read_at = float("-inf")
        self.problem = ""  # why the last attempt to read failed
        self._read()
        if not self._authorization:
            raise ClientConfigError(self.problem)

    def current(self) -> str | None:
        if self._clock.now() - self._read_at >= REREAD:
            self._read()
        return self._authorization

    async def refused(self, authorization: str) -> bool:
        self._read()
        return self._authorization != authorization

    def _read(self) -> None:
        self._read_at = self._clock.now()
        try:
            self._authorization = bearer_header(self._path.read_text(encoding="utf-8").strip(), self._subject)
            self.problem = ""
        except OSError as error:
            self.problem = f"{self._subject}: {self._path}: {error.strerror or error}"
        except UnicodeDecodeError:
            self.problem = f"{self._subject}: {self._path}: not a text"
        except ClientConfigError as error:
            self.problem = str(error)


def bearer_header(token: str, subject: str) -> str:
    """Returns the field for a token. Raises for characters that would break out of the field, without showing them."""
    if not token:
        raise ClientConfigError(f"{subject}: the token is empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ClientConfigError(f"{subject}: the token has characters that a token cannot have")
    return f"Bearer {token}"


def basic_auth_header(username: str, password: str) -> str:
    """Returns the field for a name and a password."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
