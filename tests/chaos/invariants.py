"""What has to hold, whatever happens. A law looks at each change, and once more at the end.

A new law is a class with these two methods, named in `laws`. What it remembers is in the cluster.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tests.chaos.amounts import Amounts, over, times
from tests.chaos.observed_cluster import ObservedCluster, PodSeen


@dataclass(frozen=True)
class Breach:
    """A law was broken. `pod` was the last to come onto `node`, at this resourceVersion; `others` were there."""

    law: str
    text: str
    version: int = 0
    pod: PodSeen | None = None
    others: tuple[PodSeen, ...] = ()
    has: Amounts | None = None


class Law(Protocol):
    name: str

    def changed(
        self, cluster: ObservedCluster, old: PodSeen | None, new: PodSeen | None, version: int
    ) -> Iterator[Breach]:
        """A pod has come (`old` is None), changed, or gone (`new` is None); the cluster has the change already."""

    def ended(self, cluster: ObservedCluster, scheduler: str) -> Iterator[Breach]:
        """Nothing will change any more: what is wrong now stays wrong. `scheduler` is the one on trial."""


class Overbooked:
    """No node has more pods on it than it has room for, at any resourceVersion."""

    name = "overbooked"

    def changed(
        self, cluster: ObservedCluster, old: PodSeen | None, new: PodSeen | None, version: int
    ) -> Iterator[Breach]:
        if new is None or not new.node or (old is not None and old.node == new.node):
            return
        node, there = cluster.nodes.get(new.node), cluster.on(new.node)
        if node is None:
            return
        if lacking := over((pod.asks for pod in there), node.has):
            text = (
                f"node {node.name} has {len(there)} pods and too little {', '.join(lacking)} for them since {new.key}"
            )
            others = tuple(pod for pod in there if pod.uid != new.uid)
            yield Breach(self.name, text, new.bound_at, new, others, node.has)

    def ended(self, cluster: ObservedCluster, scheduler: str) -> Iterator[Breach]:
        yield from ()


class Moved:
    """A pod that has a node keeps it."""

    name = "moved"

    def changed(
        self, cluster: ObservedCluster, old: PodSeen | None, new: PodSeen | None, version: int
    ) -> Iterator[Breach]:
        if old is not None and new is not None and old.node and old.node != new.node:
            yield Breach(self.name, f"pod {new.key} went from {old.node} to {new.node or 'nowhere'}", version, new)

    def ended(self, cluster: ObservedCluster, scheduler: str) -> Iterator[Breach]:
        yield from ()


class Lost:
    """Each pod has a node, or no node has room for it and it says so.

    A member of a gang may wait for the others and has to say why; a gang whose members all exist is lost if there is
    room for as many of them as it needs. A pod of monstrous size may be refused although there is room.
    """

    name = "lost"

    def changed(
        self, cluster: ObservedCluster, old: PodSeen | None, new: PodSeen | None, version: int
    ) -> Iterator[Breach]:
        yield from ()

    def ended(self, cluster: ObservedCluster, scheduler: str) -> Iterator[Breach]:
        free_amounts = cluster.free_amounts()
        for pod in cluster.waiting(scheduler):
            node = next((name for name, capacity in free_amounts.items() if not over([pod.asks], capacity)), "")
            if pod.gang:
                if not pod.reason:
                    yield Breach(self.name, f"pod {pod.key} of gang {pod.gang} waits, and nothing says why", 0, pod)
            elif node and not (pod.monster and pod.reason == "Unschedulable"):
                yield Breach(self.name, f"pod {pod.key} waits, and there is room for it on {node}", 0, pod)
            elif pod.reason != "Unschedulable":
                says = f"it says {pod.reason}" if pod.reason else "nothing says why"
                yield Breach(self.name, f"pod {pod.key} waits for room, and {says}", 0, pod)
        yield from self._gangs(cluster, scheduler, free_amounts)

    def _gangs(self, cluster: ObservedCluster, scheduler: str, free_amounts: dict[str, Amounts]) -> Iterator[Breach]:
        """Gangs whose members ask for the same: then counting tells exactly whether those that are missing fit."""
        for gang, pods in cluster.gangs.items():
            waiting = [pod for pod in pods.values() if pod.waits and pod.scheduler == scheduler and not pod.monster]
            missing = cluster.needed(gang) - sum(bool(pod.node) for pod in pods.values())
            if not 0 < missing <= len(waiting) or any(pod.asks != waiting[0].asks for pod in waiting):
                continue
            fit = sum(times(waiting[0].asks, capacity) for capacity in free_amounts.values())
            if fit >= missing:
                text = f"gang {gang} waits for {missing} members, and there is room for {fit}"
                yield Breach(self.name, text, 0, waiting[0], tuple(waiting[1:]))


class Halved:
    """No gang has members on nodes, and fewer than it needs, for longer than its deadline.

    Three exceptions, as docs/gangs.md has them. Of a gang that was whole, members that run stay where they are, and
    lost members that no controller replaces are not the scheduler's affair. Of any gang, members that run stay while
    no member waits for a node: an eviction could not make the gang whole.
    """

    name = "halved"

    def __init__(self, deadline: float = 300.0) -> None:
        self._deadline = deadline

    def changed(
        self, cluster: ObservedCluster, old: PodSeen | None, new: PodSeen | None, version: int
    ) -> Iterator[Breach]:
        for gang in {pod.gang for pod in (old, new) if pod is not None and pod.gang}:
            self._look_at(gang, cluster)
        late = [gang for gang, since in cluster.begun.items() if cluster.now - since > self._deadline]
        for gang in late:
            yield self._breach(gang, cluster, version)
            cluster.begun[gang] = float("inf")  # said once

    def ended(self, cluster: ObservedCluster, scheduler: str) -> Iterator[Breach]:
        for gang in cluster.begun:
            yield self._breach(gang, cluster, 0)

    def _look_at(self, gang: str, cluster: ObservedCluster) -> None:
        members, needed = cluster.gangs[gang].values(), cluster.needed(gang)
        on_nodes = sum(bool(pod.node) for pod in members)
        if not on_nodes:
            cluster.whole.discard(gang)
        elif 0 < needed <= on_nodes:
            cluster.whole.add(gang)
        runs = all(pod.started for pod in members if pod.node)
        whole, waits = gang in cluster.whole, any(pod.waits for pod in members)
        left_alone = (whole and runs) or (whole and not waits) or (runs and not waits)
        if 0 < on_nodes < needed and not left_alone:
            cluster.begun.setdefault(gang, cluster.now)
        else:
            cluster.begun.pop(gang, None)

    def _breach(self, gang: str, cluster: ObservedCluster, version: int) -> Breach:
        members = list(cluster.gangs[gang].values())
        there = sum(bool(pod.node) for pod in members)
        text = f"gang {gang} has {there} members on nodes and needs {cluster.needed(gang)}"
        return Breach(self.name, text, version, members[0], tuple(members[1:]))


class Unprovoked:
    """No pod is preempted unless a pod of higher priority is nominated to a node, or was a moment ago: an eviction may
    be under way when the preemptor is deleted."""

    name = "unprovoked"

    def __init__(self, moment: float = 10.0) -> None:
        self._moment = moment

    def changed(
        self, cluster: ObservedCluster, old: PodSeen | None, new: PodSeen | None, version: int
    ) -> Iterator[Breach]:
        before, nominees = old is not None and old.preempted, cluster.nominees
        if old is not None and old.nominated and not old.node:
            nominees[old.uid] = (old.priority, cluster.now)
        if new is not None and new.nominated and new.waits:
            nominees[new.uid] = (new.priority, float("inf"))
        if new is None or before or not new.preempted:
            return
        if not any(priority > new.priority and cluster.now - at < self._moment for priority, at in nominees.values()):
            yield Breach(self.name, f"pod {new.key} was preempted, and no pod of higher priority waits", version, new)

    def ended(self, cluster: ObservedCluster, scheduler: str) -> Iterator[Breach]:
        yield from ()


def laws(deadline: float = 300.0) -> tuple[Law, ...]:
    """`deadline`: seconds for which a gang may be halved."""
    return (Overbooked(), Moved(), Lost(), Halved(deadline), Unprovoked())
