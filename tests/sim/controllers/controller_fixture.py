"""A server with its controllers on a clock that stands still; the test itself is scheduler and kubelet."""

import json
import random
from typing import Any

from kubenexus.base.clock import VirtualClock
from kubenexus.base.timestamps import format_time
from kubenexus.sim.apiserver.http_types import Request
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.controllers.manager import ControllerManager

Json = dict[str, Any]
CORE, APPS, BATCH = "/api/v1", "/apis/apps/v1", "/apis/batch/v1"
START = 1_800_000_000.0
PATCH = "application/merge-patch+json"


class ControllerFixture:
    def __init__(self, token: str = "", gates: tuple[str, ...] = ()) -> None:
        self.clock = VirtualClock(START)
        self.server = ApiServer(self.clock, random.Random(3), token=token, gates=gates)
        self.controllers = ControllerManager(self.server, self.clock, token=token)
        self._head = {"authorization": f"Bearer {token}"}

    def restart(self) -> None:
        """The controllers are killed, and others take their place."""
        self.controllers.close()
        self.controllers = ControllerManager(self.server, self.clock)

    # ---- a client ----------------------------------------------------------------------------------------------------

    def do(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Json:
        sent = b"" if body is None else json.dumps(body).encode()
        answer = self.server.handle(Request(method, path, sent, {"content-type": kind, **self._head}))
        assert answer.code < 300, (method, path, answer.code, answer.body)
        self.server.tidy()
        return dict(json.loads(answer.body))

    def apply(self, where: str, kind: str, name: str, spec: Json, **meta: Any) -> Json:
        return self.do("POST", f"{where}/namespaces/default/{kind}", {"metadata": {"name": name, **meta}, "spec": spec})

    def get(self, where: str, kind: str, name: str) -> Json:
        return self.do("GET", f"{where}/namespaces/default/{kind}/{name}")

    def patch(self, where: str, kind: str, name: str, body: Json) -> Json:
        return self.do("PATCH", f"{where}/namespaces/default/{kind}/{name}", body, PATCH)

    def delete(self, where: str, kind: str, name: str, query: str = "") -> None:
        self.do("DELETE", f"{where}/namespaces/default/{kind}/{name}{query}")

    def items(self, where: str, kind: str) -> list[Json]:
        return list(self.do("GET", f"{where}/namespaces/default/{kind}")["items"])

    def pods(self) -> list[Json]:
        return self.items(CORE, "pods")

    def names(self) -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in self.pods())

    def node(self, name: str, taints: tuple[Json, ...] = (), **labels: str) -> None:
        body = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(taints)}}
        self.do("POST", f"{CORE}/nodes", body)
        # As the kubelet of a node that is well: without the taint that a new one gets.
        self.do("PATCH", f"{CORE}/nodes/{name}", {"spec": {"taints": list(taints) or None}}, PATCH)

    # ---- scheduler and kubelet ---------------------------------------------------------------------------------------

    def settle(self) -> int:
        """Until the controllers have nothing to do. Returns how much was written."""
        before = self.server.core.store.version
        for _ in range(10_000):
            self.controllers.run()
            due = self.controllers.next_due()
            if self.controllers.idle and (due is None or due > self.clock.now()):
                return self.server.core.store.version - before
        raise AssertionError("they never come to rest")

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.settle()

    def bind(self, name: str, node: str = "") -> None:
        node = node or tied(self.get(CORE, "pods", name)) or "n"
        target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        self.do("POST", f"{CORE}/namespaces/default/pods/{name}/binding", target)

    def say(self, name: str, phase: str, ready: str) -> None:
        since = format_time(self.clock.now())
        conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": since}]
        status = {"status": {"phase": phase, "conditions": conditions, "startTime": since}}
        path = f"{CORE}/namespaces/default/pods/{name}/status"
        self.do("PATCH", path, status, "application/strategic-merge-patch+json")

    def run(self, name: str) -> None:
        """Bound and running."""
        self.bind(name)
        self.say(name, "Running", "True")

    def finish(self, name: str, phase: str = "Succeeded") -> None:
        self.say(name, phase, "False")

    def end(self, name: str) -> None:
        """Deleted, and the kubelet has ended it."""
        self.delete(CORE, "pods", name, "?gracePeriodSeconds=0")

    def busy(self) -> None:
        """Whoever waits runs, whoever is to go goes, and the controllers see to it, until all are content."""
        for _ in range(1000):
            self.settle()
            if not self.act():
                return
        raise AssertionError("it never comes to rest")

    def act(self) -> bool:
        acted = False
        for pod in self.pods():
            name = pod["metadata"]["name"]
            if "deletionTimestamp" in pod["metadata"]:
                if pod["metadata"].get("finalizers"):
                    continue
                self.end(name)
            elif not pod["spec"].get("nodeName"):
                self.run(name)
            else:
                continue
            acted = True
        return acted


def tied(pod: Json) -> str:
    """The one node that its affinity names."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    return str(terms[0]["matchFields"][0]["values"][0]) if terms else ""


def template(app: str, restart: str = "Always", **spec: Any) -> Json:
    containers = [{"name": "c", "image": "i:1"}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, "restartPolicy": restart, **spec}}


def sized(app: str, replicas: int, **more: Any) -> Json:
    return {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template(app), **more}
