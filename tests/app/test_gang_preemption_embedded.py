"""Gangs of the shipped profile that preempt, on the embedded server: kept room, budgets, a restart in between."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from kubenexus.app.preemption import eviction_calls
from kubenexus.app.scheduler import Scheduler
from kubenexus.client import kinds
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, patch
from tests.api.gangs.builders import LEAST, NAME
from tests.app.embedded_story import Pods, a_scheduler, cluster, node_of, running, until
from tests.app.test_preemption_embedded import CLASSES
from tests.async_helpers import wait_until

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- schedulerName: kubenexus-scheduler
  pluginConfig: [{name: GangPreemption, args: {cooldownSeconds: 0}}]
"""
BUDGET = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guard"}}


def a_pod(name: str, *, high: bool = False, cpu: str = "2", **meta: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {
        "schedulerName": "kubenexus-scheduler",
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        **({"priorityClassName": "high"} if high else {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **meta}, "spec": spec}


def llama(size: int) -> list[dict[str, Any]]:
    return [a_pod(f"llama-{i}", high=True, labels={NAME: "llama", LEAST: str(size)}) for i in range(size)]


class Story:
    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self.evicted: list[str] = []

    async def make(self, *pods: dict[str, Any]) -> None:
        for pod in pods:
            await self.client.send(create(kinds.PODS, pod, "default"))

    async def filled(self, nodes: int, **meta: Any) -> None:
        await self.make(*[a_pod(f"low-{i}", **meta) for i in range(nodes)])
        await self.until(lambda pods: len(pods) == nodes and all(map(node_of, pods.values())))

    async def until(self, true: Callable[[Pods], bool]) -> Pods:
        return await until(self.client, true)

    @contextlib.asynccontextmanager
    async def scheduler(self) -> AsyncIterator[Scheduler]:
        scheduler = a_scheduler(self.client, CONFIG)
        record = scheduler.preemption.rules.evicted

        def evicted(pending: Any, victim: Any, *rest: Any) -> None:
            self.evicted.append(victim.name)
            record(pending, victim, *rest)

        scheduler.preemption.rules.evicted = evicted  # type: ignore[assignment,method-assign]
        async with running(scheduler):
            yield scheduler


def play(story: Callable[[Story], Any], nodes: int) -> None:
    async def life() -> None:
        async with cluster(nodes, "2") as box:
            for each in CLASSES:
                await box.client.send(create(kinds.PRIORITY_CLASSES, each))
            await story(Story(box.client))

    asyncio.run(life())


def lands(size: int) -> Callable[[Pods], bool]:
    return lambda pods: all(f"llama-{i}" in pods and node_of(pods[f"llama-{i}"]) for i in range(size))


def test_a_gang_gets_the_nodes_that_its_victims_leave_and_each_victim_was_needed() -> None:
    async def life(story: Story) -> None:
        async with story.scheduler() as scheduler:
            await story.filled(3)
            await story.make(*llama(2))
            pods = await story.until(lands(2))
            assert len(story.evicted) == 2
            assert len([name for name in pods if name.startswith("low")]) == 1
            assert not len(scheduler.ledger.preemptions)
            for i in range(2):
                assert pods[f"llama-{i}"]["status"]["nominatedNodeName"] == node_of(pods[f"llama-{i}"])

    play(life, 3)


def test_a_process_killed_between_two_evictions_is_followed_by_one_that_completes_the_job() -> None:
    async def life(story: Story) -> None:
        async with story.scheduler() as scheduler:
            await story.filled(2)
            evict, first = scheduler.preemption._calls.evict, asyncio.Event()

            async def once(*args: Any) -> bool:
                if first.is_set():
                    await asyncio.Event().wait()  # the process is gone before the second
                first.set()
                return await evict(*args)

            scheduler.preemption._calls.evict = once  # type: ignore[assignment,method-assign]
            await story.make(*llama(2))
            await story.until(lambda pods: len([name for name in pods if name.startswith("low")]) == 1)
            await wait_until(lambda: story.evicted)  # it has noted the first
        nominated = await story.until(lambda pods: len(pods) == 3)
        assert all(nominated[f"llama-{i}"]["status"].get("nominatedNodeName") for i in range(2))
        async with story.scheduler():
            await story.make(a_pod("thief"))  # of lower priority
            pods = await story.until(lands(2))
            assert not node_of(pods["thief"])
        assert sorted(story.evicted) == ["low-0", "low-1"]

    play(life, 2)


def test_a_budget_that_changes_in_between_stops_the_evictions_until_it_allows_them(monkeypatch: Any) -> None:
    monkeypatch.setattr(eviction_calls, "WAITS", (0.01, 0.01))

    async def life(story: Story) -> None:
        async with story.scheduler() as scheduler:
            await story.filled(1, labels={"app": "db"})
            spec = {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 0}
            await story.client.send(create(kinds.POD_DISRUPTION_BUDGETS, {**BUDGET, "spec": spec}, "default"))
            await allow(story, 1)
            while not any(budget.allowed for _, budget in scheduler.ledger.disruption_budgets.of("default")):
                await asyncio.sleep(0)
            nominate = scheduler.preemption._calls.nominate

            async def then_the_budget_changes(*args: Any) -> bool:
                await allow(story, 0)
                return await nominate(*args)

            scheduler.preemption._calls.nominate = then_the_budget_changes  # type: ignore[assignment,method-assign]
            await story.make(*llama(1))
            ended = scheduler.metrics.preemptions_ended.labels("failed")
            while not ended.value:
                await asyncio.sleep(0)
            assert story.evicted == []
            scheduler.preemption._calls.nominate = nominate  # type: ignore[method-assign]
            await allow(story, 1)  # it would else be spared for a minute
            await story.until(lands(1))
            assert story.evicted == ["low-0"]

    play(life, 1)


async def allow(story: Story, count: int) -> None:
    """There is no disruption controller here: we write its status."""
    status = {"disruptionsAllowed": count, "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 0}
    body = {"status": {**status, "expectedPods": 1}}
    await story.client.send(patch(kinds.POD_DISRUPTION_BUDGETS, "default", "guard", body, part="status"))
