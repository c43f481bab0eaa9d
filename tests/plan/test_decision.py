"""A decision says why: every number in it is what a naive scheduler counts, node by node."""

from collections import Counter

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.base.arrays import AMOUNT_CAP
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code, Reason, code_of
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from kubenexus.testing.harness import CheckedCluster, readable
from kubenexus.testing.strategies import NODES, PODS, clusters, pods
from tests.plan.reference import NODE_LOCAL, SCORES, Judgement, judge
from tests.plugins import reference

RULES = profile_plugins(NODE_LOCAL)
waiting = st.lists(
    st.sampled_from(PODS).flatmap(lambda name: st.sampled_from(NODES).flatmap(lambda node: pods(name, nominated=node))),
    max_size=3,
)
incoming = st.sampled_from(["", "", "", *NODES]).flatmap(lambda node: pods("incoming", nominated=node))


def decided(pod: Pod, cluster: CheckedCluster) -> Decision:
    return Planner(RULES).decide(Job.of(pod), cluster.ledger.snapshot(), 0.0)


@settings(max_examples=3 * settings().max_examples)
@given(cluster=clusters(), pod=incoming, others=waiting)
def test_a_decision_is_what_a_naive_scheduler_decides(cluster: CheckedCluster, pod: Pod, others: list[Pod]) -> None:
    """Pods that wait for a node count there, for everybody of no higher priority, as upstream counts them."""
    for other in others:
        if other.key not in cluster.reference.placed() and other.key not in cluster.reference.unreadable:
            cluster.tell("upsert_pod", other)
    expected, decision = judge(pod, cluster.reference), decided(pod, cluster)
    assert decision.placed == (bool(expected.feasible) and not (expected.failed and len(expected.feasible) > 1))
    if expected.failed and len(expected.feasible) > 1:
        assert decision.code is Code.ERROR
        return
    assert dict(decision.diagnosis.counts) == expected.counts
    assert decision.diagnosis.message == expected.message
    assert decision.diagnosis.nodes == len(cluster.reference.nodes)
    if decision.placed and expected.failed:
        assert {p.node for p in decision.placements} == expected.feasible.keys()  # the only one: nothing to prefer
    elif decision.placed:
        _assert_the_best_is_chosen(decision, expected)
    else:
        assert decision.code is (Code.UNRESOLVABLE if expected.message else Code.UNSCHEDULABLE)
        _assert_the_nearest_is_near(decision, expected, pod, cluster)


def _assert_the_best_is_chosen(decision: Decision, expected: Judgement) -> None:
    (placement,) = decision.placements
    totals = {node: expected.total(node) for node in expected.feasible}
    assert placement.feasible == len(totals)
    assert placement.total == totals[placement.node] == max(totals.values())
    said = {s.plugin: (s.raw, s.normalized) for s in placement.scores}
    assert said == expected.feasible[placement.node]
    assert all(score.weight == SCORES[score.plugin][1] for score in placement.scores)
    assert placement.total == sum(score.weight * score.normalized for score in placement.scores)
    del totals[placement.node]
    if placement.runner_up is None:
        assert not totals
    else:
        assert placement.runner_up.total == totals[placement.runner_up.node] == max(totals.values())


def _assert_the_nearest_is_near(decision: Decision, expected: Judgement, pod: Pod, cluster: CheckedCluster) -> None:
    """A node that was looked at, with its own reasons; not a hopeless one while another is not; what it lacks."""
    nearest = decision.diagnosis.nearest
    if not expected.first:
        assert nearest is None
        return
    assert nearest is not None
    assert sorted(nearest.reasons) == sorted(text for text, _ in expected.first[nearest.node])
    codes = {node: code_of(tuple(Reason(*reason) for reason in reasons)) for node, reasons in expected.first.items()}
    assert codes[nearest.node] is Code.UNSCHEDULABLE or Code.UNSCHEDULABLE not in codes.values()
    info = cluster.reference.infos()[nearest.node]
    asked, has = reference.asked(pod, status=False), reference.offered(info)
    free = {name: has.get(name, 0) - _capped(reference.taken(info, name)) for name in asked}
    lacking = {name: amount - free[name] for name, amount in asked.items()}
    said = {s.resource: s.lacking for s in nearest.shortages}
    assert said.keys() == {name for name, amount in asked.items() if amount and lacking[name] > 0}
    for name, amount in said.items():  # of what a node does not offer, it lacks all that is asked for
        assert amount == (lacking[name] if has.get(name) else max(amount, asked[name])), name


def _capped(amount: int) -> int:
    """What is taken is counted up to 2**62 - 1, so that sums fit; nobody has as much."""
    return min(amount, AMOUNT_CAP)


@given(cluster=clusters(), pod=pods("incoming"))
def test_counts_add_up_to_all_nodes_that_are_not_feasible(cluster: CheckedCluster, pod: Pod) -> None:
    """Each refused node under the plugin that refused it first; one that lacks two resources counts under both."""
    assume(readable(pod))
    expected, decision = judge(pod, cluster.reference), decided(pod, cluster)
    if expected.message or expected.failed:
        return
    refused = Counter(text for reasons in expected.first.values() for text, _ in reasons)
    absent = len(cluster.reference.nodes) - len(expected.first) - len(expected.feasible)
    counted = dict(decision.diagnosis.counts)
    assert sum(counted.values()) == refused.total() + absent
    assert {reason: counted[reason] for reason in refused} == dict(refused)
