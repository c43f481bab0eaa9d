"""Many hands for one cluster: requests over kept connections, again and again until the server has answered."""

import http.client
import json
import ssl
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Self

AT_A_TIME = 8
PAUSE = 0.05
PATIENCE = 60.0


class Wish(NamedTuple):
    """One request."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None


class ChaosClient:
    """Not faulty: it speaks to the API server itself, and waits while that is away."""

    def __init__(self, host: str, token: str, trust: ssl.SSLContext) -> None:
        self._host, self._trust = host, trust
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._own = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []
        self._pool = ThreadPoolExecutor(AT_A_TIME, "hands")
        self._pause = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pause.set()
        self._pool.shutdown(cancel_futures=True)
        for connection in self._connections:
            connection.close()

    def do(self, wishes: Iterable[Wish]) -> list[int]:
        """All of them, several at a time; the codes of the answers."""
        return list(self._pool.map(self.one, wishes))

    def one(self, wish: Wish) -> int:
        """Repeats what got no answer, or one that means "later". What it wished for may then be there already."""
        for _ in range(int(PATIENCE / PAUSE)):
            try:
                code = self._ask(wish)
            except (OSError, http.client.HTTPException):
                self._own.connection = None
                code = 0
            if code and code != http.HTTPStatus.TOO_MANY_REQUESTS and code < 500:
                return code
            if self._pause.wait(PAUSE):
                break
        raise TimeoutError(f"{wish.method} {wish.path}: no answer")

    def _ask(self, wish: Wish) -> int:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection(self._host, timeout=10, context=self._trust)
            self._own.connection = connection
            self._connections.append(connection)
        patch = {"Content-Type": "application/merge-patch+json"} if wish.method == "PATCH" else {}
        body = None if wish.body is None else json.dumps(wish.body)
        connection.request(wish.method, wish.path, body, {**self._headers, **patch})
        answer = connection.getresponse()
        answer.read()
        return int(answer.status)
