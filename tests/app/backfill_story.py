"""Jobs with true runtimes on a small cluster, in virtual time: pods start when they are placed, and end on time."""

import heapq
import math
from typing import Any

import msgspec

from kubenexus.api.core import Pod, PodCondition
from kubenexus.base.timestamps import format_time
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.decision_fixture import DecisionFixture

KEY = "scheduling.kubenexus.io/max-runtime"


class BackfillStory(DecisionFixture):
    """`started` has by name when each pod was placed."""

    def __init__(self, nodes: int, cpu: int = 4, **settings: Any) -> None:
        super().__init__(**settings)
        self.nodes(*(a_node(f"n{i}", cpu=cpu) for i in range(nodes)))
        self.begin = self.clock.now()
        self.started: dict[str, float] = {}
        self._runtimes: dict[str, float] = {}
        self._ends: list[tuple[float, str]] = []

    def submit(self, name: str, cpu: int, runtime: float, said: float | None = None, **fields: Any) -> None:
        """A pod comes that runs for `runtime` seconds, and declares `said` (None: nothing)."""
        self.submit_pod(a_pod(name, cpu=cpu, annotations=declared(said), restart_policy="Never", **fields), runtime)

    def submit_gang(self, name: str, size: int, cpu: int, runtime: float, said: float | None = None) -> None:
        for i in range(size):
            self.submit_pod(a_member(f"{name}-m{i}", name, size, cpu=cpu, annotations=declared(said)), runtime)

    def submit_pod(self, pod: Pod, runtime: float) -> None:
        """A pod comes that runs for `runtime` seconds."""
        self._runtimes[pod.metadata.name] = runtime
        self.come(pod)

    def decide(self) -> None:
        """All that are ready are decided, and those that are placed start."""
        self.work()
        for name in self.where():
            if name not in self.started:
                self.started[name] = self.clock.now()
                heapq.heappush(self._ends, (self.clock.now() + self._runtimes[name], name))
                pod = self.pods[f"default/{name}"]
                status = msgspec.structs.replace(pod.status, phase="Running", start_time=format_time(self.clock.now()))
                self.come(msgspec.structs.replace(pod, status=status))
        self.work()

    def until(self, seconds: float) -> None:
        """Lets time pass until `seconds` after the beginning."""
        self.decide()
        while self._ends and self._ends[0][0] <= self.begin + seconds:
            at, name = heapq.heappop(self._ends)
            self.clock.advance(max(at - self.clock.now(), 0.0))
            pod = self.pods.pop(f"default/{name}")
            ready = PodCondition(type="Ready", status="False", last_transition_time=format_time(at))
            status = msgspec.structs.replace(pod.status, phase="Succeeded", conditions=[ready])
            self.handlers.on_pod_update(msgspec.structs.replace(pod, status=status))
            self.decide()
        self.clock.advance(max(self.begin + seconds - self.clock.now(), 0.0))
        self.decide()

    def until_next_end(self) -> bool:
        """Lets time pass until the next pods end. Returns False if none runs that ends."""
        if not self._ends or self._ends[0][0] == math.inf:
            return False
        self.until(self._ends[0][0] - self.begin)
        return True

    def start_of(self, name: str) -> float | None:
        """When a pod was placed, in seconds after the beginning."""
        at = self.started.get(name)
        return None if at is None else at - self.begin


def declared(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {KEY: f"{seconds:.0f}"}
