"""The exceptions of this program. They mean a bug, bad input or a network failure; "does not fit" is a Verdict."""

import errno
import os


class KubeNexusError(Exception):
    """The base class of all exceptions that this program raises on purpose."""


class Malformed(KubeNexusError, ValueError):
    """An object from outside that cannot be used: names the object, the field and what was expected."""

    def __init__(self, problem: str, *, field: str = "", subject: str = "") -> None:
        self.problem = problem
        self.field = field
        self.subject = subject
        super().__init__(": ".join(part for part in (subject, field, problem) if part))

    def within(self, field: str = "", subject: str = "") -> "Malformed":
        """Returns the same problem with `field` put before its path, and with `subject` if given."""
        joint = "" if not field or not self.field or self.field.startswith("[") else "."
        return Malformed(self.problem, field=field + joint + self.field, subject=subject or self.subject)


def truncated_key(key: str) -> str:
    """Returns `namespace/name` for a message, each part truncated by itself."""
    namespace, slash, name = key.partition("/")
    return f"{truncated(namespace)}{slash}{truncated(name)}"


def truncated(text: str) -> str:
    """Returns a text for a message: whole up to 256 characters, else its beginning and its length."""
    return text if len(text) <= 256 else f"{text[:256]}... ({len(text)} characters)"


def described(error: Exception) -> str:
    """Returns the type of an exception and its text, truncated."""
    return f"{type(error).__name__}: {truncated(str(error))}"


def cannot_listen(host: str, port: int, error: OSError) -> str:
    """Returns the message for a port that cannot be opened. asyncio's own text repeats the address."""
    told = os.strerror(error.errno).lower() if error.errno else str(error)
    if error.errno == errno.EADDRINUSE:
        told += "; end the process that has this port, or choose another one"
    return f"cannot listen on {host}:{port}: {told}"
