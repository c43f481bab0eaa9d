"""A server without sockets, on a clock that stands still."""

import json
import random
from typing import Any

from kubenexus.base.clock import VirtualClock
from kubenexus.sim.apiserver.http_types import Request, Response
from kubenexus.sim.apiserver.server import ApiServer

PODS = "/api/v1/namespaces/default/pods"
START = 1_800_000_000.0


class ServerFixture:
    def __init__(self, **options: Any) -> None:
        self.clock = VirtualClock(START)
        self.server = ApiServer(self.clock, random.Random(3), **options)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        sent = b"" if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.server.handle(Request(method, path, sent, named))

    def do(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The content of an answer that must be a good one."""
        answer = self.ask(method, path, body, **headers)
        assert answer.code < 300, answer
        return json.loads(answer.body)

    def watch(self, path: str) -> list[dict[str, Any]]:
        """A list that the events of a watch are added to."""
        answer, events = self.ask("GET", path), list[dict[str, Any]]()
        assert answer.watch is not None, answer
        answer.watch.open(lambda line: events.append(json.loads(line)))
        return events


def pod(name: str, **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **meta}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
