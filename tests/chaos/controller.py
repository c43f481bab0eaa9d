"""The parts of a cluster that a gang needs besides its scheduler: a controller that creates missing members, and a
kubelet that ends pods which are deleted and starts some of those that have a node."""

import threading
from dataclasses import dataclass
from random import Random

from tests.chaos.checker import Checker
from tests.chaos.observed_cluster import PodSeen
from tests.chaos.seed_cluster import SCHEDULER, SeedCluster

PAUSE = 0.1
STARTS = 0.2  # of the bound members, at each look: so that gangs are lost members before and after they run


@dataclass(frozen=True)
class Gang:
    """`size` members exist at any time, and `minimum` of them have to start together."""

    name: str
    size: int
    minimum: int
    cpu: str
    high: bool = False  # of high priority

    def members(self) -> list[str]:
        return [f"{self.name}-{number}" for number in range(self.size)]


class Controller(threading.Thread):
    """Works until it is stopped. `gangs` may be added to, and taken from, at any time."""

    def __init__(self, cluster: SeedCluster, checker: Checker, seed: int) -> None:
        super().__init__(name="controller", daemon=True)
        self._cluster, self._checker = cluster, checker
        self._rng, self._over, self._lock = Random(f"{seed}/controller"), threading.Event(), threading.Lock()
        self._gangs: dict[str, Gang] = {}
        self.replaced = 0
        self.ends_all = False  # stubborn pods too

    def add(self, gang: Gang) -> None:
        """From now on its members exist, all of them created at the same moment."""
        self._cluster.create_members(gang.name, gang.minimum, gang.cpu, gang.members(), high=gang.high)
        with self._lock:
            self._gangs[gang.name] = gang

    def retire(self, count: int) -> None:
        """So many gangs end: their pods are deleted, and not created again."""
        with self._lock:
            ending = self._rng.sample(sorted(self._gangs), min(count, len(self._gangs)))
            gangs = [self._gangs.pop(name) for name in ending]
        for gang in gangs:
            self._cluster.delete(gang.members())

    def run(self) -> None:
        while not self._over.wait(PAUSE):
            self.look()

    def look(self) -> None:
        """Ends and starts pods as a kubelet does, and creates the members that are missing. A gang that is retired
        meanwhile keeps no member: what was created after its other members were deleted is deleted again."""
        pods = {pod.key.partition("/")[2]: pod for pod in self._checker.pods() if pod.scheduler == SCHEDULER}
        self._kubelet(pods)
        with self._lock:
            gangs = list(self._gangs.values())
        for gang in gangs:
            missing = [name for name in gang.members() if name not in pods]
            if missing:
                self.replaced += len(missing)
                self._cluster.create_members(gang.name, gang.minimum, gang.cpu, missing, high=gang.high)
                with self._lock:
                    retired = gang.name not in self._gangs
                if retired:
                    self._cluster.delete(missing)

    def stop(self) -> None:
        self._over.set()
        if self.is_alive():
            self.join(30)

    def _kubelet(self, pods: dict[str, PodSeen]) -> None:
        self._cluster.delete(name for name, pod in pods.items() if pod.leaving and (self.ends_all or not pod.stubborn))
        for name, pod in pods.items():
            if pod.gang and pod.node and not pod.started and not pod.leaving and self._rng.random() < STARTS:
                self._cluster.start(name)
