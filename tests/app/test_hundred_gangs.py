"""A hundred gangs of eight that come all at once, on a cluster that holds sixty of them, over HTTP."""

import asyncio
from collections import Counter

from kubenexus.client import kinds
from kubenexus.client.transport import Client
from kubenexus.client.verbs import create, delete
from tests.api.gangs.small import LEAST, NAME
from tests.app.test_gangs_embedded import Pods, member, node_of, play, until, why

GANGS, SIZE, HELD, ENDED = 100, 8, 60, 15
NODES, CPUS = 30, 16


async def come(client: Client) -> None:
    """The first member of each gang, then the second of each: nobody is complete before almost all are there."""
    for i in range(SIZE):
        made = [member(f"g{gang:02}-{i}", {NAME: f"g{gang:02}", LEAST: str(SIZE)}) for gang in range(GANGS)]
        await asyncio.gather(*(client.send(create(kinds.PODS, pod, "default")) for pod in made))


def sizes(pods: Pods) -> Counter[str]:
    """How many members have a node, by gang."""
    return Counter(name.partition("-")[0] for name, pod in pods.items() if node_of(pod))


def settled(pods: Pods) -> bool:
    """Every pod has a node, or was told that its gang does not fit."""
    return all(node_of(pod) or "of at least 8 members fit" in why(pod) for pod in pods.values())


def test_sixty_run_whole_forty_wait_whole_and_the_next_start_when_some_end() -> None:
    async def story(client: Client) -> None:
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

    asyncio.run(play(story, NODES, str(CPUS)))
