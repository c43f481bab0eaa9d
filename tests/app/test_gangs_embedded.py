"""Gangs on the embedded server, scheduled over HTTP by the scheduler as it is."""

import asyncio
from collections.abc import Callable
from typing import Any

from kubenexus.client import kinds
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create
from kubenexus.queue.gangs.gang_jobs import INCOMPLETE
from tests.api.gangs.builders import LEAST, NAME
from tests.app.embedded_story import Pods, cluster, member, node_of, scheduled, until, why


async def play(story: Callable[[ApiClient], Any], count: int = 2, cpu: str = "2") -> None:
    """On so many nodes of so many CPUs."""
    async with cluster(count, cpu) as box, scheduled(box):
        await story(box.client)


def test_a_gang_waits_on_the_server_and_starts_when_its_last_member_is_made() -> None:
    async def story(client: ApiClient) -> None:
        labels = {NAME: "llama", LEAST: "4"}
        for i in range(3):
            await client.send(create(kinds.PODS, member(f"llama-{i}", labels), "default"))
        waiting = await until(client, lambda pods: len(pods) == 3 and all(map(why, pods.values())))
        assert [why(waiting[f"llama-{i}"]).partition(": ")[0] for i in range(3)] == [INCOMPLETE] * 3
        assert why(waiting["llama-0"]).endswith(" of at least 4")
        assert not any(map(node_of, waiting.values()))
        await client.send(create(kinds.PODS, member("llama-3", labels), "default"))
        there = await until(client, lambda pods: len(pods) == 4 and all(map(node_of, pods.values())))
        assert len(set(map(node_of, there.values()))) == 2

    asyncio.run(play(story))


def test_of_two_gangs_that_need_the_whole_cluster_one_starts() -> None:
    async def story(client: ApiClient) -> None:
        for i in range(4):
            for gang in ("left", "right"):
                labels = {NAME: gang, LEAST: "4"}
                await client.send(create(kinds.PODS, member(f"{gang}-{i}", labels), "default"))

        def settled(pods: Pods) -> bool:
            return len(pods) == 8 and all(node_of(pod) or why(pod) for pod in pods.values())

        pods = await until(client, settled)
        counts = [sum(bool(node_of(pods[f"{gang}-{i}"])) for i in range(4)) for gang in ("left", "right")]
        assert sorted(counts) == [0, 4]

    asyncio.run(play(story))
