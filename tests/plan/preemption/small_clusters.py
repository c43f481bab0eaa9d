"""Small random clusters, and an exhaustive search for victims on them: plain Python over all sets of pods.

Run as a module to compare many clusters: `python -m tests.plan.preemption.small_clusters 5000`, with a second number
for the first seed.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import NamedTuple

from kubenexus.api.core import Node, Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.api.keys import gang as gang_keys
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import profile_plugins
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

RACK = "topology.kubernetes.io/rack"
GIB = 1 << 30


class SmallCluster(NamedTuple):
    nodes: list[Node]
    pods: list[Pod]
    budgets: dict[str, int]  # by the value of the label `app`
    job: Job

    def ledger(self) -> Ledger:
        ledger = a_ledger(self.nodes, self.pods)
        for app, allowed in self.budgets.items():
            ledger.upsert_disruption_budget(a_budget(app, allowed))
        return ledger


class Least(NamedTuple):
    """The least cost: the highest priority hurt, and the number of jobs hurt."""

    priority: int
    jobs: int


def a_budget(app: str, allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=app, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": app})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


def in_gang(name: str, minimum: int) -> dict[str, str]:
    return {gang_keys.NAME.key: name, gang_keys.MIN_AVAILABLE.key: str(minimum)}


def small_cluster(rng: Random) -> SmallCluster:
    """Returns a cluster on which the job does not fit, or perhaps does."""
    nodes = [
        a_node(f"n{i}", cpu=rng.choice([3, 4, 6]), memory=f"{rng.choice([4, 8])}Gi", labels={RACK: f"r{i % 2}"})
        for i in range(rng.randint(1, 4))
    ]
    left = {node.metadata.name: [int(node.status.allocatable["cpu"]), _memory(node)] for node in nodes}
    pods: list[Pod] = []
    apps = ["a", "b", "c"]
    gangs = {f"g{i}": rng.randint(1, 3) for i in range(rng.randint(0, 2))}
    for number in range(rng.randint(2, 8)):
        cpu, memory = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 3])
        node = rng.choice(list(left))
        if left[node][0] < cpu or left[node][1] < memory:
            continue
        left[node][0] -= cpu
        left[node][1] -= memory
        labels = {"app": rng.choice(apps)} if rng.random() < 0.5 else {}
        if gangs and rng.random() < 0.5:
            gang = rng.choice(list(gangs))
            labels |= in_gang(gang, gangs[gang])
        priority = rng.choice([0, 0, 1, 2, 5, 20])
        pods.append(a_pod(f"p{number}", node=node, cpu=cpu, memory=f"{memory}Gi", labels=labels, priority=priority))
    budgets = {app: rng.randint(0, 2) for app in apps if rng.random() < 0.3}
    return SmallCluster(nodes, pods, budgets, _job(rng))


def _job(rng: Random) -> Job:
    members = rng.choice([1, 1, 2, 2, 3, 4])
    kinds = rng.choice([1, 1, 2])
    asked = [(rng.choice([1, 2, 3, 4]), rng.choice([1, 2, 4])) for _ in range(kinds)]
    pods = []
    for i in range(members):
        cpu, memory = asked[i % kinds]
        pods.append(a_pod(f"m{i}", cpu=cpu, memory=f"{memory}Gi", priority=10))
    if members == 1:
        return Job.of(pods[0])
    topology = TopologyRequest(required="rack") if rng.random() < 0.25 else NO_TOPOLOGY_REQUEST
    return Job("default/x/job", tuple(pods), rng.randint(max(1, members - 1), members), topology)


def _memory(node: Node) -> int:
    return int(str(node.status.allocatable["memory"]).removesuffix("Gi"))


# --- the exhaustive search --------------------------------------------------------------------------------------------


def amounts(pod: Pod) -> tuple[int, int]:
    asked = pod.spec.containers[0].resources.requests or {}
    return int(asked["cpu"]), int(str(asked["memory"]).removesuffix("Gi"))


def fits(cluster: SmallCluster, gone: frozenset[str]) -> bool:
    """Whether the job fits without these pods, by trying every node for every member."""
    free = {n.metadata.name: [int(n.status.allocatable["cpu"]), _memory(n), 110] for n in cluster.nodes}
    for pod in cluster.pods:
        if pod.metadata.name not in gone:
            cpu, memory = amounts(pod)
            for i, amount in enumerate((cpu, memory, 1)):
                free[pod.spec.node_name][i] -= amount
    domains: dict[str, list[str]] = {}
    for node in cluster.nodes:
        domains.setdefault(node.metadata.labels[RACK] if cluster.job.topology.required else "", []).append(
            node.metadata.name
        )
    wanted = [amounts(pod) for pod in cluster.job.pods]
    return any(_placed(wanted, cluster.job.minimum, {name: free[name] for name in names}) for names in domains.values())


def _placed(wanted: list[tuple[int, int]], least: int, free: dict[str, list[int]]) -> bool:
    if least <= 0:
        return True
    if len(wanted) < least:
        return False
    (cpu, memory), *others = wanted
    for left in free.values():
        if left[0] >= cpu and left[1] >= memory and left[2] >= 1:
            left[0], left[1], left[2] = left[0] - cpu, left[1] - memory, left[2] - 1
            found = _placed(others, least - 1, free)
            left[0], left[1], left[2] = left[0] + cpu, left[1] + memory, left[2] + 1
            if found:
                return True
    return _placed(others, least, free)


def job_of(pod: Pod) -> str:
    return pod.metadata.labels.get(gang_keys.NAME.key, pod.metadata.name)


def may_go(cluster: SmallCluster, gone: frozenset[str]) -> bool:
    """Whether these pods may go together: lower priorities only, whole gangs or spare members, within budgets."""
    chosen = [pod for pod in cluster.pods if pod.metadata.name in gone]
    if any(pod.spec.priority >= 10 for pod in chosen):
        return False
    used = Counter(pod.metadata.labels.get("app", "") for pod in chosen)
    if any(used[app] > allowed for app, allowed in cluster.budgets.items()):
        return False
    for gang, taken in Counter(job_of(pod) for pod in chosen if gang_keys.NAME.key in pod.metadata.labels).items():
        members = [pod for pod in cluster.pods if pod.metadata.labels.get(gang_keys.NAME.key) == gang]
        minimum = int(members[0].metadata.labels[gang_keys.MIN_AVAILABLE.key])
        if taken > max(len(members) - minimum, 0) and taken != len(members):
            return False
    return True


def subsets(names: list[str]) -> Iterator[frozenset[str]]:
    for number in range(1, len(names) + 1):
        yield from map(frozenset, combinations(names, number))


def least_victims(cluster: SmallCluster) -> Least | None:
    """Returns the least cost of victims that make the job fit, or None if there are none."""
    lower = [pod.metadata.name for pod in cluster.pods if pod.spec.priority < 10]
    by_name = {pod.metadata.name: pod for pod in cluster.pods}
    best: Least | None = None
    for gone in subsets(lower):
        if may_go(cluster, gone) and fits(cluster, gone):
            highest = max(by_name[name].spec.priority for name in gone)
            cost = Least(highest, len({job_of(by_name[name]) for name in gone}))
            best = cost if best is None or cost < best else best
    return best


class Comparison(NamedTuple):
    """`problem`: what is wrong, "" for nothing. `fewest`: no fewer jobs could be hurt."""

    problem: str
    evicts: bool = False
    fewest: bool = True


def compare(cluster: SmallCluster) -> Comparison:
    """Compares what the planner finds with the exhaustive search."""
    ledger = cluster.ledger()
    before = digest(ledger)
    decision = Planner(profile_plugins(), gang_preemption=PreemptionPolicy()).decide(
        cluster.job, ledger.snapshot(), now=0.0
    )
    if digest(ledger) != before:
        return Comparison("the ledger changed")
    if decision.placed:
        return Comparison("" if fits(cluster, frozenset()) else "placed, but does not fit")
    least = least_victims(cluster)
    found = decision.preemption
    if (found is None) != (least is None):
        return Comparison(f"victims {found}, least {least}")
    if found is None or least is None:
        return Comparison("")
    return _judged(cluster, decision, least)


def _judged(cluster: SmallCluster, decision: Decision, least: Least) -> Comparison:
    assert decision.preemption is not None
    assert decision.preemption.cost is not None
    gone = frozenset(victim.pod.removeprefix("default/") for victim in decision.preemption.victims)
    if not may_go(cluster, gone):
        return Comparison(f"{sorted(gone)} may not go together")
    if not fits(cluster, gone):
        return Comparison(f"{sorted(gone)} do not suffice")
    if decision.preemption.cost.priority != least.priority:
        return Comparison(f"priority {decision.preemption.cost.priority} is hurt, {least.priority} would do")
    if len(decision.preemption.nominations) < cluster.job.minimum:
        return Comparison("too few members are nominated")
    for less in subsets(sorted(gone)):
        if less != gone and may_go(cluster, less) and fits(cluster, less):
            return Comparison(f"of {sorted(gone)} only {sorted(less)} are needed")
    return Comparison("", evicts=True, fewest=decision.preemption.cost.jobs == least.jobs)


def main(number: int, first: int = 0) -> None:
    """Compares so many clusters, and prints what is wrong."""
    counts: Counter[str] = Counter()
    for seed in range(first, first + number):
        cluster = small_cluster(Random(seed))
        found = compare(cluster)
        counts["wrong"] += bool(found.problem)
        counts["evictions"] += found.evicts
        counts["more jobs than needed"] += not found.fewest
        if found.problem or not found.fewest:
            sys.stdout.write(f"seed {seed}: {found.problem or 'more jobs than needed'}\n")
    sys.stdout.write(f"{number} clusters: {dict(counts)}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
