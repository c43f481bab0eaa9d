"""A call as data: what other rooms hand over when the API server is to be told something."""

from typing import Protocol

import msgspec

from kubenexus.base.errors import KubeNexusError

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Call(msgspec.Struct, frozen=True, gc=False):
    """One request. `path` begins with a slash and has its query already; `body` is empty or encoded."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def namespace(self) -> str:
        """Of the object that the call is about; "" for those outside of all namespaces."""
        return self.path.partition("/namespaces/")[2].partition("/")[0]


class ApiError(KubeNexusError):
    """The server answered, and the answer is no. `reason` is the Status's: NotFound, Conflict, Forbidden, Expired..."""

    def __init__(self, code: int, reason: str = "", message: str = "", *, retry_after: float | None = None) -> None:
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        super().__init__(message or f"the server answered {code} {reason}".rstrip())


class Unreachable(KubeNexusError):
    """The call was never sent: what it asks for has certainly not happened."""


class NoConnection(Unreachable):
    """All connections were in use, by calls of the same namespace or by too many, or the rate limit left no room. Says
    nothing about the server."""


class Uncertain(KubeNexusError):
    """The call went out and no answer came back, in time or at all: it may have happened."""


class Api(Protocol):
    """Who carries calls. In production the transport, in tests whatever answers."""

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        """The body of a 2xx answer. Raises ApiError, Unreachable or Uncertain, the last two within `timeout` seconds.

        Waits for its turn under the client's rate limit; a 429 with `Retry-After` is obeyed within `timeout`.
        """
