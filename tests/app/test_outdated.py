"""Nothing is decided over nodes or pods that may have changed unseen; and watches that were down come back together."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import pytest

from kubenexus.app.watch.watches import OUTDATED
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Call, Unreachable
from kubenexus.client.kinds import ApiResource
from kubenexus.config import defaults
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.perf.workload_run import WITHOUT
from kubenexus.sim.virtual.decisions import DecisionLog
from kubenexus.sim.virtual.loop import run
from kubenexus.sim.virtual.simulation import Simulation, SimulationOptions, run_scenario
from tests.app.kinds_that_fail import Place, Served
from tests.sim.virtual.virtual_time import elapse

AWAY, FORBIDDEN = Unreachable("connection refused"), ApiError(403, message="forbidden")
SEVERAL = 10.0  # seconds in which a watch fails several times
ALL = None


class Outage:
    """Stands before the embedded server: lists and watches of some kinds fail, or all calls do."""

    def __init__(self, world: Simulation) -> None:
        self._paths: Collection[str] | None = ()
        self._error: Exception = AWAY
        self._streams: list[tuple[str, Any]] = []
        self._send, self._stream = world.api.send, world.api.stream
        world.api.send, world.api.stream = self.send, self.stream  # type: ignore[method-assign]

    def begin(self, resources: Collection[ApiResource] | None, error: Exception = AWAY) -> None:
        """Watches that are open end with it. `None`: of all kinds, and no call is answered."""
        self._paths, self._error = None if resources is None else [each.all for each in resources], error
        for path, stream in self._streams:
            if self._fails(path):
                stream.close()

    def end(self) -> None:
        self._paths = ()

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        self._check(call.path)
        return await self._send(call, timeout=timeout)

    async def stream(self, path: str, *, timeout: float = 10.0) -> Any:
        self._check(path)
        stream = await self._stream(path, timeout=timeout)
        self._streams.append((path, stream))
        return stream

    def _check(self, path: str) -> None:
        if self._fails(path):
            raise self._error

    def _fails(self, path: str) -> bool:
        return self._paths is None or path.partition("?")[0] in self._paths


class Cluster(Place):
    def __init__(self, world: Simulation) -> None:
        self.outage = Outage(world)
        super().__init__(world, Served(world, kinds.VOLCANO_POD_GROUPS, "404"))

    def cordon(self, name: str) -> None:
        body = json.dumps({"spec": {"unschedulable": True}}).encode()
        answer = self.world.api.now(Call("PATCH", f"/api/v1/nodes/{name}", body, "application/merge-patch+json"))
        assert answer.code == 200, answer.body

    def nodes_of(self, *names: str) -> list[str]:
        return [self._pods()[name]["spec"].get("nodeName", "") for name in names]

    @property
    def watching(self) -> int:
        return sum(each.watching for each in self.scheduler.watches.reflectors)


def in_cluster(story: Callable[[Cluster], Awaitable[None]], seed: int = 1) -> None:
    """Two nodes, and the scheduler has seen them."""

    async def life() -> None:
        plugins = load_plugins(BUILT_IN)
        cluster = Cluster(
            Simulation(defaults(plugins), plugins, SimulationOptions(seed=seed, without=WITHOUT), DecisionLog())
        )
        for name in ("n1", "n2"):
            cluster.node(name)
        async with asyncio.timeout(1000):
            await run_scenario(cluster.world, lambda _: story(cluster))

    run(life())


@pytest.mark.parametrize(
    ("down", "error", "wait"),
    [
        pytest.param([kinds.NODES], AWAY, SEVERAL, id="the watch of nodes is down"),
        pytest.param([kinds.NODES], FORBIDDEN, 1.0, id="nodes are forbidden, from one moment to the next"),
        pytest.param([kinds.NODES, kinds.SERVICES], AWAY, SEVERAL, id="and that of a kind which no decision stands on"),
    ],
)
def test_nothing_is_decided_before_nodes_are_heard_of_again(
    down: Collection[ApiResource], error: Exception, wait: float
) -> None:
    """A node is cordoned meanwhile; pods come when the server answers all other calls."""

    async def story(cluster: Cluster) -> None:
        await elapse(5)
        cluster.outage.begin(down, error)
        await elapse(wait)
        cluster.cordon("n1")
        cluster.pod("early-0")
        cluster.pod("early-1")
        await elapse(OUTDATED - wait - 2)
        assert cluster.readyz()[0] == 200
        await elapse(60)
        assert cluster.nodes_of("early-0", "early-1") == ["", ""]
        code, text = cluster.readyz()
        assert (code, "[-]informer-sync failed" in text) == (500, True)
        cluster.outage.end()
        await elapse(40)
        assert cluster.nodes_of("early-0", "early-1") == ["n2", "n2"]
        assert cluster.readyz()[0] == 200

    in_cluster(story)


@pytest.mark.parametrize("seed", range(5))
def test_nor_after_an_outage_before_the_watch_of_nodes_is_back(seed: int) -> None:
    """Whichever watch comes back first."""

    async def story(cluster: Cluster) -> None:
        await elapse(5)
        cluster.outage.begin(ALL)
        await elapse(SEVERAL)
        cluster.cordon("n1")
        for i in range(5):
            cluster.pod(f"p{i}")
        await elapse(SEVERAL)
        cluster.outage.end()
        await elapse(20)
        assert cluster.nodes_of(*(f"p{i}" for i in range(5))) == ["n2"] * 5

    in_cluster(story, seed)


@pytest.mark.parametrize("resource", [kinds.SERVICES, kinds.STORAGE_CLASSES], ids=str)
def test_other_kinds_hold_nothing(resource: ApiResource) -> None:
    async def story(cluster: Cluster) -> None:
        await elapse(5)
        cluster.outage.begin([resource])
        await elapse(100)
        cluster.pod("p")
        await elapse(2)
        assert cluster.bound() == ["p"]
        assert cluster.readyz()[0] == 200

    in_cluster(story)


def test_a_watch_that_breaks_and_goes_on_holds_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        await elapse(5)
        cluster.outage.begin([kinds.NODES])
        cluster.outage.end()
        cluster.pod("p")
        await elapse(0.2)
        assert cluster.bound() == ["p"]

    in_cluster(story)


@pytest.mark.parametrize("seconds", [3.0, 12.0, 60.0, 200.0])
def test_after_an_outage_all_watches_come_back_as_soon_as_one_does(seconds: float) -> None:
    """Without that each would wait for its own backoff, of up to ten seconds."""

    async def story(cluster: Cluster) -> None:
        await elapse(5)
        before = cluster.watching
        cluster.outage.begin(ALL)
        await elapse(seconds)
        assert cluster.watching == 0
        cluster.outage.end()
        while not cluster.watching:
            await elapse(0.001)
        await elapse(0.1)
        assert cluster.watching == before

    in_cluster(story)


@pytest.mark.parametrize("seed", range(5))
def test_a_server_that_forbids_everything_while_it_starts_is_tried_again_soon(seed: int) -> None:
    """A kube-apiserver knows no service account's rights before it has read the RBAC rules."""

    async def story(cluster: Cluster) -> None:
        await elapse(5)
        before = cluster.watching
        cluster.outage.begin(ALL)
        await elapse(4)
        cluster.outage.begin(ALL, FORBIDDEN)
        while not all("forbidden" in each.last_error for each in cluster.scheduler.watches.reflectors if each.served):
            await elapse(0.01)
        await elapse(0.5)
        cluster.outage.end()
        cluster.pod("p")
        await elapse(4)
        assert cluster.watching == before
        assert cluster.bound() == ["p"]

    in_cluster(story, seed)


@pytest.mark.parametrize(
    ("seconds", "code", "warned"),
    [
        pytest.param(9.0, 200, False, id="a quiet moment"),
        pytest.param(12.0, 200, True, id="long enough to be named"),
        pytest.param(31.0, 500, True, id="longer than running.md names"),
    ],
)
def test_readyz_shows_that_the_server_does_not_answer_and_livez_stays(seconds: float, code: int, warned: bool) -> None:
    """Whatever the watches show: a server that stands still leaves them open. A restart would not help."""

    async def story(cluster: Cluster) -> None:
        await elapse(5)
        cluster.client.unanswered_seconds = seconds
        status, text = cluster.readyz()
        assert status == code
        assert ("[-]api-server-access failed" in text) == (code == 500)
        assert (f"warn: the API server has not answered for {seconds:.0f} seconds" in text) == warned
        assert cluster.livez() == 200
        cluster.client.unanswered_seconds = 0.0
        assert cluster.readyz()[0] == 200

    in_cluster(story)
