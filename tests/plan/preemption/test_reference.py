"""The dry run on the columns is the one on plain objects, and leaves the ledger as it was."""

from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from kubenexus.api.core import Pod, TopologySpreadConstraint
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.cycle.nominated_pods import filter_with_nominated_pods
from kubenexus.plan.preemption.candidate import best_candidates
from kubenexus.plan.preemption.default_preemption import DefaultPreemption, NodeOutcomes
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod
from kubenexus.testing.oracle.upstream import BuiltProfile
from tests.plan.preemption import reference
from tests.properties.table_content import bytes_of, fresh_table_of, table_of

PLUGINS = BuiltProfile().profile_plugins
NODES = ("n0", "n1", "n2")
LABELS: list[dict[str, str]] = [{}, {"app": "a"}, {"app": "b"}, {"app": "a", "tier": "x"}]
STARTS = ["", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]
APART = [(), (f"app=a per {HOSTNAME}",), (f"app=b per {ZONE}",)]
SPREAD = TopologySpreadConstraint(
    topology_key=ZONE, max_skew=1, label_selector=LabelSelector(match_labels={"app": "a"})
)


@st.composite
def running(draw: st.DrawFn, name: str) -> Pod:
    """A pod on a node, or one that waits for a node."""
    priority, labels = draw(st.sampled_from((0, 5, 10, -10))), draw(st.sampled_from(LABELS))
    waits = draw(st.integers(0, 9)) == 9
    where = draw(st.sampled_from(NODES))
    return a_pod(
        name,
        node="" if waits else where,
        nominated=where if waits else "",
        namespace=draw(st.sampled_from(("default", "default", "other"))),
        priority=20 if waits and draw(st.booleans()) else priority,
        cpu=draw(st.sampled_from(("1", "2", "500m"))),
        labels=labels,
        apart=draw(st.sampled_from(APART)),
        ports=draw(st.sampled_from(((), (80,), ()))) if not waits else (),
        status={"start_time": draw(st.sampled_from(STARTS))},
    )


@st.composite
def budgets(draw: st.DrawFn, name: str) -> PodDisruptionBudget:
    selector: Any = draw(st.sampled_from((None, {}, {"app": "a"}, {"app": "b"}, {"tier": "x"})))
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=draw(st.sampled_from(("default", "other")))),
        spec=PodDisruptionBudgetSpec(selector=None if selector is None else LabelSelector(match_labels=selector)),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=draw(st.integers(0, 2)),
            disrupted_pods=dict.fromkeys(draw(st.sampled_from(((), ("p1",)))), "2026-01-01T00:00:00Z"),
        ),
    )


@st.composite
def clusters(draw: st.DrawFn) -> reference.Cluster:
    nodes = [
        a_node(name, cpu=draw(st.sampled_from((2, 3, 4))), zone=zone, pods=draw(st.sampled_from((110, 3))))
        for name, zone in zip(NODES, "aab", strict=True)
    ]
    pods = [draw(running(f"p{i}")) for i in range(draw(st.integers(0, 9)))]
    return reference.Cluster(nodes, pods, [draw(budgets(f"b{i}")) for i in range(draw(st.integers(0, 3)))])


@st.composite
def preemptors(draw: st.DrawFn) -> Pod:
    spread = [SPREAD] if draw(st.booleans()) else []
    return a_pod(
        "preemptor",
        priority=draw(st.sampled_from((10, 7, 100))),
        cpu=draw(st.sampled_from(("2", "3", "4"))),
        labels=draw(st.sampled_from(LABELS)),
        apart=draw(st.sampled_from(APART)),
        ports=draw(st.sampled_from(((), (80,)))),
        topology_spread_constraints=spread,
    )


@given(clusters(), preemptors(), st.booleans())
def test_victims_are_those_of_the_reference(cluster: reference.Cluster, pod: Pod, warm: bool) -> None:
    ledger = cluster.ledger()
    class_cache = ClassCache(PLUGINS)
    others = [a_pod("plain", cpu=1), a_pod("spread", labels={"app": "a"}, topology_spread_constraints=[SPREAD])]
    if warm:  # tables of other classes hear of what was tried, too
        for each in others:
            class_cache.lookup(each, ledger.nodes)
    before, snapshot = bytes_of(ledger), ledger.snapshot()
    classified = class_cache.lookup(pod, ledger.nodes)
    outcomes = NodeOutcomes(classified, ledger.nodes, filter_with_nominated_pods(pod, classified.table, snapshot))
    found = DefaultPreemption(class_cache).dry_run(classified, snapshot, 0.0, outcomes.potential)
    wanted = reference.preempt(pod, cluster, PLUGINS)
    note(f"refused: {found.refusals}")
    victims = {each.node: (tuple(v.key for v in each.victims), each.pdb_violations) for each in found.candidates}
    assert victims == wanted.candidates
    assert {each.node for each in best_candidates(found.candidates)} == wanted.best
    assert bytes_of(ledger) == before
    for each in (pod, *others):
        assert table_of(each, ledger, class_cache) == fresh_table_of(each, ledger, PLUGINS)


@given(clusters(), preemptors())
def test_without_its_victims_the_pod_fits_and_each_of_them_is_needed(cluster: reference.Cluster, pod: Pod) -> None:
    ledger = cluster.ledger()
    class_cache, snapshot = ClassCache(PLUGINS), ledger.snapshot()
    classified = class_cache.lookup(pod, ledger.nodes)
    outcomes = NodeOutcomes(classified, ledger.nodes, filter_with_nominated_pods(pod, classified.table, snapshot))
    for each in DefaultPreemption(class_cache).dry_run(classified, snapshot, 0.0, outcomes.potential).candidates:
        gone = {victim.key for victim in each.victims}
        assert reference.fits(pod, each.node, cluster, PLUGINS, gone)
        assert all(victim.priority < pod.spec.priority for victim in each.victims)
        for spared in gone:
            assert not reference.fits(pod, each.node, cluster, PLUGINS, gone - {spared})
