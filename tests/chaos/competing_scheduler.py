"""The second scheduler: binds pods of its own to nodes that are half empty, and now and then one of ours.

It looks before it binds, as a scheduler does, and takes only nodes with much room. So it hardly ever overbooks a node
itself, while a scheduler that does not see its pods must.
"""

import threading
from random import Random

from tests.chaos.amounts import Amounts
from tests.chaos.checker import Checker
from tests.chaos.seed_cluster import RIVAL, SCHEDULER, SeedCluster

PAUSE = 0.04


class CompetingScheduler(threading.Thread):
    def __init__(self, cluster: SeedCluster, checker: Checker, count: int, seed: int) -> None:
        super().__init__(name="rival", daemon=True)
        self._cluster, self._checker, self._count = cluster, checker, count
        self._rng, self._over = Random(f"{seed}/rival"), threading.Event()
        self.bound = 0

    def run(self) -> None:
        while self.bound < self._count and not self._over.wait(PAUSE):
            nodes = [name for name, free in self._checker.free().items() if self._roomy(name, free)]
            if nodes:
                self._bind(self._rng.choice(sorted(nodes)))

    def stop(self) -> None:
        self._over.set()
        self.join(30)

    def _bind(self, node: str) -> None:
        name, ours = f"rival{self.bound}", self._waiting()
        if ours and self._rng.random() < 0.1:
            name = self._rng.choice(ours)
        else:
            self._cluster.create(name, "1", RIVAL)
        self._cluster.bind(name, node)
        self.bound += 1

    def _waiting(self) -> list[str]:
        pods = self._checker.pods()
        return sorted(pod.key.partition("/")[2] for pod in pods if pod.waits and pod.scheduler == SCHEDULER)

    def _roomy(self, name: str, free: Amounts) -> bool:
        node = self._checker.cluster.nodes.get(name)
        return node is not None and free["cpu"] * 2 >= node.has["cpu"]
