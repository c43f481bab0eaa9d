"""What `explain` suggests makes the job start, and less of it does not: on random jobs that were refused."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec
import pytest

from kubenexus.api.core import Node, Pod
from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.explain.counterfactual import job_changes
from kubenexus.explain.counterfactual.suggest import find_suggestions
from kubenexus.explain.counterfactual.trials import MAX_DECISIONS, Change, Found, Trials
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.profile import EnabledPlugin, Profile, ProfilePlugins
from kubenexus.plan.decide import Planner
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.rounds import rounds

SHIPPED = profile_plugins(shipped_profile("kubenexus-scheduler"))
FILTERS = ("NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit", "InterPodAffinity")
# The plugins that the random jobs are refused by: decisions take a third of the time.
FEW = profile_plugins(Profile("few", tuple(map(EnabledPlugin, FILTERS)), points={"score": ()}))
RACK = "network.kubenexus.io/rack-id"
MEBI = 1 << 20
replace = msgspec.structs.replace


class Cluster(msgspec.Struct, dict=True):
    """Nodes, the pods that run there, and a job."""

    nodes: list[Node]
    pods: list[Pod]
    job: Job
    plugins: ProfilePlugins

    @cached_property
    def trials(self) -> Trials:
        nodes = {node.metadata.name: node for node in self.nodes}
        return Trials(a_ledger(self.nodes, self.pods), self.planner, nodes, {pod.key: pod for pod in self.pods})

    @property
    def planner(self) -> Planner:
        return Planner(self.plugins, gang_preemption=PreemptionPolicy())

    def decide(self, change: Change) -> Decision:
        """Decides on the changed cluster, with caches of its own."""
        planner, trials = self.planner, self.trials
        with trials.changed(change):
            return planner.decide(change.job, trials.ledger.snapshot(), 0.0)

    def rebuilt(self, change: Change) -> Decision:
        """The same on a cluster that is built from the changed objects."""
        nodes = {node.metadata.name: node for node in [*self.nodes, *change.nodes]}
        pods = [pod for pod in self.pods if pod.key not in change.gone]
        return self.planner.decide(change.job, a_ledger(nodes.values(), pods).snapshot(), 0.0)

    def starts(self, change: Change) -> bool:
        return self.decide(change).placed


def a_cluster(draw: random.Random, plugins: ProfilePlugins) -> Cluster:
    size = draw.choice([1, 1, 1, 2, 3, 4])
    nodes = [
        a_node(
            f"n{i}",
            cpu=draw.randint(1, 4),
            memory=f"{draw.randint(1, 4)}Gi",
            pods=draw.choice([110, 110, 2]),
            gpu=draw.choice([0, 0, 2, 4]),
            labels={RACK: draw.choice("ab"), "disk": draw.choice(["ssd", "hdd"])},
            taints=draw.choice([[], [], [], [], [], ["team=a:NoSchedule"], ["node.kubernetes.io/not-ready:NoExecute"]]),
            cordoned=draw.random() < 0.15,
        )
        for i in range(draw.randint(1, 4) + size // 2)
    ]
    pods = [
        a_pod(
            f"p{i}",
            cpu=f"{draw.randint(1, 8) * 250}m",
            memory=f"{draw.randint(1, 1500)}Mi",
            gpu=draw.choice([None, None, 1, 2]),
            priority=draw.choice([0, 0, 5, 7]),
            node=draw.choice(nodes).metadata.name,
            labels={"app": draw.choice("xy")},
        )
        for i in range(draw.randint(0, 5))
    ]
    gpu, cpu = draw.choice([None, None, None, 1, 2]), f"{draw.randint(2, 10 if size == 1 else 5) * 250}m"
    members = tuple(
        a_pod(
            f"m{i}",
            cpu=cpu,
            memory=f"{draw.randint(1, 3) * 500}Mi" if size == 1 else "500Mi",
            gpu=gpu,
            selects=selects,
            requires=requires,
            apart=apart,
            priority=priority,
            labels={"app": "x"},
            scheduler_name="kubenexus-scheduler",
        )
        for selects, requires, apart, priority in [
            (
                draw.choice([{}, {}, {}, {"disk": "ssd"}]),
                draw.choice([None, None, None, [f"{RACK} In a"]]),
                draw.choice([[], [], [], ["app=x per kubernetes.io/hostname"]]),
                draw.choice([0, 0, 6]),
            )
        ]
        for i in range(size)
    )
    required = draw.choice(["", "rack", "rack"]) if size > 1 else ""
    key = "default/job" if size == 1 else "default/pod-group/job"
    job = Job(key, members, size - draw.choice([0, 0, 0, size // 2]), TopologyRequest(required=required))
    return Cluster(nodes, pods, job, plugins)


def refused(seeds: Iterable[int], plugins: ProfilePlugins) -> Iterator[tuple[Cluster, Decision]]:
    for seed in seeds:
        cluster = a_cluster(random.Random(seed), plugins)
        decision = cluster.decide(Change(cluster.job))
        if not decision.placed:
            yield cluster, decision


def suggested(cluster: Cluster, decision: Decision) -> list[Found]:
    trials = cluster.trials
    before = digest(trials.ledger)
    found = find_suggestions(cluster.job, decision, trials)
    assert digest(trials.ledger) == before
    assert trials.made <= MAX_DECISIONS
    return found


def smaller(found: Found, cluster: Cluster) -> Iterator[Change]:
    """The changes that are one step smaller. None of them may make the job start."""
    said, change, job = found.suggestion, found.change, cluster.job
    own = {node.metadata.name: node for node in cluster.nodes}
    match said.kind:
        case "node":
            yield from (Change(job, tuple(n for n in change.nodes if n is not one)) for one in change.nodes)
        case "toleration":
            for i in range(len(said.constraints)):
                pods = tuple(replace(p, spec=replace(p.spec, tolerations=_one_less(p, i))) for p in change.job.pods)
                yield Change(replace(change.job, pods=pods))
        case "constraint":
            drops = dict(job_changes.constraints_of(job.pods[0].spec))
            for left in said.constraints:
                others = [drops[text] for text in said.constraints if text != left]
                yield Change(job_changes.without_constraints(job, others))
        case "minimum":
            yield Change(replace(change.job, minimum=change.job.minimum + 1))
        case "new_nodes":
            yield Change(job, change.nodes[:-1])
        case "capacity":
            for short in said.amounts:
                step = MEBI if short.resource == "memory" else 1
                less = {each.resource: each.lacking - step * (each is short) for each in said.amounts}
                # On another node less does not do either, where it is the same that is lacking.
                names = [*own] if len(said.amounts) == 1 else said.nodes
                yield from (Change(job, (larger(own[name], less),)) for name in names)
        case _:
            yield Change(job)


def _one_less(pod: Pod, i: int) -> list:
    return [each for place, each in enumerate(pod.spec.tolerations) if place != i]


def larger(node: Node, more: dict[str, int]) -> Node:
    amounts = dict(node.status.allocatable)
    for resource, amount in more.items():
        if resource == "cpu":
            amounts["cpu"] = f"{int(amounts['cpu']) * 1000 + amount}m"
        elif resource == "memory":
            amounts["memory"] = int(str(amounts["memory"]).removesuffix("Gi")) * 1024 * MEBI + amount
        else:
            amounts[resource] = int(amounts.get(resource, 0)) + amount
    return replace(node, status=replace(node.status, allocatable=amounts, capacity=amounts))


@pytest.mark.parametrize(
    ("seeds", "plugins", "least"),
    [
        pytest.param(range(rounds(180, 4_000)), FEW, 1, id="the plugins that refuse them"),
        pytest.param(range(5_000, 5_000 + rounds(12, 500)), SHIPPED, 0, id="all plugins"),
    ],
)
def test_each_suggestion_starts_the_job_and_nothing_smaller_does(
    seeds: range, plugins: ProfilePlugins, least: int
) -> None:
    kinds: Counter[str] = Counter()
    jobs = 0
    for cluster, decision in refused(seeds, plugins):
        jobs += 1
        for found in suggested(cluster, decision):
            kinds[found.suggestion.kind] += 1
            said = found.suggestion
            assert cluster.starts(found.change), (said, cluster)
            assert jobs % 8 or cluster.rebuilt(found.change).placed, (said, cluster)
            assert said.minimal, said
            for less in smaller(found, cluster):
                assert not cluster.starts(less), (said, cluster)
            if said.kind == "priority":
                for lower in range(cluster.job.priority, said.number):
                    pods = tuple(replace(p, spec=replace(p.spec, priority=lower)) for p in cluster.job.pods)
                    assert cluster.decide(Change(replace(cluster.job, pods=pods))).preemption is None, said
    assert jobs > len(seeds) / 2
    assert min(kinds[kind] for kind in KINDS) >= least, kinds


KINDS = ("node", "topology", "constraint", "toleration", "minimum", "priority", "capacity", "new_nodes")
