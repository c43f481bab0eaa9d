"""`Call`: a request to the API server as data; the errors of calls; and `Api`, the protocol of those that send them."""

from typing import Protocol

import msgspec

from kubenexus.base.errors import KubeNexusError

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Call(msgspec.Struct, frozen=True, gc=False):
    """One request. `path` begins with a slash and includes the query; `body` is empty or encoded."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def namespace(self) -> str:
        """The namespace of the object in the path; "" for objects outside of all namespaces."""
        return self.path.partition("/namespaces/")[2].partition("/")[0]


class ApiError(KubeNexusError):
    """The server refused the call. `reason` is the Status's: NotFound, Conflict, Forbidden, Expired..."""

    def __init__(self, code: int, reason: str = "", message: str = "", *, retry_after: float | None = None) -> None:
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        super().__init__(message or f"the server answered {code} {reason}".rstrip())


class Unreachable(KubeNexusError):
    """The call was never sent: it has certainly had no effect."""


class NoConnection(Unreachable):
    """The call was not sent since all connections were in use, or the rate limit allowed no call in time. Shows
    nothing about the server."""


class Uncertain(KubeNexusError):
    """The call was sent, and no answer came in time or at all: it may have had its effect."""


class Api(Protocol):
    """Sends calls: `transport.ApiClient` in production, fakes in tests."""

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        """Returns the body of a 2xx answer. Raises ApiError, Unreachable or Uncertain within `timeout` seconds.

        Waits for the client's rate limit. After a 429 with `Retry-After` the call is sent again, within `timeout`.
        """
