"""A small HTTP client for the contract: plain, blocking, nothing of our own client that could hide a mistake."""

import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from kubenexus.testing.controlplane import ControlPlane

PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Answer(NamedTuple):
    code: int
    json: Any
    fields: dict[str, str]

    @property
    def reason(self) -> str:
        """`Status.reason`, or nothing where the answer is no Status."""
        return self.json.get("reason", "") if isinstance(self.json, dict) and self.json.get("kind") == "Status" else ""

    @property
    def message(self) -> str:
        return str(self.json.get("message", ""))


class Http:
    """One connection that is kept; opened anew when the server has closed it."""

    def __init__(self, server: str, token: str = "", trust: ssl.SSLContext | None = None) -> None:
        self._url = urllib.parse.urlsplit(server)
        self._trust = trust
        self._fields = {"Authorization": f"Bearer {token}"} if token else {}
        self.patience = 10.0  # seconds between two events of a watch
        self._connection = self._connect()

    @classmethod
    def of_plane(cls, plane: "ControlPlane") -> Self:
        return cls(plane.server, plane.token(), ssl.create_default_context(cafile=str(plane.authority)))

    def ask(
        self, method: str, path: str, body: Any = None, *, patch: str = "", accept: str = "application/json"
    ) -> Answer:
        """One request. A body that is bytes goes as it is."""
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        fields = {**self._fields, "Accept": accept, "Content-Type": PATCHES.get(patch, "application/json")}
        try:
            return self._once(method, path, sent, fields)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self._connection.close()
            return self._once(method, path, sent, fields)

    def watch(self, path: str) -> "Watch":
        """Begins at once: when this returns the server has sent the head of its answer."""
        connection = self._connect(self.patience)
        connection.request("GET", path, headers={**self._fields, "Accept": "application/json"})
        return Watch(connection, connection.getresponse())

    def close(self) -> None:
        self._connection.close()

    def _once(self, method: str, path: str, body: bytes | None, fields: dict[str, str]) -> Answer:
        self._connection.request(method, path, body, fields)
        answer = self._connection.getresponse()
        text = answer.read()
        try:
            content = json.loads(text)
        except ValueError:
            content = text.decode(errors="replace")
        return Answer(answer.status, content, {key.lower(): value for key, value in answer.getheaders()})

    def _connect(self, seconds: float = 30.0) -> http.client.HTTPConnection:
        if self._url.scheme == "https":
            return http.client.HTTPSConnection(self._url.netloc, timeout=seconds, context=self._trust)
        return http.client.HTTPConnection(self._url.netloc, timeout=seconds)


class Watch:
    """The events of a watch, as they come."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection, self._answer = connection, answer
        self.code = answer.status

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while line := self._answer.readline():
            yield json.loads(line)

    def next(self) -> dict[str, Any]:
        """The next event that is no bookmark. Raises TimeoutError."""
        return next(event for event in self if event["type"] != "BOOKMARK")

    def until(self, done: Any) -> list[dict[str, Any]]:
        """All events up to the first for which `done` holds."""
        seen = []
        for event in self:
            seen.append(event)
            if done(event):
                break
        return seen

    def error(self) -> Any:
        return json.loads(self._answer.read())

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
