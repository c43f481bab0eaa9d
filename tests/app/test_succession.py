"""One scheduler after the other on the embedded server, in virtual time: what the first leaves half done, and what the
next one knows from the API server alone."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kubenexus.app.scheduler import Scheduler
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Call
from kubenexus.client.verbs import create, delete, get, list_call, patch_pod_status
from kubenexus.config import defaults
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN
from kubenexus.queue.gangs.bound_members import COMPLETE
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.kubelets.pod_status import running
from kubenexus.sim.kubelets.types import Pod as SeenPod
from kubenexus.sim.virtual.in_process_client import InProcessClient
from kubenexus.sim.virtual.loop import LoopClock, run
from tests.api.gangs.builders import LEAST, NAME
from tests.sim.virtual.virtual_time import elapse

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "job-uid", "controller": True}


class Cluster:
    """`refused` are the members whose binds a webhook refuses, `slow` the seconds that a bind takes."""

    def __init__(self) -> None:
        self.clock = LoopClock(asyncio.get_running_loop())
        self.server = ApiServer(self.clock, random.Random(1))
        self.api = InProcessClient(self.server)
        self.refused: set[str] = set()
        self.slow = 0.0
        self.evicted: list[str] = []

    # --- what a scheduler sees of it ------------------------------------------------------------------------------

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        name = call.path.split("/")[-2]
        if call.path.endswith("/binding"):
            await elapse(self.slow)
            if name in self.refused:
                raise ApiError(403, "Forbidden", 'admission webhook "policy" denied the request')
        answer = await self.api.send(call, timeout=timeout)
        if call.path.endswith("/eviction"):
            self.evicted.append(name)
            self.ask("DELETE", f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0})  # the kubelet
        return answer

    async def stream(self, path: str, *, timeout: float = 10.0) -> Any:
        return await self.api.stream(path, timeout=timeout)

    @asynccontextmanager
    async def scheduler(self) -> AsyncIterator[Scheduler]:
        """One that ends as by kill -9: nothing is finished, nothing is handed over."""
        plugins = load_plugins(BUILT_IN)
        scheduler = Scheduler(defaults(plugins), plugins, self, self.clock, random.Random(1))
        tasks = [asyncio.ensure_future(scheduler.watches.run())]
        try:
            while scheduler.watches.unsynced:
                await elapse(0.001)
            tasks.append(asyncio.ensure_future(scheduler.schedule()))
            yield scheduler
        finally:
            for task in [*tasks, *scheduler.dispatcher._open]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # --- what the test does ---------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        answer = self.api.now(Call(method, path, data, "application/json"))
        assert answer.code < 300, answer.body
        return json.loads(answer.body)

    def node(self, name: str, cpu: int) -> None:
        offers = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        made = self.ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        ready = [{"type": "Ready", "status": "True"}]
        made["status"] = {"allocatable": offers, "capacity": offers, "conditions": ready}
        made = self.ask("PUT", f"/api/v1/nodes/{name}/status", made)
        if made["spec"].pop("taints", None):
            self.ask("PUT", f"/api/v1/nodes/{name}", made)

    def member(self, name: str, least: int, gang: str = "g", cpu: int = 1) -> None:
        meta = {"name": name, "labels": {NAME: gang, LEAST: str(least)}, "ownerReferences": [OWNER]}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
        spec = {"schedulerName": "kubenexus-scheduler", "containers": [container]}
        self.now(create(kinds.PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, "default"))

    def now(self, call: Call) -> bytes:
        answer = self.api.now(call)
        assert answer.code < 300, answer.body
        return answer.body

    def start(self, *names: str) -> None:
        """Kubelets run them, and say so as they do."""
        for name in names:
            pod = msgspec.json.decode(self.now(get(kinds.PODS, "default", name)), type=SeenPod)
            status = running(pod, self.clock.now(), "10.0.0.1", "")
            self.now(patch_pod_status("default", name, pod.metadata.uid, status))

    def finish(self, name: str) -> None:
        """It has succeeded; no watch of ours shows it any more."""
        uid = self.pods()[name]["metadata"]["uid"]
        self.now(patch_pod_status("default", name, uid, {"phase": "Succeeded"}))

    def bind(self, name: str, node: str) -> None:
        """As another scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self.ask("POST", f"/api/v1/namespaces/default/pods/{name}/binding", binding)

    def lose(self, name: str) -> None:
        uid = self.pods()[name]["metadata"]["uid"]
        self.now(delete(kinds.PODS, "default", name, uid, grace_seconds=0))

    def pods(self) -> dict[str, dict[str, Any]]:
        items = json.loads(self.now(list_call(kinds.PODS)))["items"]
        return {each["metadata"]["name"]: each for each in items}

    def bound(self) -> list[str]:
        return sorted(name for name, pod in self.pods().items() if pod["spec"].get("nodeName"))

    def witnesses(self) -> list[str]:
        def says(pod: dict[str, Any]) -> bool:
            return any(each["type"] == COMPLETE for each in pod["status"].get("conditions", ()))

        return sorted(name for name, pod in self.pods().items() if says(pod))


