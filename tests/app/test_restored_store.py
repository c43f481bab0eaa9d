"""The API server's store goes back to a backup while the scheduler runs, which ends with what the server has."""

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from kubenexus.app.scheduler import Scheduler
from kubenexus.base.clock import VirtualClock, WallClock
from kubenexus.client.calls import Call
from kubenexus.client.kinds import NODES, PODS
from kubenexus.client.verbs import create, delete
from kubenexus.config import defaults
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.apiserver.http_types import Request, Response
from kubenexus.sim.apiserver.listening import Listener, listen
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.apiserver.store import Backup
from kubenexus.sim.embedded_cluster import run_in_background
from kubenexus.sim.kubelets.node_calls import NodeTemplate
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.async_helpers import wait_until
from tests.client.server import a_client


class Server(ApiServer):
    """The embedded server, which can refuse to serve nodes for a while."""

    nodes_away = False

    def handle(self, request: Request) -> Response:
        if self.nodes_away and request.path.startswith("/api/v1/nodes"):
            return Response(503)
        return super().handle(request)


class Cluster:
    """The embedded server, and the port it is reached by."""

    def __init__(self) -> None:
        self.server = Server(VirtualClock(1_800_000_000.0), random.Random(3), without=["TaintNodesByCondition"])
        self.listener: Listener | None = None
        self.port = 0

    async def open(self) -> None:
        self.listener = await listen(self.server, "127.0.0.1", self.port)
        self.port = self.listener.port

    async def close(self) -> None:
        if self.listener is not None:
            await self.listener.close()

    def do(self, call: Call) -> None:
        answer = self.server.handle(Request(call.method, call.path, call.body, {"content-type": "application/json"}))
        assert answer.code < 300, answer.body

    def node(self, name: str) -> None:
        body = NodeTemplate().body(0, 0.0)
        self.do(create(NODES, body | {"metadata": {"name": name}}))

    def pod(self, name: str) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec = {"schedulerName": "kubenexus-scheduler", "containers": [container]}
        self.do(create(PODS, {"metadata": {"name": name}, "spec": spec}, "default"))

    def delete(self, resource: Any, namespace: str, name: str) -> None:
        self.do(delete(resource, namespace, name, "", grace_seconds=0))

    @property
    def nodes(self) -> set[str]:
        return set(self.server.core.store.collection("nodes").objects)

    @property
    def pods(self) -> dict[str, str]:
        """By key, the nodes that pods are bound to."""
        objects = self.server.core.store.collection("pods").objects
        return {key: json.loads(data)["spec"].get("nodeName", "") for key, data in objects.items()}


async def at_once(seconds: float) -> None:
    await asyncio.sleep(0)


async def play(cluster: Cluster, story: Callable[[Scheduler], Any]) -> Scheduler:
    await cluster.open()
    client, plugins = a_client(cluster.port), load_plugins(BUILT_IN)
    scheduler = Scheduler(defaults(plugins), plugins, client, WallClock(), random.Random(5))
    for each in scheduler.watches.reflectors:
        each._sleep = at_once
    try:
        async with run_in_background(scheduler.watches.run()):
            await scheduler.watches.wait_until_current()
            async with run_in_background(scheduler.schedule()):
                await story(scheduler)
    finally:
        await client.close()
        await cluster.close()
    return scheduler


def settled(scheduler: Scheduler, cluster: Cluster) -> bool:
    """Whether the scheduler knows what the server has, and every pod is bound."""
    known = {key: record.node for key, record in scheduler.ledger.pods.items()}
    return set(scheduler.ledger.nodes.row_of) == cluster.nodes and known == cluster.pods and all(known.values())


@pytest.mark.parametrize(
    ("ahead", "rewinds"),
    [
        pytest.param(0, True, id="its versions begin at the backup's"),
        pytest.param(100_000, False, id="its versions were bumped beyond all that were seen"),
    ],
)
def test_the_scheduler_ends_with_what_a_restored_server_has(ahead: int, rewinds: bool) -> None:
    """Pods are listed again before the nodes are: none is placed until then."""
    cluster = Cluster()

    async def story(scheduler: Scheduler) -> None:
        store = cluster.server.core.store
        cluster.node("drained")
        cluster.pod("web")
        backup = store.backup()  # before the pod is bound
        await wait_until(lambda: settled(scheduler, cluster))
        cluster.node("new")
        cluster.delete(NODES, "", "drained")
        cluster.pod("later")
        await wait_until(lambda: settled(scheduler, cluster))
        await cluster.close()
        store.restore(Backup(backup.version + ahead, backup.objects))
        assert cluster.pods == {"default/web": ""}
        cluster.server.nodes_away = True
        await cluster.open()
        await wait_until(lambda: {key: record.node for key, record in scheduler.ledger.pods.items()} == {})
        await wait_until(lambda: "nodes" in scheduler.watches.outdated())
        for _ in range(100):
            await asyncio.sleep(0)
        assert cluster.pods == {"default/web": ""}
        cluster.server.nodes_away = False
        await wait_until(lambda: settled(scheduler, cluster))
        assert cluster.nodes == {"drained"}
        assert cluster.pods == {"default/web": "drained"}
        cluster.pod("after")
        await wait_until(lambda: len(cluster.pods) == 2 and settled(scheduler, cluster))

    scheduler = asyncio.run(play(cluster, story))
    (pods,) = [each for each in scheduler.watches.reflectors if each.resource is PODS]
    assert bool(pods.rewinds) is rewinds


def test_a_standby_that_takes_over_knows_what_a_restored_server_has() -> None:
    """A proxy kept its watches open: no answer has told that the server went back."""
    cluster = Cluster()

    async def story(scheduler: Scheduler) -> None:
        store = cluster.server.core.store
        cluster.node("n")
        backup = store.backup()
        cluster.pod("web")
        await wait_until(lambda: settled(scheduler, cluster))
        store.restore(backup)
        await scheduler.watches.wait_until_current()
        assert scheduler.ledger.pods == {}

    asyncio.run(play(cluster, story))


@pytest.mark.parametrize(
    ("looked_up", "bound"),
    [
        pytest.param(True, {"web": "n"}, id="it was read while the list was under way: the bind is younger"),
        pytest.param(False, {}, id="the watch had told of the bind: the store was restored"),
    ],
)
def test_a_list_takes_a_bind_back_unless_the_bind_may_be_younger(looked_up: bool, bound: dict[str, str]) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        (informer,) = [each for kind, each in fixture.scheduler.watches.informers.items() if kind is PODS]
        informer.list_started()
        if looked_up:
            fixture.handlers.on_pod_looked_up(a_pod("web", node="n"))
        else:
            fixture.handlers.on_pod_update(a_pod("web", node="n"))
        informer.list_page([a_pod("web")], ())
        informer.list_finished()
        assert fixture.where() == bound
        assert ("default/web" in fixture.handlers.assembler) is not looked_up

    scheduler_test(life)
