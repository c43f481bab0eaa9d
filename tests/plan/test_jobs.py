"""A job of several pods: all that fit if they are enough, or none; and members see each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubenexus.api.core import ContainerStatus, Pod, TopologySpreadConstraint
from kubenexus.api.selectors import LabelSelector
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.state.snapshot import StaleSnapshot
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import CheckedCluster, a_ledger, run
from kubenexus.testing.strategies import clusters, pods
from tests.properties.table_content import bytes_of

RULES = profile_plugins()


def members(number: int, **asked: object) -> tuple[Pod, ...]:
    return tuple(a_pod(f"m{i}", **asked) for i in range(number))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pods", "minimum", "placed"),
    [
        pytest.param(members(3, cpu=1), 3, 3, id="all fit"),
        pytest.param(members(5, cpu=1), 4, 4, id="not all fit, but enough"),
        pytest.param(members(5, cpu=1), 5, 0, id="one too many: none at all"),
        pytest.param((*members(1, cpu=9), *members(3, cpu=1)[1:]), 2, 2, id="one that fits nowhere is left out"),
        pytest.param(members(2, cpu=1, ports=[80]), 2, 2, id="each takes a port of another node"),
        pytest.param(members(3, cpu=1, ports=[80]), 3, 0, id="more ports than nodes"),
    ],
)
def test_a_job_is_placed_with_at_least_its_minimum_or_not_at_all(
    pods: tuple[Pod, ...], minimum: int, placed: int
) -> None:
    done = run([a_node("n1", cpu=2), a_node("n2", cpu=2)], [Job("default/gang", pods, minimum)])
    assert len(done.placements) == placed
    assert ("gang" in done.refusals) == (placed == 0)
    assert len(done.ledger.pods) == placed


@pytest.mark.parametrize(
    ("pods", "minimum"),
    [
        pytest.param(members(2), 3, id="two of three"),
        pytest.param(members(1), 2, id="one of two"),
        pytest.param((), 1, id="none of one"),
    ],
)
def test_a_job_with_fewer_members_than_its_minimum_is_not_placed(pods: tuple[Pod, ...], minimum: int) -> None:
    decision = Planner(RULES).decide(Job("default/gang", pods, minimum), a_ledger([a_node("n1")]).snapshot(), 0.0)
    assert not decision.placed
    assert decision.placements == ()


def test_members_that_wait_for_a_node_do_not_count_there_twice() -> None:
    """Room was made on n1 for both: when the second is seated, the first counts as placed and no longer as waiting."""
    gang = members(2, cpu=1, nominated="n1")
    ledger = a_ledger([a_node("n1", cpu=2)], gang)
    decision = Planner(RULES).decide(Job("default/gang", gang, 2), ledger.snapshot(), 0.0)
    assert {p.pod: p.node for p in decision.placements} == {"default/m0": "n1", "default/m1": "n1"}


@given(cluster=clusters(), gang=st.lists(pods(), min_size=1, max_size=4, unique_by=lambda p: p.key), minimum=st.data())
def test_a_gang_is_no_worse_than_its_members_one_by_one(
    cluster: CheckedCluster, gang: list[Pod], minimum: st.DataObject
) -> None:
    """Whoever finds a node alone, after those before it, finds one in the plan; and nothing is written for it."""
    gang = [pod for pod in gang if pod.key not in cluster.reference.placed()]
    job = Job("default/gang", tuple(gang), minimum.draw(st.integers(1, max(len(gang), 1))))
    if not gang:
        return
    before = bytes_of(cluster.ledger)
    decision = Planner(RULES).decide(job, cluster.ledger.snapshot(), 0.0)
    assert bytes_of(cluster.ledger) == before
    alone, failed = 0, False
    for pod in gang:
        one = Planner(RULES).decide(Job.of(pod), cluster.ledger.snapshot(), 0.0)
        failed |= one.code is Code.ERROR
        if one.placed:
            commit(one, Job.of(pod), cluster.ledger, 0.0)
            alone += 1
    if not failed:
        assert len(decision.placements) >= (alone if alone >= job.minimum else 0)
    assert len(decision.placements) == 0 or len(decision.placements) >= job.minimum


def test_a_decision_on_an_older_state_is_not_committed() -> None:
    ledger, pod = a_ledger([a_node("n1", cpu=1)]), a_pod("p", cpu=1)
    decision = Planner(RULES).decide(Job.of(pod), ledger.snapshot(), 0.0)
    ledger.upsert_pod(a_pod("other", cpu=1, node="n1"))
    with pytest.raises(StaleSnapshot):
        commit(decision, Job.of(pod), ledger, 0.0)
    assert ledger.pods.keys() == {"default/other"}


def test_one_planner_may_be_asked_about_another_ledger() -> None:
    """As after a rebuild: nothing it remembers of the old one answers for the new one."""
    planner, pod = Planner(RULES), a_pod("p", cpu=1)
    for open_node, closed in (("n1", "n2"), ("n2", "n1")):
        ledger = a_ledger([a_node("n1", cordoned=closed == "n1"), a_node("n2", cordoned=closed == "n2")])
        decision = planner.decide(Job.of(pod), ledger.snapshot(), 0.0)
        assert [p.node for p in decision.placements] == [open_node]


def test_a_pod_that_waits_for_a_node_counts_there_once_whoever_asks() -> None:
    """For the gang as a whole, and not once more for each member that has to be asked about by itself."""
    had = [ContainerStatus(name="main", allocated_resources={"cpu": "2"})]
    gang = (a_pod("greedy", cpu=1, status={"container_statuses": had}), a_pod("modest", cpu=1, memory="1Gi"))
    waiting = a_pod("waiting", cpu=1, priority=10, nominated="n1", labels={"app": "web"})
    ledger = a_ledger([a_node("n1", cpu=3)], [waiting])
    alike = LabelSelector(match_labels={"app": "web"})
    constraint = TopologySpreadConstraint(topology_key="kubernetes.io/hostname", label_selector=alike)
    plain, planner = a_pod("even", labels={"app": "web"}), Planner(RULES)
    spreading = replace(plain, spec=replace(plain.spec, topology_spread_constraints=[constraint]))
    for _ in range(2):
        before = bytes_of(ledger)
        assert len(planner.decide(Job("default/gang", gang, 2), ledger.snapshot(), 0.0).placements) == 2
        assert bytes_of(ledger) == before
        planner.decide(Job.of(spreading), ledger.snapshot(), 0.0)
    for name in ("one", "other"):
        ledger.upsert_pod(a_pod(name, node="n1", labels={"app": "web"}))
        assert [ledger.audit_query(question) for question in ledger.nodes.pods.queries] == [[]]


def test_what_is_first_asked_while_a_waiting_pod_is_tried_is_right_afterwards() -> None:
    """A constraint that selects everybody counts nominated pods alone, as upstream's does: it may be met first with
    one of them on its node."""
    constraint = TopologySpreadConstraint(topology_key="kubernetes.io/hostname", label_selector=LabelSelector())
    plain = members(2, cpu=1)
    gang = tuple(replace(pod, spec=replace(pod.spec, topology_spread_constraints=[constraint])) for pod in plain)
    ledger = a_ledger([a_node("n1"), a_node("n2")], [a_pod("waiting", priority=10, nominated="n1")])
    planner = Planner(RULES)
    planner.decide(Job("default/gang", gang, 2), ledger.snapshot(), 0.0)
    assert [ledger.audit_query(question) for question in ledger.nodes.pods.queries] == [[]]
