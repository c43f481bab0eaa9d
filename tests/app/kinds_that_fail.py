"""A cluster in virtual time with one optional kind that is served by the test: well, badly, or not at all."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from kubenexus.app.http.endpoints import _checks, _warnings
from kubenexus.app.http.health import root_page
from kubenexus.app.report.gauge_collector import GaugeCollector
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Call, Uncertain
from kubenexus.client.kinds import ApiResource
from kubenexus.config import defaults
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.perf.workload_run import WITHOUT
from kubenexus.sim.virtual.decisions import DecisionLog
from kubenexus.sim.virtual.loop import run
from kubenexus.sim.virtual.simulation import Simulation, SimulationOptions, run_scenario
from tests.sim.virtual.virtual_time import elapse

REFUSED, FORBIDDEN, HANGS, WELL, ABSENT = "500", "403", "hangs", "well", "404"
GARBAGE = {
    "no JSON": b"<html>Bad gateway</html>",
    "no UTF-8": b'{"kind": "\xff\xfe"}',
    "no list": b'{"kind": "Status", "status": "Failure"}',
    "a number for a list": b'{"kind": "PodGroupList", "metadata": {"resourceVersion": "1"}, "items": 5}',
    "no version": b'{"kind": "PodGroupList", "metadata": {}, "items": []}',
    "brackets without end": b"[" * 100_000,
    "nothing": b"",
}
FAULTS = (REFUSED, FORBIDDEN, HANGS, *GARBAGE)


class Quiet:
    """A watch in which nothing happens."""

    def __init__(self) -> None:
        self._closed = asyncio.Event()

    async def batch(self, most: int = 256) -> list[bytes]:
        await self._closed.wait()
        return []

    def close(self) -> None:
        self._closed.set()


class Served:
    """Stands before the embedded server for one kind: `state` is one of the faults, WELL or ABSENT."""

    def __init__(self, world: Simulation, resource: ApiResource, state: str) -> None:
        self.state, self.objects, self._resource = state, list[dict[str, Any]](), resource
        self._watch: Quiet | None = None
        self._send, self._stream = world.api.send, world.api.stream
        world.api.send, world.api.stream = self.send, self.stream  # type: ignore[method-assign]

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        path = call.path.partition("?")[0]
        return await (self._answer(timeout) if path == self._resource.all else self._send(call, timeout=timeout))

    async def stream(self, path: str, *, timeout: float = 10.0) -> Any:
        if path.partition("?")[0] != self._resource.all:
            return await self._stream(path, timeout=timeout)
        await self._answer(timeout)
        self._watch = Quiet()
        return self._watch

    def breaks(self, state: str) -> None:
        """From now on; the watch that is open ends with it."""
        self.state = state
        if self._watch is not None:
            self._watch.close()

    async def _answer(self, timeout: float) -> bytes:
        await elapse(0.001)
        if self.state == HANGS:
            await elapse(timeout)
            raise Uncertain("no answer in time")
        if self.state in GARBAGE:
            return GARBAGE[self.state]
        if self.state == WELL:
            metadata = {"resourceVersion": "10"}
            items = [{**each, "metadata": {**each["metadata"], "resourceVersion": "10"}} for each in self.objects]
            return json.dumps({"kind": f"{self._resource.kind}List", "metadata": metadata, "items": items}).encode()
        raise ApiError(int(self.state), message=f"the server answered {self.state}")


class Place:
    """What a test does in such a cluster, and what it sees."""

    def __init__(self, world: Simulation, served: Served) -> None:
        self.world, self.served = world, served
        self.scheduler = world.scheduler
        self.client = Known()
        self._gauges = GaugeCollector(world.scheduler, None, world.clock)

    def post(self, path: str, body: dict[str, Any]) -> None:
        answer = self.world.api.now(Call("POST", path, json.dumps(body).encode()))
        assert answer.code < 300, answer.body

    def node(self, name: str) -> None:
        offers = {"cpu": "8", "memory": "8Gi", "pods": "110"}
        status = {"allocatable": offers, "capacity": offers}
        self.post("/api/v1/nodes", {"kind": "Node", "metadata": {"name": name}, "status": status})

    def pod(self, name: str, more: dict[str, Any] | None = None) -> None:
        more = more or {}
        metadata = {"name": name, "labels": more.get("labels", {})}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", **more.get("requests", {})}}}
        spec = {"schedulerName": "kubenexus-scheduler", "containers": [container], **more.get("spec", {})}
        self.post("/api/v1/namespaces/default/pods", {"kind": "Pod", "metadata": metadata, "spec": spec})

    def bound(self) -> list[str]:
        return sorted(name for name, pod in self._pods().items() if pod["spec"].get("nodeName"))

    def why(self, name: str) -> str:
        """What the pod says in its condition."""
        conditions = self._pods()[name]["status"].get("conditions", [])
        return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")

    def _pods(self) -> dict[str, Any]:
        answer = self.world.api.now(Call("GET", "/api/v1/namespaces/default/pods"))
        return {each["metadata"]["name"]: each for each in json.loads(answer.body)["items"]}

    def readyz(self) -> tuple[int, str]:
        client: Any = self.client
        checks = _checks(self.scheduler, client, None)["readyz"]
        return root_page("readyz", checks, verbose=True, warnings=_warnings(self.scheduler, client))

    def livez(self) -> int:
        client: Any = self.client
        return root_page("livez", _checks(self.scheduler, client, None)["livez"]).status

    async def synced(self, kind: str) -> float:
        """The metric."""
        self._gauges.read()
        return self.scheduler.metrics.watch_synced.labels(kind).value


class Known:
    """What the checks read of the client: all is well."""

    unauthorized_since: float | None = None
    unanswered_seconds = 0.0


def in_place(resource: ApiResource, state: str, story: Callable[[Place], Awaitable[None]]) -> None:
    """One node and the plain pod `plain`, then the story. The scheduler has waited for what it has to wait for."""

    async def life() -> None:
        plugins = load_plugins(BUILT_IN)
        world = Simulation(defaults(plugins), plugins, SimulationOptions(seed=1, without=WITHOUT), DecisionLog())
        place = Place(world, Served(world, resource, state))
        place.node("n1")
        place.pod("plain")
        async with asyncio.timeout(1000):
            await run_scenario(world, lambda _: story(place))

    run(life())


def group_of(resource: ApiResource, name: str = "g") -> dict[str, Any]:
    """An object of a kind, which asks for one member."""
    kind = {"kind": resource.kind, "apiVersion": resource.api_version}
    spec: dict[str, Any] = {"minMember": 1}
    if resource is kinds.POD_GROUPS:
        spec = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    return {**kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}
