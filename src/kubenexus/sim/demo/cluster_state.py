"""The state of the demo cluster as a client with watches sees it. The steps read it, and the view draws it."""

import asyncio
import functools
import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kubenexus.api.allocatable import allocatable
from kubenexus.api.codec import Unreadable
from kubenexus.api.core import Node, Pod
from kubenexus.api.meta import ApiObject, ObjectMeta
from kubenexus.api.resources import footprint
from kubenexus.base.clock import Clock
from kubenexus.client import kinds
from kubenexus.client.reflector import Reflector
from kubenexus.client.watch_events import DELETED, WatchEvent
from kubenexus.client.watch_protocols import WatchClient, WatchProblem, WatchTarget
from kubenexus.sim.controllers.owner_refs import RESOURCES
from kubenexus.sim.controllers.types import DEPLOYMENTS, JOBS, STATEFUL_SETS
from kubenexus.sim.demo.demo_nodes import GPU

WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS, JOBS)
REMEMBERED = 50  # decisions


class Condition(ApiObject):
    type: str = ""
    status: str = ""


class WorkloadStatus(ApiObject):
    ready_replicas: int = 0
    succeeded: int = 0
    conditions: list[Condition] = []


class ObservedWorkload(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    status: WorkloadStatus = WorkloadStatus()

    def says(self, type: str) -> bool:
        return any(each.type == type and each.status == "True" for each in self.status.conditions)


class ObservedPlacement(NamedTuple):
    pod: str
    node: str  # "": refused
    why: str = ""


class ClusterState:
    """Filled by watches. Times are local: when the watch reported the pod, its node, its readiness, its end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.began = clock.now()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.workloads: dict[str, ObservedWorkload] = {}  # by `jobs.batch/name`
        self.decisions: deque[ObservedPlacement] = deque(maxlen=REMEMBERED)
        self.born: dict[str, float] = {}  # by uid
        self.placed: dict[str, float] = {}
        self.ready: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self._news = asyncio.Event()

    async def change(self) -> None:
        """Waits for the next change."""
        await self._news.wait()

    def now(self) -> float:
        return self._clock.now()

    # ---- queries -----------------------------------------------------------------------------------------------------

    def of(self, app: str) -> list[Pod]:
        """Returns the pods of an app that are not being deleted, by name."""
        found = (self.pods[key] for key in sorted(self.pods))
        return [pod for pod in found if app_of(pod) == app and not pod.metadata.deletion_timestamp]

    def on(self, node: str) -> list[Pod]:
        """Returns the pods that occupy the node."""
        found = (self.pods[key] for key in sorted(self.pods))
        return [pod for pod in found if pod.spec.node_name == node and not ended(pod)]

    def waiting(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if not pod.spec.node_name and not ended(pod)]

    def nodes_at_once(self, app: str) -> int:
        """Returns on how many nodes the pods of an app ran at the same time, at most."""
        runs = [
            (self.placed[uid], self.ended.get(uid, self.now()), pod.spec.node_name)
            for pod in self.of(app)
            if (uid := pod.metadata.uid) in self.placed
        ]
        at = [{node for began, end, node in runs if began <= when < end} for when, _, _ in runs]
        return max(map(len, at), default=0)

    def running(self) -> int:
        return sum(pod.status.phase == "Running" for pod in self.pods.values())

    # ---- watches -----------------------------------------------------------------------------------------------------

    def watches(self, client: WatchClient, rng: random.Random) -> list[Reflector]:
        tables: list[tuple[WatchTarget, Callable[[str, Any], None]]] = [
            (WatchTarget(kinds.NODES, Node), self._node),
            (WatchTarget(kinds.PODS, Pod), self._pod),
            *(
                (WatchTarget(RESOURCES[name], ObservedWorkload), functools.partial(self._workload, name))
                for name in WORKLOADS
            ),
        ]
        return [Reflector(client, target, _WatchReader(tell), clock=self._clock, rng=rng) for target, tell in tables]

    def _node(self, key: str, node: Node | None) -> None:
        _put(self.nodes, key.rpartition("/")[2], node)
        self._tell()

    def _workload(self, kind: str, key: str, item: ObservedWorkload | None) -> None:
        _put(self.workloads, f"{kind}/{key.rpartition('/')[2]}", item)
        self._tell()

    def _pod(self, key: str, pod: Pod | None) -> None:
        before = self.pods.get(key)
        _put(self.pods, key, pod)
        if pod is not None:
            self._judge(before, pod)
        self._tell()

    def _judge(self, before: Pod | None, pod: Pod) -> None:
        uid, now, name = pod.metadata.uid, self._clock.now(), pod.metadata.name
        self.born.setdefault(uid, now)
        if pod.spec.node_name and uid not in self.placed:
            self.placed[uid] = now
            self.decisions.append(ObservedPlacement(name, pod.spec.node_name))
        if is_ready(pod):
            self.ready.setdefault(uid, now)
        if ended(pod):
            self.ended.setdefault(uid, now)
        why = refusal(pod)
        if why and (before is None or refusal(before) != why):
            self.decisions.append(ObservedPlacement(name, "", why))

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class _WatchReader:
    """Turns a watch into calls `tell(key, object)`, with None for a deleted object."""

    def __init__(self, tell: Callable[[str, Any], None]) -> None:
        self._tell = tell
        self._known: set[str] = set()
        self._listed: set[str] = set()

    def list_started(self) -> None:
        self._listed.clear()

    def list_page(self, items: list[Any], unreadable: tuple[Unreadable, ...]) -> None:
        for item in items:
            self._listed.add(_key(item))
            self._tell(_key(item), item)

    def list_finished(self) -> None:
        for key in self._known - self._listed:
            self._tell(key, None)
        self._known = set(self._listed)

    def events(self, changes: list[WatchEvent]) -> None:
        for event in changes:
            if isinstance(event.object, Unreadable):
                continue
            key = _key(event.object)
            (self._known.discard if event.type == DELETED else self._known.add)(key)
            self._tell(key, None if event.type == DELETED else event.object)

    def problem_changed(self, trouble: WatchProblem) -> None:
        """Ignored: the reflector retries, and a step that waits in vain reports what it saw."""


def _key(item: Any) -> str:
    return f"{item.metadata.namespace}/{item.metadata.name}"


def _put(table: dict[str, Any], key: str, item: Any) -> None:
    if item is None:
        table.pop(key, None)
    else:
        table[key] = item


# ---- pods and nodes --------------------------------------------------------------------------------------------------


def app_of(pod: Pod) -> str:
    return pod.metadata.labels.get("app", "")


def ended(pod: Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"}


def is_ready(pod: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


def owned_by(pod: Pod, kind: str) -> bool:
    return any(each.kind == kind for each in pod.metadata.owner_references)


def refusal(pod: Pod) -> str:
    """Returns why the pod waits, from its condition, or ""."""
    said = [each for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "False"]
    return said[0].message if said else ""


def measure(node: Node) -> tuple[str, int]:
    """Returns the resource that a node is drawn by and its amount: GPUs if it has any, else milli-CPUs."""
    sizes = dict(allocatable(node))
    return (GPU, sizes[GPU]) if sizes.get(GPU) else ("cpu", sizes.get("cpu", 0))


def amount(pods: Iterable[Pod], resource: str) -> int:
    return sum(dict(footprint(pod).amounts).get(resource, 0) for pod in pods)
