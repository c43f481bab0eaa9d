"""A request and its response, without sockets."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from kubenexus.sim.apiserver.object_store import encode
from kubenexus.sim.apiserver.status_errors import StatusError
from kubenexus.sim.apiserver.watching import Watch

JSON = "application/json"
PLAIN = "text/plain; charset=utf-8"


class Request:
    """A request. Header names are lower case."""

    __slots__ = ("body", "headers", "method", "path", "query")

    def __init__(self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.method = method
        self.path, mark, query = target.partition("?")
        self.query: dict[str, str] = dict(parse_qsl(query, keep_blank_values=True)) if mark else {}
        self.body = body
        self.headers: Mapping[str, str] = headers or {}

    def header(self, name: str) -> str:
        return self.headers.get(name, "")


class Response(msgspec.Struct):
    """A response: a body, or a watch that is not open yet."""

    code: int
    body: bytes = b""
    content_type: str = JSON
    watch: Watch | None = None
    headers: tuple[tuple[str, str], ...] = ()
    then: Callable[[], None] | None = None


def answer(code: int, content: Any) -> Response:
    return Response(code, encode(content))


def refused(refusal: StatusError) -> Response:
    seconds = (refusal.details or {}).get("retryAfterSeconds")
    headers = (("Retry-After", str(seconds)),) if seconds else ()
    return Response(refusal.code, encode(refusal.status()), headers=headers)


def plain(code: int, text: str) -> Response:
    return Response(code, text.encode(), PLAIN)
