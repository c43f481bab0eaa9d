"""`decide` is a function: it changes nothing, and the same cluster gets the same answer however it came about."""

from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import CheckedCluster, ReferenceCluster, a_ledger
from kubenexus.testing.strategies import NODES, PODS, clusters, nodes, pods
from tests.plugins import reference
from tests.properties.table_content import bytes_of

RULES = profile_plugins()
# The first node that reports an image decides its size, so with sizes of their own nodes do not commute.
SIZES = {"app:1": 300 << 20, "db:latest": 50 << 20, "host:5000/big:2": 2 << 30}

jobs = st.lists(pods(), min_size=1, max_size=3, unique_by=lambda pod: pod.key).map(
    lambda members: Job("default/job", tuple(members))
)


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[list[Node], list[Pod], list[Node], list[Pod]]:
    """Nodes and the pods that run or wait there, in two orders."""
    listed = [draw(nodes(name, SIZES)) for name in NODES[: draw(st.integers(1, 5))]]
    bound = [draw(pods(name, draw(st.sampled_from(NODES)), running=True)) for name in PODS[:4]]
    bound.append(draw(pods("waits", nominated=draw(st.sampled_from(NODES)))))
    return listed, bound, draw(st.permutations(listed)), draw(st.permutations(bound))


def decided(job: Job, listed: Sequence[Node], bound: Sequence[Pod]) -> Decision:
    ledger = a_ledger(listed, bound)
    return msgspec.structs.replace(Planner(RULES).decide(job, ledger.snapshot(), 0.0), generation=0)


@given(told=shuffled(), pod=pods("incoming"))
def test_the_order_in_which_nodes_and_pods_are_told_of_does_not_matter(
    told: tuple[list[Node], list[Pod], list[Node], list[Pod]], pod: Pod
) -> None:
    listed, bound, other_nodes, other_pods = told
    one, other = a_ledger(listed, bound), a_ledger(other_nodes, other_pods)
    assert digest(one) == digest(other)
    assert decided(Job.of(pod), listed, bound) == decided(Job.of(pod), other_nodes, other_pods)


@given(cluster=clusters(), job=jobs)
def test_deciding_changes_nothing_and_deciding_again_says_the_same(cluster: CheckedCluster, job: Job) -> None:
    ledger, planner = cluster.ledger, Planner(RULES)
    before = (bytes_of(ledger), ledger.generation)
    first = planner.decide(job, ledger.snapshot(), 0.0)
    assert (bytes_of(ledger), ledger.generation) == before
    assert planner.decide(job, ledger.snapshot(), 0.0) == first
    assert Planner(RULES).decide(job, ledger.snapshot(), 0.0) == first


@given(cluster=clusters(), job=jobs, other=pods("other"))
def test_what_was_decided_before_does_not_matter(cluster: CheckedCluster, job: Job, other: Pod) -> None:
    """Neither another pod's decision in between nor an attempt that was taken back."""
    planner, ledger = Planner(RULES), cluster.ledger
    first = planner.decide(job, ledger.snapshot(), 0.0)
    planner.decide(Job("default/others", (other, a_pod("more", cpu=1))), ledger.snapshot(), 0.0)
    assert planner.decide(job, ledger.snapshot(), 0.0) == first


@settings(max_examples=2 * settings().max_examples)
@given(cluster=clusters(), stream=st.lists(pods(claiming=True), min_size=1, max_size=8))
def test_no_node_is_ever_given_more_than_it_has(cluster: CheckedCluster, stream: list[Pod]) -> None:
    """Counted with exact integers, from the pods themselves. Nodes that others filled too far get nothing of it."""
    planner = Planner(RULES)
    for i, pod in enumerate(stream):
        meta = msgspec.structs.replace(pod.metadata, name=f"s{i}", uid=f"s{i}")
        one = msgspec.structs.replace(pod, metadata=meta)
        decision = planner.decide(Job.of(one), cluster.ledger.snapshot(), 0.0)
        if decision.placed:
            assert not one.spec.resource_claims
            commit(decision, Job.of(one), cluster.ledger, 0.0)
            cluster.reference.assume(one, decision.placements[0].node)
            _assert_it_fits(one, decision.placements[0].node, cluster.reference)


def _assert_it_fits(pod: Pod, node: str, cluster: ReferenceCluster) -> None:
    info = cluster.infos()[node]
    has = reference.offered(info)
    assert len(info.pods) <= has.get("pods", 0)
    for name, amount in reference.asked(pod, status=False).items():
        if amount:
            assert reference.taken(info, name) <= has.get(name, 0), name
    others = info._replace(pods=tuple(other for other in info.pods if other.key != pod.key))
    assert reference.NodePorts().filter_one(pod, others) == []
    assert node not in cluster.unreadable.values()


def test_a_cluster_fills_up_to_the_last_millicore_and_no_further() -> None:
    ledger, planner = a_ledger([a_node(f"n{i}", cpu=2) for i in range(5)]), Planner(RULES)
    placed = []
    for i in range(12):
        job = Job.of(a_pod(f"p{i}", cpu=1))
        decision = planner.decide(job, ledger.snapshot(), 0.0)
        placed.append(decision.placed)
        if decision.placed:
            commit(decision, job, ledger, 0.0)
    assert placed == [True] * 10 + [False] * 2
