"""The benches of preemption: on nodes full of pods of low priority, four on each, which have to go for others.

Every pod and gang that preempts is new. Nothing is evicted between two decisions, so that each finds the same cluster.
"""

import itertools
from collections.abc import Callable

from bench.cluster import BenchError
from bench.measure import Round, clock
from kubenexus.api.core import Pod
from kubenexus.api.keys import gang as gang_keys
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

EACH = 4  # pods on a node
GANG_OF = 8
APPS = 50
STARTED = "2026-01-01T00:00:00Z"
_numbers = itertools.count()


class Preempting:
    """A full cluster, and jobs of so many members of `cpu` cores that preempt. `mixed`: half of the pods are in gangs,
    and the others have budgets. `important` pods of each node may not go. On each of the first `preempted` nodes a pod
    waits for the end of its victims."""

    def __init__(
        self, nodes: int, members: int, cpu: int, *, mixed: bool = False, important: int = 0, preempted: int = 0
    ) -> None:
        self.members, self.cpu = members, cpu
        self.ledger = _full(nodes, mixed, important)
        self.planner = Planner(profile_plugins(), gang_preemption=PreemptionPolicy(), upstream_reasons=False)
        for node in range(preempted):
            job, victims = self._job(), {f"uid-low-{node}-{number}" for number in range(EACH)}
            self.ledger.begin_preemption(job.key, [(job.pods[0], f"n{node}")], victims)

    def decide(self) -> float:
        job, snapshot = self._job(), self.ledger.snapshot()
        start = clock()
        self.planner.decide(job, snapshot, 0.0)
        return clock() - start

    def judged(self, evicts: bool) -> Round:
        """Returns the bench, if it does what it claims to."""
        decision = self.planner.decide(self._job(), self.ledger.snapshot(), 0.0)
        if decision.placed or (decision.preemption is not None) != evicts:
            raise BenchError(f"a job of {self.members}: {decision.sentence()}")
        return self.decide

    def _job(self) -> Job:
        name = f"urgent-{next(_numbers)}"
        pods = [
            a_pod(f"{name}-{i}", cpu=self.cpu, memory="1Gi", priority=1000, labels={"app": "urgent"})
            for i in range(self.members)
        ]
        return Job.of(pods[0]) if self.members == 1 else Job(f"default/gang/{name}", tuple(pods), self.members)


def _full(nodes: int, mixed: bool, important: int) -> Ledger:
    pods = [_resident(i, j, mixed, important) for i in range(nodes) for j in range(EACH)]
    ledger = a_ledger([a_node(f"n{i}", cpu=4) for i in range(nodes)], pods)
    for app in range(APPS if mixed else 0):
        ledger.upsert_disruption_budget(
            PodDisruptionBudget(
                metadata=ObjectMeta(name=f"app-{app}", namespace="default"),
                spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": f"app-{app}"})),
                status=PodDisruptionBudgetStatus(disruptions_allowed=app % 3),
            )
        )
    return ledger


def _resident(node: int, number: int, mixed: bool, important: int) -> Pod:
    labels = {"app": "low"}
    if mixed and number % 2:
        gang = (node // GANG_OF) * EACH + number
        labels = {gang_keys.NAME.key: f"gang-{gang}", gang_keys.MIN_AVAILABLE.key: str(GANG_OF)}
    elif mixed:
        labels = {"app": f"app-{(node * EACH + number) % APPS}"}
    return a_pod(
        f"low-{node}-{number}",
        node=f"n{node}",
        cpu="900m",
        memory="1Gi",
        labels=labels,
        priority=2000 if number < important else 0,
        status={"start_time": STARTED},
    )


CASES: dict[str, Callable[[int], Round]] = {
    "pod": lambda nodes: Preempting(nodes, 1, 3).judged(True),
    "pod, budgets and gangs": lambda nodes: Preempting(nodes, 1, 3, mixed=True).judged(True),
    "pod, hopeless": lambda nodes: Preempting(nodes, 1, 3, important=2).judged(False),
    "pod beside 1,000 that wait": lambda nodes: Preempting(nodes, 1, 3, preempted=min(nodes // 2, 1_000)).judged(True),
    "gang of 100": lambda nodes: Preempting(nodes, 100, 2).judged(True),
    "gang of 8 beside 1,000 that wait": lambda nodes: Preempting(nodes, 8, 3, preempted=min(nodes // 2, 1_000)).judged(
        True
    ),
}
LIMITS = {  # kernels
    "pod": 150.0,
    "pod, budgets and gangs": 250.0,
    "pod, hopeless": 250.0,
    "pod beside 1,000 that wait": 300.0,
    "gang of 100": 3000.0,
    "gang of 8 beside 1,000 that wait": 1000.0,
}
