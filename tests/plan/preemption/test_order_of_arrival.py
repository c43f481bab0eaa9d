"""A decision follows from the state alone: not from the order in which nodes and pods came, nor from what is gone."""

from collections.abc import Callable
from random import Random

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.preemption.default_preemption import CandidateLimits
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.plan.preemption.small_clusters import RACK, SmallCluster, a_budget, in_gang, small_cluster

NOW = 1_000.1


def with_equal_victims(rng: Random) -> SmallCluster:
    """Returns a cluster whose victims often cost the same: few sizes, few priorities, few starts."""
    nodes = [a_node(f"n{i}", cpu=4, memory="64Gi", labels={RACK: f"r{i % 3}"}) for i in range(rng.randint(3, 24))]
    pods = []
    for node in nodes:
        for i in range(4):
            labels = in_gang(f"g{rng.randint(0, 3)}", rng.randint(1, 2)) if rng.random() < 0.2 else {}
            labels["app"] = rng.choice("ab")
            name = f"{node.metadata.name}-{i}"
            uid = f"{rng.getrandbits(32):x} of {name}"
            pod = a_pod(name, node=node.metadata.name, cpu=1, labels=labels, priority=rng.choice([0, 0, 1]), uid=uid)
            pods.append(_started(pod, rng.choice(["1970-01-01T00:00:01.1Z", "1970-01-01T00:10:00.3Z"])))
    members = [a_pod(f"m{i}", cpu=rng.choice([1, 2]), priority=10) for i in range(rng.choice([1, 1, 3, 6]))]
    topology = TopologyRequest(required="rack") if rng.random() < 0.3 else NO_TOPOLOGY_REQUEST
    job = Job.of(members[0]) if len(members) == 1 else Job("default/x/job", tuple(members), len(members), topology)
    return SmallCluster(nodes, pods, {"a": rng.randint(0, 9)} if rng.random() < 0.3 else {}, job)


def _started(pod: Pod, when: str) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, start_time=when))


def decided(cluster: SmallCluster, rng: Random | None, planner: Planner, *, same_pods: bool = False) -> Decision:
    """Decides, on a ledger that received all in the given order, or in a random one after others that are gone."""
    ledger, nodes, pods = Ledger(), cluster.nodes[:], cluster.pods[:]
    if rng is not None:
        rng.shuffle(nodes)
        if not same_pods:
            rng.shuffle(pods)
        early = [a_node(f"early{i}", cpu=9, labels={RACK: f"r{i}"}) for i in range(3)]
        for node in early:
            ledger.upsert_node(node)
        for i in range(5):
            ledger.upsert_pod(a_pod(f"early{i}", node=f"early{i % 3}", cpu=1, labels=in_gang("e", 1)))
        for node in nodes[: len(nodes) // 2]:
            ledger.upsert_node(node)
        for i in range(5):
            ledger.remove_pod(f"default/early{i}")
        for node in early:
            ledger.remove_node(node.metadata.name)
    for node in nodes:
        ledger.upsert_node(node)
    for pod in pods:
        ledger.upsert_pod(pod)
    for app, allowed in cluster.budgets.items():
        ledger.upsert_disruption_budget(a_budget(app, allowed))
    return planner.decide(cluster.job, ledger.snapshot(), NOW)


def whole_jobs() -> Planner:
    return Planner(profile_plugins(), gang_preemption=PreemptionPolicy())


def as_upstream() -> Planner:
    return Planner(profile_plugins(), preemption=CandidateLimits(absolute=2))


def chosen(decision: Decision) -> tuple[object, ...]:
    """Returns what must be the same. Members that are alike may change places."""
    found = decision.preemption
    if found is None:
        return (sorted(each.node for each in decision.placements), decision.diagnosis)
    return (sorted(each.node for each in found.nominations), found.victims, found.cost, found.alternatives)


@pytest.mark.parametrize(("make", "clusters"), [(small_cluster, 25), (with_equal_victims, 8)])
@pytest.mark.parametrize("planner", [whole_jobs, as_upstream])
def test_the_same_victims_are_chosen_in_whatever_order_objects_came(
    make: Callable[[Random], SmallCluster], clusters: int, planner: Callable[[], Planner]
) -> None:
    differ, evicting = [], 0
    for seed in range(clusters):
        cluster, rng = make(Random(seed)), Random(seed)
        first = decided(cluster, None, planner())
        evicting += first.preemption is not None
        # As in kube-scheduler, the order in which pods came decides between those of equal importance.
        for _ in range(2):
            other = decided(cluster, rng, planner(), same_pods=planner is as_upstream)
            differ += [seed] if chosen(other) != chosen(first) else []
    assert not differ
    assert evicting > 1
