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
from kubenexus.framework.registry import with_entry_points
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.apiserver.answers import Request
from kubenexus.sim.apiserver.listening import Listener, listen
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.apiserver.store import Backup
from kubenexus.sim.box import background
from kubenexus.sim.nodes import Template
from kubenexus.testing.builders import a_node, a_pod
from tests.app.town import Town, in_town
from tests.client.server import a_client
from tests.turns import until


class Cluster:
    """The embedded server, and the port it is reached by."""

    def __init__(self) -> None:
        self.server = ApiServer(VirtualClock(1_800_000_000.0), random.Random(3), without=["TaintNodesByCondition"])
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
        body = Template().body(0, 0.0)
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
    client, plugins = a_client(cluster.port), with_entry_points(BUILT_IN)
    scheduler = Scheduler(defaults(plugins), plugins, client, WallClock(), random.Random(5))
    for each in scheduler.reflectors:
        each._sleep = at_once
    try:
        async with background(scheduler.watch()):
            await scheduler.caught_up()
            async with background(scheduler.schedule()):
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
    cluster = Cluster()

    async def story(scheduler: Scheduler) -> None:
        store = cluster.server.core.store
        cluster.node("drained")
        cluster.pod("web")
        backup = store.backup()  # before the pod is bound
        await until(lambda: settled(scheduler, cluster))
        cluster.node("new")
        cluster.delete(NODES, "", "drained")
        cluster.pod("later")
        await until(lambda: settled(scheduler, cluster))
        await cluster.close()
        store.restore(Backup(backup.version + ahead, backup.objects))
        assert cluster.pods == {"default/web": ""}
        await cluster.open()
        await until(lambda: settled(scheduler, cluster))
        assert cluster.nodes == {"drained"}
        assert cluster.pods == {"default/web": "drained"}
        cluster.pod("after")
        await until(lambda: len(cluster.pods) == 2 and settled(scheduler, cluster))

    scheduler = asyncio.run(play(cluster, story))
    (pods,) = [each for each in scheduler.reflectors if each.resource is PODS]
    assert bool(pods.rewinds) is rewinds


def test_a_standby_that_takes_over_knows_what_a_restored_server_has() -> None:
    """A proxy kept its watches open: no answer has told that the server went back."""
    cluster = Cluster()

    async def story(scheduler: Scheduler) -> None:
        store = cluster.server.core.store
        cluster.node("n")
        backup = store.backup()
        cluster.pod("web")
        await until(lambda: settled(scheduler, cluster))
        store.restore(backup)
        await scheduler.caught_up()
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
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        (hearing,) = [each for kind, each in town.scheduler._hearings.items() if kind is PODS]
        hearing.begin()
        if looked_up:
            town.scheduler.landing.learn(a_pod("web", node="n"))
        else:
            town.feed.pod_seen(a_pod("web", node="n"))
        hearing.listed([a_pod("web")], ())
        hearing.end()
        assert town.where() == bound
        assert ("default/web" in town.feed.assembly) is not looked_up

    in_town(life)
