"""A burst of pods whose binds, starts and reports arrive late and out of order, against kubelets with NUMA nodes."""

import heapq
import itertools
import random
from typing import Any

import msgspec

from kubenexus.api.core import Container, Pod
from kubenexus.api.numa.machine import Kubelet
from kubenexus.base.timestamps import format_time
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.sim.kubelets.node_topologies import machine_of
from kubenexus.sim.kubelets.numa_kubelet import NumaKubelet
from kubenexus.testing.builders import a_node
from kubenexus.testing.harness import Run, a_ledger
from tests.api.numa.builders import GPU, a_numa_pod, guaranteed

NODES, PODS, RATE, LATE, REPORTS = 24, 450, 25.0, 2.0, 10.0  # pods a second, and seconds
ALLOWED = 0.005


def a_mixed_pod(number: int, chance: random.Random) -> Pod:
    """Mostly small pods, some with a GPU, two containers or an init container. All of them take three quarters."""

    def one(name: str, gpus: int = 0) -> Container:
        return guaranteed(name, str(chance.choice([1, 1, 2, 2, 3, 4])), f"{chance.choice([1, 2, 4])}Gi", gpus)

    kind = chance.random()
    second = [one("second")] if 0.1 <= kind < 0.2 else []
    init = [one("init")] if 0.2 <= kind < 0.3 else []
    return a_numa_pod(one("main", int(kind < 0.1)), *second, init=init, name=f"p{number}", uid=f"uid-{number}")


class Burst:
    """Events in the order of their time."""

    def __init__(self) -> None:
        self.chance, self.late = random.Random(20), random.Random(1)
        kubelet = Kubelet("single-numa-node", static_cpus=True, static_memory=True)
        machine = machine_of({"cpu": "64", "memory": "256Gi", GPU: "8"}, 2)
        self.kubelets = {f"n{number}": NumaKubelet(f"n{number}", kubelet, machine) for number in range(NODES)}
        self.ledger = a_ledger([a_node(name, cpu=64, memory="256Gi", resources={GPU: 8}) for name in self.kubelets])
        self.run = Run(self.ledger, Planner(profile_plugins(shipped_profile())), {})
        self.events: list[tuple[float, int, str, Any]] = []
        self.order = itertools.count()
        self.placed = self.refused = 0

    def plan(self, when: float, what: str, whom: Any) -> None:
        heapq.heappush(self.events, (when, next(self.order), what, whom))

    def play(self) -> None:
        for number, name in enumerate(self.kubelets):
            self.ledger.upsert_node_topology(self.kubelets[name].report())
            self.plan(REPORTS * number / NODES, "report", name)
        for number in range(PODS):
            self.plan(number / RATE, "pod", number)
        while self.events and self.events[0][0] < PODS / RATE + LATE:
            now, _, what, whom = heapq.heappop(self.events)
            getattr(self, what)(now, whom)

    def pod(self, now: float, number: int) -> None:
        pod = a_mixed_pod(number, self.chance)
        node = self.run.then([pod]).placements.get(pod.metadata.name)
        if node is not None:
            self.placed += 1
            self.plan(now + self.late.random() * LATE, "admit", (pod, node))

    def admit(self, now: float, bound: tuple[Pod, str]) -> None:
        pod, node = bound
        admitted = self.kubelets[node].admit(pod).admitted
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        status = msgspec.structs.replace(pod.status, start_time=format_time(1e9 + now))
        started = msgspec.structs.replace(pod, spec=spec, status=status)
        self.plan(now + self.late.random() * LATE, "started" if admitted else "rejected", started)

    def started(self, now: float, pod: Pod) -> None:
        self.ledger.upsert_pod(pod)

    def rejected(self, now: float, pod: Pod) -> None:
        self.refused += 1
        self.ledger.remove_pod(pod.key)
        self.ledger.contradict_numa(pod.spec.node_name)

    def report(self, now: float, name: str) -> None:
        self.plan(now + self.late.random() * LATE, "reported", self.kubelets[name].report())
        self.plan(now + REPORTS, "report", name)

    def reported(self, now: float, report: Any) -> None:
        self.ledger.upsert_node_topology(report)
        self.ledger.read_devices()


def test_kubelets_refuse_hardly_any_pod_of_a_burst() -> None:
    burst = Burst()
    burst.play()
    assert burst.placed > 0.9 * PODS
    assert burst.refused <= ALLOWED * burst.placed
