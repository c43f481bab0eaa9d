"""How long the loop can be kept by one object, whatever it contains: `longest turn`.

A whole scheduler in virtual time on a cluster of 5,000 nodes meets one object after the other, each with one field
grown to what an API server accepts (and to sizes below, where the budget lets it pass): pods that wait, pods that
somebody bound, nodes and other kinds; and many objects at once. Every callback of the event loop is timed; the longest
is the figure, and of a scene played three times the least.
"""

from collections.abc import AsyncIterator, Iterator
from itertools import count, takewhile

from bench.measure import Longest
from kubenexus.testing.large.groups import GROUPS
from kubenexus.testing.large.large_cluster import LargeCluster, run_on_large_cluster
from kubenexus.testing.large.scenarios import MANY, LargeScenario, dimensions, play

BENCH, MEMORY = "longest turn", "largest turn"
FIRST, FACTOR = 50, 3
AGAIN, ABOVE = 2, 0.07  # a turn longer than this many seconds is measured twice more: a busy neighbour costs a third


def rows(nodes: int, most: int | None = None) -> Iterator[Longest]:
    """The longest turn of each kind of scene: a hundred would hide the one that matters. And what took most memory."""
    found = measure(nodes, most)
    for about in dict.fromkeys(about for about, _ in dimensions()):
        yield max((each for each in found if each.case.startswith(about)), key=lambda each: each.ms)
    largest = max(found, key=lambda each: each.mb)
    yield Longest(MEMORY, largest.case, nodes, largest.ms, largest.mb)


def measure(nodes: int, most: int | None = None) -> list[Longest]:
    """The longest turn and the most memory for each field. `most`: no more entries than that."""
    found: list[Longest] = []

    async def all_scenes(stage: LargeCluster) -> None:
        for about, dimension in dimensions():
            scenes = [pair async for pair in _scenes(stage, about, dimension, most)]
            entries, worst = max(scenes, key=lambda pair: pair[1].longest.seconds)
            megabytes = max(scene.largest.megabytes for _, scene in scenes)
            case = f"{about}: {entries:,} {dimension}"
            found.append(Longest(BENCH, case, nodes, round(worst.longest.seconds * 1e3, 1), round(megabytes, 1)))

    run_on_large_cluster(all_scenes, nodes)
    return found


async def _scenes(
    stage: LargeCluster, about: str, dimension: str, most: int | None
) -> AsyncIterator[tuple[int, LargeScenario]]:
    for entries in _sizes(about, dimension, most):
        scene = await play(stage, about, dimension, entries)
        if scene is None:
            return
        for _ in range(AGAIN if scene.longest.seconds > ABOVE else 0):
            another = await play(stage, about, dimension, entries)
            if another is not None and another.longest.seconds < scene.longest.seconds:
                scene = another
        yield entries, scene


def _sizes(about: str, dimension: str, most: int | None) -> Iterator[int]:
    """The numbers of entries; the last of many objects is the most that are tried."""
    limit = GROUPS[dimension].most if about == MANY else None
    sizes = takewhile(lambda size: limit is None or size < limit, (FIRST * FACTOR**i for i in count()))
    yield from takewhile(lambda size: most is None or size <= most, sizes)
    if limit is not None and (most is None or limit <= most):
        yield limit
