"""Scenarios with a large object: it arrives, other objects come and go, it changes, and it is deleted.

Each scenario restores the cluster and returns its turns. It raises NotPlacedError if an ordinary pod beside the object
is not placed.
"""

from collections.abc import AsyncIterator, Iterator

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.client import kinds
from kubenexus.framework.pod_limits import POD_LIMITS
from kubenexus.testing.large.large_cluster import LargeCluster, LongestTurn
from kubenexus.testing.large.objects import OTHERS, node
from kubenexus.testing.large.pods import BYTES, PODS, Grow, Json, plain

NAME, BESIDE = "large", "beside"
_HOME = "node-1"


class NotPlacedError(KubeNexusError):
    """An ordinary pod was not placed, because of a large object beside it."""


class LargeScenario(msgspec.Struct, frozen=True):
    """The turns of a scenario, and whether the budget refused the object."""

    turns: tuple[LongestTurn, ...]
    refused: bool = False

    @property
    def longest(self) -> LongestTurn:
        return max(self.turns, key=lambda turn: turn.seconds)

    @property
    def largest(self) -> LongestTurn:
        return max(self.turns, key=lambda turn: turn.megabytes)


def grown(grow: Grow, number: int, *, at: str = "", uid: str = "") -> Json:
    """Returns a pod with one field of so many entries; it waits, or runs on a node."""
    pod = plain(NAME, at)
    pod["metadata"]["uid"] += uid
    grow(pod, number)
    return pod


def fits(thing: Json) -> bool:
    """Whether an API server would accept the size of the object."""
    return len(msgspec.json.encode(thing)) <= BYTES


async def waits(stage: LargeCluster, pod: Json) -> LargeScenario:
    """A pending pod: it is placed or refused, and retried after other events."""
    turns = [await stage.seen("it comes", pod)]
    refused = stage.refused_by(NAME) == (POD_LIMITS,)
    turns += [turn async for turn in _others(stage)]
    pod["metadata"]["labels"]["changed"] = "yes"
    if stage.node_of(NAME):
        pod["spec"]["nodeName"] = stage.node_of(NAME)
    turns.append(await stage.changed("it changes", pod))
    turns.append(await stage.passes("it is tried again", 400.0))
    turns.append(await stage.gone("it leaves", pod))
    return LargeScenario(tuple(turns), refused)


async def runs(stage: LargeCluster, pod: Json) -> LargeScenario:
    """A pod that another scheduler bound: it cannot be refused."""
    turns = [await stage.seen("it comes", pod)]
    turns += [turn async for turn in _others(stage)]
    pod["metadata"]["labels"]["changed"] = "yes"
    turns.append(await stage.changed("it changes", pod))
    turns.append(await stage.gone("it leaves", pod))
    return LargeScenario(tuple(turns))


async def stands(stage: LargeCluster, dimension: str, number: int) -> LargeScenario:
    """A node, or an object of another kind."""
    resource, make = OTHERS[dimension]
    thing = make(number)
    turns = [await stage.seen("it comes", thing, resource)]
    turns += [turn async for turn in _others(stage)]
    thing["metadata"].setdefault("annotations", {})["changed"] = "yes"
    thing["metadata"].setdefault("labels", {})["changed"] = "yes"
    turns.append(await stage.changed("it changes", thing, resource))
    turns.append(await stage.gone("it leaves", thing, resource))
    return LargeScenario(tuple(turns))


def dimensions() -> Iterator[tuple[str, str]]:
    """Yields the subject of each scenario and the field that grows in it."""
    yield from (("a pod that waits", dimension) for dimension in PODS)
    yield from (("a pod that runs", dimension) for dimension in PODS)
    yield from (("another object", dimension) for dimension in OTHERS)


async def play(stage: LargeCluster, about: str, dimension: str, number: int) -> LargeScenario | None:
    """Runs one scenario; None if the object is too large for an API server."""
    if about == "another object":
        return await stands(stage, dimension, number) if fits(OTHERS[dimension].make(number)) else None
    pod = grown(PODS[dimension], number, at=_HOME if about == "a pod that runs" else "", uid=f"-{number}")
    if not fits(pod):
        return None
    return await (runs(stage, pod) if about == "a pod that runs" else waits(stage, pod))


async def _others(stage: LargeCluster) -> AsyncIterator[LongestTurn]:
    """An ordinary pod arrives and is placed, a node is added and removed."""
    yield await stage.seen("a pod comes", plain(BESIDE))
    where = stage.node_of(BESIDE)
    if not where:
        raise NotPlacedError(f"an ordinary pod was not placed: {stage.said_of(BESIDE) or 'it was not tried'}")
    more = node(1, "further")
    yield await stage.seen("a node comes", more, kinds.NODES)
    yield await stage.gone("a node leaves", more, kinds.NODES)
    yield await stage.gone("a pod leaves", plain(BESIDE, where))
    stage.server.bound.pop(BESIDE, None)
