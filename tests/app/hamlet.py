"""What decides in a scheduler, without what speaks: feed, queue, planner and ledger, one call after the other. Binds
happen at once. Small enough for thousands of stories."""

import functools

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.app.feed import Feed
from kubenexus.app.holes import Holes
from kubenexus.app.reservations import Reservations
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.aging import Aging
from kubenexus.framework.decision import Decision
from kubenexus.framework.profile import Lineup
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.gang import capacity, stake
from kubenexus.plugins import lineup
from kubenexus.queue.entry import Turn
from kubenexus.queue.room import WaitingRoom
from kubenexus.queue.rules import Rules
from kubenexus.state.ledger import Ledger

GOES = "2026-01-01T00:00:00Z"
PROFILE = "default-scheduler"  # what pods say that say nothing


@functools.cache
def _lineup() -> Lineup:
    return lineup()


class Hamlet:
    """`patience`: for how long the first gang in line keeps its room; 0: not at all."""

    def __init__(self, patience: float = 300.0, aging: Aging | None = Aging()) -> None:  # noqa: B008 - it is a value
        self.clock, self.ledger = VirtualClock(1_000_000.0), Ledger()
        self.planner = Planner(_lineup())
        columns = self.ledger.nodes
        rules = Rules.of(
            _lineup(),
            lambda pod: self.planner.bench.signature(pod, columns, lift=False),
            also={**capacity.WAKES, **stake.WAKES},
            aging=aging,
        )
        self.room = WaitingRoom({"": rules}, self.clock)
        self.feed = Feed(self.ledger, self.room, [PROFILE])
        self.holes = Holes(self.ledger, self.room, self.clock)
        self.feed.lost = self.holes.leave
        self.feed.assembly.holes, self.feed.assembly.whole = self.holes.of, self.holes.close
        self.reservations = Reservations(self.room, self.clock, {PROFILE: patience})
        self.pods: dict[str, Pod] = {}
        self.refusals: dict[str, Decision] = {}

    def nodes(self, *nodes: Node) -> None:
        for node in nodes:
            self.feed.node_seen(node)

    def come(self, *pods: Pod) -> None:
        for pod in pods:
            self.pods[pod.key] = pod
            self.feed.pod_seen(pod)

    def end(self, *names: str) -> None:
        """Pods are gone: by name, or by `namespace/name`."""
        for name in names:
            key = name if "/" in name else f"default/{name}"
            del self.pods[key]
            self.feed.pod_gone(key)

    def run(self, prefix: str, seconds: float) -> None:
        """Pods that have nodes begin to run, and do so for a while."""
        for name in self.where(prefix):
            pod = self.pods[f"default/{name}"]
            status = msgspec.structs.replace(pod.status, phase="Running")
            self.come(msgspec.structs.replace(pod, status=status))
        self.feed.assembly.flush()
        self.clock.advance(seconds)

    def lose(self, name: str) -> None:
        """A pod is deleted: first it is told to go, then it is gone."""
        pod = self.pods[f"default/{name}"]
        self.come(msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=GOES)))
        self.end(name)

    def work(self) -> int:
        """Until nobody is ready. Returns how many decisions that took."""
        count = 0
        self.reservations.review()
        self.room.tick()
        while (turn := self.room.pop()) is not None:
            self._take(turn)
            self.reservations.review()
            self.room.tick()
            count += 1
            assert count < 10_000, "it never comes to rest"
        return count

    def where(self, prefix: str = "") -> dict[str, str]:
        """Pods on nodes, by name."""
        placed = {pod.metadata.name: pod.spec.node_name for pod in self.pods.values() if pod.spec.node_name}
        return {name: node for name, node in placed.items() if name.startswith(prefix)}

    def why(self, job: str) -> str:
        found = self.refusals.get(f"default/{job}")
        return "" if found is None else found.sentence("default")

    def _take(self, turn: Turn) -> None:
        job, now, snapshot = turn.job, self.clock.now(), self.ledger.snapshot()
        decision = self.planner.decide(job, snapshot, now, self.reservations.before(job))
        if not decision.placed:
            self.refusals[job.key] = decision
            self.reservations.refused(job, decision, self.planner, snapshot)
            self.room.done(turn, decision)
            return
        self.refusals.pop(job.key, None)
        commit(decision, job, self.ledger, now)
        self.reservations.placed(job, decision)
        for placement in decision.placements:
            pod = self.pods[placement.pod]
            self.pods[pod.key] = msgspec.structs.replace(
                pod, spec=msgspec.structs.replace(pod.spec, node_name=placement.node)
            )
            self.feed.pod_seen(self.pods[pod.key])
        self.room.done(turn, decision)
        self.feed.assembly.landed(job.key)
