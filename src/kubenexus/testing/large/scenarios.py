"""Scenarios with a large object or many objects: they arrive, other objects come and go, they change and are deleted.

Each scenario restores the cluster and returns its turns. It raises NotPlacedError if an ordinary pod beside the object
is not placed.
"""

from collections.abc import AsyncIterator, Iterator

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.client import kinds
from kubenexus.client.watch_events import DELETED, MODIFIED
from kubenexus.framework.pod_limits import POD_LIMITS
from kubenexus.testing.large.groups import GROUPS
from kubenexus.testing.large.large_cluster import Item, LargeCluster, LongestTurn
from kubenexus.testing.large.objects import OTHERS, node
from kubenexus.testing.large.pods import ANNOTATION_BYTES, BYTES, PODS, Grow, Json, plain

NAME, BESIDE = "large", "beside"
MANY = "many objects"
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
    """Whether an API server would accept the size of the object, and that of its annotations."""
    annotations: dict[str, str] = thing["metadata"].get("annotations", {})
    annotated = sum(len(key) + len(value) for key, value in annotations.items())
    return annotated <= ANNOTATION_BYTES and len(msgspec.json.encode(thing)) <= BYTES


async def waits(cluster: LargeCluster, pod: Json) -> LargeScenario:
    """A pending pod: it is placed or refused, and retried after other events."""
    turns = [await cluster.seen("it comes", pod)]
    refused = cluster.refused_by(NAME) == (POD_LIMITS,)
    turns += [turn async for turn in _others(cluster)]
    pod["metadata"]["labels"]["changed"] = "yes"
    if cluster.node_of(NAME):
        pod["spec"]["nodeName"] = cluster.node_of(NAME)
    turns.append(await cluster.changed("it changes", pod))
    turns.append(await cluster.passes("it is tried again", 400.0))
    turns.append(await cluster.gone("it leaves", pod))
    cluster.server.bound.pop(NAME, None)
    return LargeScenario(tuple(turns), refused)


async def runs(cluster: LargeCluster, pod: Json) -> LargeScenario:
    """A pod that another scheduler bound: it cannot be refused."""
    turns = [await cluster.seen("it comes", pod)]
    turns += [turn async for turn in _others(cluster)]
    pod["metadata"]["labels"]["changed"] = "yes"
    turns.append(await cluster.changed("it changes", pod))
    turns.append(await cluster.gone("it leaves", pod))
    return LargeScenario(tuple(turns))


async def stands(cluster: LargeCluster, dimension: str, number: int) -> LargeScenario:
    """A node, or an object of another kind."""
    resource, make = OTHERS[dimension]
    thing = make(number)
    turns = [await cluster.seen("it comes", thing, resource)]
    turns += [turn async for turn in _others(cluster)]
    thing["metadata"].setdefault("annotations", {})["changed"] = "yes"
    thing["metadata"].setdefault("labels", {})["changed"] = "yes"
    turns.append(await cluster.changed("it changes", thing, resource))
    turns.append(await cluster.gone("it leaves", thing, resource))
    return LargeScenario(tuple(turns))


async def gathers(cluster: LargeCluster, dimension: str, number: int) -> LargeScenario:
    """Many objects: those that wait are placed or refused, then some change."""
    group = GROUPS[dimension]
    items = group.make(number)
    turns = [await cluster.all_seen("they come", items)]
    bound = [item for item in items if item.resource is kinds.PODS and _is_bound(cluster, item)]
    turns.append(await cluster.all_seen("they are bound", bound, MODIFIED))
    turns += [turn async for turn in _others(cluster)]
    turns.append(await cluster.all_seen("they change", group.change(items), MODIFIED))
    turns.append(await cluster.passes("they are tried again", 400.0))
    turns.append(await cluster.all_seen("they leave", items[::-1], DELETED))
    for item in items:
        cluster.server.bound.pop(item.thing["metadata"]["name"], None)
    return LargeScenario(tuple(turns))


def _is_bound(cluster: LargeCluster, item: Item) -> bool:
    """Whether the scheduler bound the pod; its node is then filled in."""
    where = cluster.node_of(item.thing["metadata"]["name"])
    if where:
        item.thing["spec"]["nodeName"] = where
    return bool(where)


def dimensions() -> Iterator[tuple[str, str]]:
    """Yields the subject of each scenario and the field that grows in it."""
    yield from (("a pod that waits", dimension) for dimension in PODS)
    yield from (("a pod that runs", dimension) for dimension in PODS)
    yield from (("another object", dimension) for dimension in OTHERS)
    yield from ((MANY, dimension) for dimension in GROUPS)


async def play(cluster: LargeCluster, about: str, dimension: str, number: int) -> LargeScenario | None:
    """Runs one scenario; None if the object is too large for an API server, or the objects are too many."""
    if about == MANY:
        return await gathers(cluster, dimension, number) if number <= GROUPS[dimension].most else None
    if about == "another object":
        return await stands(cluster, dimension, number) if fits(OTHERS[dimension].make(number)) else None
    pod = grown(PODS[dimension], number, at=_HOME if about == "a pod that runs" else "", uid=f"-{number}")
    if not fits(pod):
        return None
    return await (runs(cluster, pod) if about == "a pod that runs" else waits(cluster, pod))


async def _others(cluster: LargeCluster) -> AsyncIterator[LongestTurn]:
    """An ordinary pod arrives and is placed, a node is added and removed."""
    yield await cluster.seen("a pod comes", plain(BESIDE))
    where = cluster.node_of(BESIDE)
    if not where:
        raise NotPlacedError(f"an ordinary pod was not placed: {cluster.said_of(BESIDE) or 'it was not tried'}")
    more = node(1, "further")
    yield await cluster.seen("a node comes", more, kinds.NODES)
    yield await cluster.gone("a node leaves", more, kinds.NODES)
    yield await cluster.gone("a pod leaves", plain(BESIDE, where))
    cluster.server.bound.pop(BESIDE, None)
