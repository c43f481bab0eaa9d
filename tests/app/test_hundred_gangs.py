"""A hundred gangs of eight that come all at once, on a cluster that holds sixty of them, over HTTP."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

from kubenexus.client import kinds
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import bind, create, delete
from kubenexus.sim.embedded_cluster import EmbeddedCluster
from tests import async_helpers
from tests.api.gangs.builders import LEAST, NAME
from tests.app.embedded_story import Pods, cluster, member, node_of, scheduled, until, why
from tests.chaos.checker import Checker

GANGS, SIZE, HELD, ENDED = 100, 8, 60, 15
NODES, CPUS = 30, 16
DEADLINE = 10.0  # seconds that a gang may take from its first bind to its last, on a slow machine


async def come(client: ApiClient) -> None:
    """The first member of each gang, then the second of each: nobody is complete before almost all are there."""
    for i in range(SIZE):
        made = [member(f"g{gang:02}-{i}", {NAME: f"g{gang:02}", LEAST: str(SIZE)}) for gang in range(GANGS)]
        await asyncio.gather(*(client.send(create(kinds.PODS, pod, "default")) for pod in made))


def sizes(pods: Pods) -> Counter[str]:
    """How many members have a node, by gang."""
    return Counter(name.partition("-")[0] for name, pod in pods.items() if node_of(pod))


def settled(pods: Pods) -> bool:
    """Every pod has a node, or was told that its gang does not fit."""
    refused = ("of at least 8 members fit", "refused as a whole")
    return all(node_of(pod) or any(each in why(pod) for each in refused) for pod in pods.values())


@contextlib.asynccontextmanager
async def watched(box: EmbeddedCluster, deadline: float) -> AsyncIterator[Checker]:
    """With a judge who has the server's word alone. It lives in threads: the server needs this loop to answer it."""
    host = box.served.address.removeprefix("http://")
    checker = Checker(host, "", None, scheduler="kubenexus-scheduler", deadline=deadline)
    await asyncio.to_thread(checker.__enter__)
    try:
        yield checker
    finally:
        await asyncio.to_thread(checker.__exit__, None, None, None)


async def seen(checker: Checker, pods: Pods) -> None:
    """Until the judge has heard of all this."""
    versions = {pod["metadata"]["uid"]: node_of(pod) for pod in pods.values()}
    await async_helpers.wait_until(lambda: {pod.uid: pod.node for pod in checker.pods()} == versions)


def test_sixty_run_whole_forty_wait_whole_and_the_next_start_when_some_end() -> None:
    async def story(client: ApiClient, checker: Checker) -> None:
        await come(client)
        pods = await until(client, lambda pods: len(pods) == GANGS * SIZE and settled(pods))
        first = sizes(pods)
        assert (len(first), set(first.values())) == (HELD, {SIZE})
        leaving = sorted(first)[:ENDED]
        ends = [pods[f"{gang}-{i}"]["metadata"] for gang in leaving for i in range(SIZE)]
        calls = [delete(kinds.PODS, "default", each["name"], each["uid"], grace_seconds=0) for each in ends]
        await asyncio.gather(*map(client.send, calls))
        pods = await until(client, lambda pods: sum(sizes(pods).values()) == HELD * SIZE)
        second = sizes(pods)
        assert (len(second), set(second.values())) == (HELD, {SIZE})
        assert second.keys() >= first.keys() - set(leaving), "who runs, runs on"
        waiting = [pod for name, pod in pods.items() if name.partition("-")[0] not in second]
        assert len(waiting) == (GANGS - ENDED - HELD) * SIZE
        await seen(checker, pods)

    async def life() -> None:
        async with cluster(NODES, str(CPUS)) as box, watched(box, DEADLINE) as checker, scheduled(box):
            await story(box.client, checker)
        assert checker.breaches == []
        assert checker.unsettled() == []

    asyncio.run(life())


def test_the_judge_goes_red_on_a_scheduler_that_binds_half_of_a_gang() -> None:
    async def life() -> None:
        async with cluster(1, str(CPUS)) as box, watched(box, deadline=0.0) as checker:
            for i in range(SIZE):
                await box.client.send(create(kinds.PODS, member(f"g-{i}", {NAME: "g", LEAST: str(SIZE)}), "default"))
            pods = await until(box.client, lambda pods: len(pods) == SIZE)
            await async_helpers.wait_until(checker.free)  # it watches in a thread of its own, and may be behind
            node = next(iter(checker.free()))
            for name in sorted(pods)[: SIZE // 2]:
                await box.client.send(bind("default", name, pods[name]["metadata"]["uid"], node))
            await seen(checker, await until(box.client, lambda pods: sizes(pods)["g"] == SIZE // 2))
        assert {breach.law for breach in checker.breaches} == {"halved"}
        assert "gang default/g has 4 members on nodes and needs 8" in [each.text for each in checker.unsettled()]

    asyncio.run(life())