Story = Callable[[Cluster], Coroutine[Any, Any, None]]


def play(story: Story) -> None:
    async def life() -> None:
        await story(Cluster())

    run(life())


def test_a_gang_that_was_complete_keeps_its_running_members_under_the_next_scheduler() -> None:
    """A member is lost while no scheduler runs. The conditions of those that are left survive their start."""

    async def story(cluster: Cluster) -> None:
        for i in range(5):
            cluster.node(f"n{i}", 1)
        for i in range(5):
            cluster.member(f"m{i}", 5)
        async with cluster.scheduler():
            await elapse(10)
        assert len(cluster.witnesses()) == 3
        cluster.start(*cluster.bound())
        cluster.lose(cluster.witnesses()[0])
        assert len(cluster.witnesses()) == 2
        async with cluster.scheduler():
            await elapse(3600)
        assert (cluster.evicted, len(cluster.bound())) == ([], 4)

    play(story)


def test_a_gang_whose_members_finish_one_by_one_says_to_its_end_that_it_was_complete() -> None:
    """Those that said so first are the first to finish; then comes a new scheduler, for which they do not exist."""

    async def story(cluster: Cluster) -> None:
        for i in range(5):
            cluster.node(f"n{i}", 1)
            cluster.member(f"m{i}", 5)
        async with cluster.scheduler():
            await elapse(10)
            cluster.start(*cluster.bound())
            for name in cluster.witnesses():
                cluster.finish(name)
                await elapse(5)
        assert len(cluster.witnesses()) == 5, "two more say so, beside the three that have finished"
        cluster.member("replacement", 5, cpu=2)  # so that the gang is one of which a member waits
        async with cluster.scheduler():
            await elapse(3600)
        assert cluster.evicted == []

    play(story)


@pytest.mark.parametrize(
    ("waits", "evicted"),
    [
        pytest.param(False, [], id="no member waits: the others have finished"),
        pytest.param(True, ["m0", "m1", "m2"], id="a member waits, and finds no room"),
    ],
)
def test_a_gang_that_another_scheduler_started(waits: bool, evicted: list[str]) -> None:
    """Nothing says that it ever was complete; its running members are of no use to a gang of which no member waits."""

    async def story(cluster: Cluster) -> None:
        for i in range(4):
            cluster.node(f"n{i}", 1)
            cluster.member(f"m{i}", 4)
            cluster.bind(f"m{i}", f"n{i}")
        cluster.start(*cluster.bound())
        cluster.finish("m3")
        if waits:
            cluster.lose("m3")
            cluster.member("m3", 4, cpu=2)
        async with cluster.scheduler():
            await elapse(3600)
        assert sorted(set(cluster.evicted)) == evicted

    play(story)


@pytest.mark.parametrize("starts", [True, False], ids=["they run", "they have not started"])
def test_a_gang_that_never_was_complete_is_released_by_the_next_scheduler(starts: bool) -> None:
    """The deadline is counted from the first bind, by whichever process; a whole gang beside it is left alone."""

    async def story(cluster: Cluster) -> None:
        cluster.node("n", 9)
        cluster.refused = {"m3"}
        for i in range(4):
            cluster.member(f"m{i}", 4)
            cluster.member(f"w{i}", 4, "whole")
        async with cluster.scheduler():
            await elapse(100)
            half, whole = ([name for name in cluster.bound() if name[0] == each] for each in "mw")
            assert (len(half), len(whole)) == (3, 4)
            if starts:
                cluster.start(*half)
        async with cluster.scheduler():
            await elapse(190)
            assert cluster.evicted == []
            await elapse(30)
        assert sorted(cluster.evicted) == half
        assert cluster.bound() == whole

    play(story)


def test_a_scheduler_killed_in_the_middle_of_a_gang_has_it_completed_by_the_next() -> None:
    async def story(cluster: Cluster) -> None:
        for i in range(4):
            cluster.node(f"n{i}", 50)
        for i in range(150):
            cluster.member(f"m{i:03}", 150)
        cluster.slow = 1.0
        async with cluster.scheduler():
            await elapse(1.5)
        assert 0 < len(cluster.bound()) < 150
        cluster.slow = 0.0
        async with cluster.scheduler():
            await elapse(30)
        assert (len(cluster.bound()), cluster.evicted) == (150, [])
        assert len(cluster.witnesses()) == 3

    play(story)
