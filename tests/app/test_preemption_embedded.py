"""Preemption on the embedded server, over HTTP, by a profile with kube-scheduler's name."""

import asyncio
from collections.abc import Callable
from typing import Any

from kubenexus.app.scheduler import Scheduler
from kubenexus.client import kinds
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, delete, list_call
from tests.app.embedded_story import Pods, answered, cluster, node_of, scheduled, until, why

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}]
"""


def a_class(name: str, policy: str) -> dict[str, Any]:
    more = {"metadata": {"name": name}, "value": 100, "preemptionPolicy": policy}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **more}


CLASSES = (a_class("high", "PreemptLowerPriority"), a_class("polite", "Never"))


def a_pod(name: str, *, high: bool = False, cpu: str = "2", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    more = {"schedulerName": "default-scheduler", "containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    if high:
        more.setdefault("priorityClassName", "high")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": more}


class Story:
    """A scheduler on the embedded server, and the events that it wrote."""

    def __init__(self, client: ApiClient, scheduler: Scheduler) -> None:
        self.client, self.scheduler = client, scheduler

    async def make(self, *pods: dict[str, Any]) -> None:
        for pod in pods:
            await self.client.send(create(kinds.PODS, pod, "default"))

    async def filled(self, *names: str) -> None:
        """A pod of low priority on each node."""
        await self.make(*[a_pod(name) for name in names])
        await self.until(lambda pods: all(name in pods and node_of(pods[name]) for name in names))

    async def until(self, true: Callable[[Pods], bool]) -> Pods:
        return await until(self.client, true)

    async def events(self, reason: str, count: int) -> list[str]:
        """The events with this reason, once there are so many."""

        def told(listed: Any) -> list[str]:
            return [
                f"{each['regarding']['name']}: {each['note']}" for each in listed["items"] if each["reason"] == reason
            ]

        return told(await answered(self.client, list_call(kinds.EVENTS), lambda listed: len(told(listed)) >= count))


def play(story: Callable[[Story], Any], nodes: int = 2) -> None:
    async def life() -> None:
        async with cluster(nodes, "2") as box, scheduled(box, CONFIG) as scheduler:
            for each in CLASSES:
                await box.client.send(create(kinds.PRIORITY_CLASSES, each))
            await story(Story(box.client, scheduler))

    asyncio.run(life())


def test_pods_of_low_priority_make_room_for_one_of_high_priority() -> None:
    async def life(story: Story) -> None:
        await story.filled("low-0", "low-1")
        await story.make(a_pod("urgent", high=True))
        pods = await story.until(lambda pods: "urgent" in pods and bool(node_of(pods["urgent"])))
        left = [name for name in ("low-0", "low-1") if name in pods]
        assert len(left) == 1, "one victim, not two"
        assert node_of(pods[left[0]]) != node_of(pods["urgent"])
        (told,) = await story.events("Preempted", 1)
        uid = pods["urgent"]["metadata"]["uid"]
        assert told.split(": ")[1] == f"Preempted by pod {uid} on node {node_of(pods['urgent'])}"
        (failed,) = await story.events("FailedScheduling", 1)
        assert failed == (
            "urgent: 0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential placement for pod on "
            f"node {node_of(pods['urgent'])}, preempting 1 victims"
        )
        assert not len(story.scheduler.ledger.preemptions)

    play(life)


def test_each_of_several_alike_gets_a_node_of_its_own() -> None:
    async def life(story: Story) -> None:
        await story.filled("low-0", "low-1", "low-2")
        await story.make(*[a_pod(f"urgent-{i}", high=True) for i in range(3)])
        pods = await story.until(
            lambda pods: all(f"urgent-{i}" in pods and bool(node_of(pods[f"urgent-{i}"])) for i in range(3))
        )
        assert set(pods) == {f"urgent-{i}" for i in range(3)}
        assert len(await story.events("Preempted", 3)) == 3

    play(life, nodes=3)


def test_a_pod_with_the_policy_never_waits() -> None:
    async def life(story: Story) -> None:
        await story.filled("low-0")
        await story.make(a_pod("polite", high=True, priorityClassName="polite"))
        pods = await story.until(lambda pods: "polite" in pods and bool(why(pods["polite"])))
        assert why(pods["polite"]) == (
            "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
        )
        assert node_of(pods["low-0"])
        await story.make(a_pod("urgent", high=True))  # alike, but for the policy
        await story.until(lambda pods: "urgent" in pods and bool(node_of(pods["urgent"])))

    play(life, nodes=1)


def test_a_node_whose_victim_violates_no_budget_is_taken_first() -> None:
    async def life(story: Story) -> None:
        await story.filled("low-0", "low-1")
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "guard"},
            "spec": {"selector": {"matchLabels": {"app": "low-0"}}, "maxUnavailable": 0},
        }
        await story.client.send(create(kinds.POD_DISRUPTION_BUDGETS, budget, "default"))
        while not story.scheduler.ledger.disruption_budgets.of("default"):
            await asyncio.sleep(0)
        await story.make(a_pod("urgent", high=True))
        pods = await story.until(lambda pods: "urgent" in pods and bool(node_of(pods["urgent"])))
        assert "low-0" in pods
        assert "low-1" not in pods

    play(life)


def test_nothing_more_is_evicted_for_a_pod_that_is_gone() -> None:
    async def life(story: Story) -> None:
        await story.make(*[a_pod(f"low-{i}", cpu="500m") for i in range(4)])
        await story.until(lambda pods: len(pods) == 4 and all(map(node_of, pods.values())))
        evict, begun = story.scheduler.preemption._evict, asyncio.Event()

        async def first_then_gone(*args: Any) -> None:
            await evict(*args)
            if not begun.is_set():
                begun.set()
                pod = (await story.until(lambda pods: "urgent" in pods))["urgent"]
                await story.client.send(delete(kinds.PODS, "default", "urgent", pod["metadata"]["uid"]))
                while "default/urgent" in story.scheduler.queue:
                    await asyncio.sleep(0)

        story.scheduler.preemption._evict = first_then_gone  # type: ignore[assignment,method-assign]
        await story.make(a_pod("urgent", high=True))
        await begun.wait()
        pods = await story.until(lambda pods: "urgent" not in pods and story.scheduler.preemption.idle)
        assert len([name for name in pods if name.startswith("low")]) >= 3
        assert not len(story.scheduler.ledger.preemptions)

    play(life, nodes=1)
