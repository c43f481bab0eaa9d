"""Who may preempt, whom, where, and what people read about it: kube-scheduler's rules one by one."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import ClaimVolume, Node, Pod, PodCondition, TopologySpreadConstraint, Volume
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.storage import PersistentVolumeClaim, PersistentVolumeClaimSpec
from kubenexus.api.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kubenexus.cycle.nominated_pods import filter_with_nominated_pods
from kubenexus.framework.profile import EnabledPlugin, Profile
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner
from kubenexus.plan.preemption.candidate import Candidate, best_candidates
from kubenexus.plan.preemption.default_preemption import CandidateLimits, DefaultPreemption, PreemptionResult
from kubenexus.plugins import profile_plugins
from kubenexus.state.footprint import footprint_of
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord, PodStage, pod_record
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from kubenexus.testing.oracle.upstream import BuiltProfile

URGENT = a_pod("urgent", cpu=2, priority=100)
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
PREEMPTED = [PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")]


def preempt(pod: Pod, ledger: Ledger, limits: CandidateLimits | None = None, now: float = 0.0) -> PreemptionResult:
    planner, snapshot = Planner(BuiltProfile().profile_plugins), ledger.snapshot()
    classified = planner.class_cache.lookup(pod, ledger.nodes)
    yielding = filter_with_nominated_pods(pod, classified.table, snapshot)
    return DefaultPreemption(planner.class_cache, limits).preempt(classified, snapshot, now, yielding)


def outcome(pod: Pod, nodes: Iterable[Node], pods: Iterable[Pod]) -> PreemptionResult:
    return preempt(pod, a_ledger(nodes, pods))


def victims(result: PreemptionResult) -> list[str]:
    return [] if result.chosen is None else [victim.name for victim in result.chosen.victims]


def full(node: str, priority: int = 0, *, deleted: bool = False, **more: Any) -> Pod:
    """A pod that leaves no room on a node of 2 CPUs."""
    pod = a_pod(f"on-{node}", node=node, cpu=2, priority=priority, **more)
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=LATE if deleted else "")
    return msgspec.structs.replace(pod, metadata=meta)


def two_cpus(*names: str) -> list[Node]:
    return [a_node(name, cpu=2) for name in names]


# --- the end of the message -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "pods", "message"),
    [
        pytest.param(
            URGENT,
            [full("n1")],
            "preemption: found a potential placement for pod on node n1, preempting 1 victims",
            id="a victim is found",
        ),
        pytest.param(
            URGENT,
            [full("n1", priority=100)],
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="all are as important",
        ),
        pytest.param(
            a_pod("huge", cpu=8, priority=100),
            [full("n1")],
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            id="the node would be too small without any pod",
        ),
        pytest.param(
            a_pod("polite", cpu=2, priority=100, preemption_policy="Never"),
            [full("n1")],
            "preemption: not eligible due to preemptionPolicy=Never.",
            id="never",
        ),
        pytest.param(
            a_pod("second", cpu=2, priority=100, nominated="n1"),
            [full("n1", status={"conditions": PREEMPTED}, deleted=True)],
            "preemption: not eligible due to a terminating pod on the nominated node.",
            id="its victims are still terminating",
        ),
        pytest.param(
            URGENT,
            [a_pod("low", node="n1", cpu=1), a_pod("high", node="n1", cpu=1, priority=200)],
            "preemption: 0/1 nodes are available: 1 Insufficient cpu.",
            id="what is left is too much",
        ),
    ],
)
def test_people_read_what_they_read_with_kube_scheduler(pod: Pod, pods: list[Pod], message: str) -> None:
    assert outcome(pod, two_cpus("n1"), pods).message == message


def test_nodes_that_were_not_tried_are_counted_as_not_helpful() -> None:
    nodes = [*two_cpus("n1", "n2"), a_node("n3", cpu=2, cordoned=True), a_node("n4", cpu=1)]
    result = outcome(URGENT, nodes, [full("n1", priority=100), full("n2", priority=200)])
    assert result.message == (
        "preemption: 0/4 nodes are available: 2 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )
    assert (result.code, result.clears_nomination) == (Code.UNSCHEDULABLE, True)


# --- who may preempt --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terminating", "eligible"),
    [
        pytest.param({"status": {"conditions": PREEMPTED}}, True, id="not yet being deleted"),
        pytest.param({"deleted": True}, True, id="being deleted for another reason"),
        pytest.param({"deleted": True, "status": {"conditions": PREEMPTED}}, False, id="being preempted"),
        pytest.param({"deleted": True, "status": {"conditions": PREEMPTED}, "priority": 100}, True, id="as important"),
    ],
)
def test_a_nominated_pod_waits_only_for_victims_of_a_scheduler(terminating: dict[str, Any], eligible: bool) -> None:
    pod = a_pod("second", cpu=2, priority=100, nominated="n1")
    result = outcome(pod, two_cpus("n1", "n2"), [full("n1", **terminating), full("n2")])
    assert (result.code is Code.SUCCESS) is eligible


@pytest.mark.parametrize("nominated", ["n1", "gone"])
def test_a_nominated_node_that_is_out_of_the_question_does_not_hold_the_pod_back(nominated: str) -> None:
    pod = a_pod("second", cpu=2, priority=100, nominated=nominated)
    leaving = full("n1", status={"conditions": PREEMPTED}, deleted=True)
    result = outcome(pod, [a_node("n1", cpu=2, cordoned=True), *two_cpus("n2")], [leaving, full("n2")])
    assert victims(result) == ["on-n2"]


# --- whom -------------------------------------------------------------------------------------------------------------


def test_the_most_important_pods_are_spared_first() -> None:
    pods = [
        a_pod("old", node="n1", cpu=1, status={"start_time": EARLY}),
        a_pod("young", node="n1", cpu=1, status={"start_time": LATE}),
        a_pod("new", node="n1", cpu=1),
        a_pod("better", node="n1", cpu=1, priority=1),
    ]
    assert victims(outcome(URGENT, [a_node("n1", cpu=4)], pods)) == ["young", "new"]


def test_pods_that_would_violate_a_budget_are_spared_before_more_important_ones() -> None:
    pods = [
        a_pod("better", node="n1", cpu=1, priority=5),
        a_pod("guarded", node="n1", cpu=1, labels={"app": "a"}),
    ]
    ledger = a_ledger([a_node("n1", cpu=2)], pods)
    assert victims(preempt(a_pod("urgent", cpu=1, priority=100), ledger)) == ["guarded"]
    ledger.upsert_disruption_budget(a_budget(0))
    assert victims(preempt(a_pod("urgent", cpu=1, priority=100), ledger)) == ["better"]
    result = preempt(URGENT, ledger)  # both have to go: as upstream, a budget is violated if nothing else helps
    assert result.chosen is not None
    assert (victims(result), result.chosen.pdb_violations) == (["better", "guarded"], 1)


def test_a_pod_nominated_there_keeps_its_room() -> None:
    waiting = a_pod("waiting", cpu=2, priority=100, nominated="n1")
    result = outcome(a_pod("urgent", cpu=2, priority=100), two_cpus("n1"), [full("n1"), waiting])
    assert result.message == "preemption: 0/1 nodes are available: 1 Insufficient cpu."


def test_every_filter_sees_that_a_victim_is_gone() -> None:
    guard = a_pod("guard", node="n1", apart=[f"app=urgent per {HOSTNAME}"], ports=[80], labels={"app": "web"})
    for pod in (
        a_pod("urgent", priority=9, labels={"app": "urgent"}),
        a_pod("urgent", priority=9, ports=[80]),
        a_pod("urgent", priority=9, apart=[f"app=web per {HOSTNAME}"]),
    ):
        assert victims(outcome(pod, [a_node("n1")], [guard])) == ["guard"]


def mounting(name: str, claim: str, **more: Any) -> Pod:
    pod, volume = a_pod(name, **more), Volume(name="data", persistent_volume_claim=ClaimVolume(claim_name=claim))
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=[volume]))


def with_claims(ledger: Ledger, *namespaces: str) -> Ledger:
    """The ledger with a claim `data` in each namespace that one pod at a time may use."""
    spec = PersistentVolumeClaimSpec(access_modes=["ReadWriteOncePod"], volume_name="disk")
    for namespace in namespaces:
        meta = ObjectMeta(name="data", namespace=namespace)
        ledger.upsert_storage(PersistentVolumeClaim(metadata=meta, spec=spec))
    return ledger


VOLUMES_ONLY = ("VolumeRestrictions", "NodeResourcesFit")


def preempt_with(names: Iterable[str], pod: Pod, ledger: Ledger) -> PreemptionResult:
    planner = Planner(profile_plugins(Profile("some", tuple(map(EnabledPlugin, names)))))
    classified = planner.class_cache.lookup(pod, ledger.nodes)
    return DefaultPreemption(planner.class_cache).preempt(classified, ledger.snapshot(), 0.0, None)


def test_a_claim_that_one_pod_may_use_becomes_free_with_its_user() -> None:
    ledger = with_claims(a_ledger([a_node("n1"), a_node("n2")], [mounting("user", "data", node="n1")]), "default")
    assert victims(preempt_with(VOLUMES_ONLY, mounting("urgent", "data", priority=9), ledger)) == ["user"]
    assert preempt_with(VOLUMES_ONLY, mounting("humble", "data"), ledger).chosen is None


def test_a_victim_frees_only_what_it_holds() -> None:
    users = [mounting("user", "data", node="n1"), mounting("other", "data", node="n2")]
    ledger = with_claims(a_ledger([a_node("n1"), a_node("n2")], users), "default")
    assert preempt_with(VOLUMES_ONLY, mounting("urgent", "data", priority=9), ledger).chosen is None
    foreign = mounting("foreign", "data", node="n1", namespace="other")
    ledger = with_claims(a_ledger([a_node("n1"), a_node("n2")], [foreign, users[1]]), "default", "other")
    chosen = preempt_with(VOLUMES_ONLY, mounting("urgent", "data", priority=9), ledger).chosen
    assert chosen is not None
    assert chosen.node == "n2"  # not n1: the claim there has the same name, and is another one
    nodes = [a_node("n1", cpu=2, zone="a"), a_node("n2", cpu=2, zone="b", cordoned=True)]
    spread = TopologySpreadConstraint(topology_key=ZONE, label_selector=LabelSelector(match_labels={"app": "a"}))
    pod = a_pod("urgent", cpu=1, priority=9, labels={"app": "a"}, topology_spread_constraints=[spread])
    there = [a_pod("stays", node="n1", priority=9, labels={"app": "a"}), full("n1", labels={"app": "a"}, deleted=True)]
    assert outcome(pod, nodes, there).chosen is None
    port = a_pod("urgent", priority=9, ports=[80])
    holders = [a_pod("low", node="n1", ports=[80]), a_pod("high", node="n1", ports=[80], priority=9)]
    assert outcome(port, nodes, holders).chosen is None


def test_a_node_with_a_pod_that_cannot_be_read_is_left_alone() -> None:
    ledger = a_ledger(two_cpus("n1"), [full("n1")])
    ledger.block_unreadable_pod("default/broken", "n1")
    assert preempt(URGENT, ledger).chosen is None


# --- where ------------------------------------------------------------------------------------------------------------


def a_victim(name: str, priority: int = 0, start: str = EARLY) -> PodRecord:
    pod = a_pod(name, priority=priority, status={"start_time": start})
    return pod_record(pod, "n", PodStage.BOUND, footprint_of(pod))


def candidate(node: str, *gone: PodRecord, violations: int = 0) -> Candidate:
    return Candidate(node, gone, violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(
            candidate("better", a_victim("a", 9), a_victim("b", 9)),
            candidate("worse", a_victim("c"), violations=1),
            id="fewest violations",
        ),
        pytest.param(
            candidate("better", a_victim("a", 1), a_victim("b", 1)),
            candidate("worse", a_victim("c", 2)),
            id="then the lowest highest priority",
        ),
        pytest.param(
            candidate("better", a_victim("a", 2), a_victim("b", 0)),
            candidate("worse", a_victim("c", 2), a_victim("d", 1)),
            id="then the smallest sum of priorities",
        ),
        pytest.param(
            candidate("better", a_victim("a", -5)),
            candidate("worse", a_victim("b", -5), a_victim("c", -5)),
            id="a sum of negative priorities is no credit",
        ),
        pytest.param(
            candidate("better", a_victim("a", start=LATE)),
            candidate("worse", a_victim("b", start=EARLY)),
            id="then the youngest",
        ),
        pytest.param(
            candidate("better", a_victim("a", 1, LATE), a_victim("b", 0, EARLY)),
            candidate("worse", a_victim("c", 1, EARLY), a_victim("d", 0, LATE)),
            id="of the highest priority only",
        ),
        pytest.param(
            candidate("better", a_victim("a", start="")),
            candidate("worse", a_victim("b", start=LATE)),
            id="one that has not started is the youngest",
        ),
    ],
)
def test_the_better_candidate(better: Candidate, worse: Candidate) -> None:
    for candidates in ([better, worse], [worse, better]):
        assert best_candidates(candidates) == [better]


def test_enough_candidates_are_enough_if_one_violates_no_budget() -> None:
    names = [f"n{i}" for i in range(40)]
    guarded = [full(name, labels={"app": "a"} if name != "n7" else {}) for name in names]
    ledger = a_ledger(two_cpus(*names), guarded)
    ledger.upsert_disruption_budget(a_budget(0))
    for limits in (CandidateLimits(percentage=10, absolute=1), CandidateLimits(percentage=100)):
        result = preempt(URGENT, ledger, limits)
        assert result.chosen is not None
        assert result.chosen.node == "n7"


def test_a_dry_run_ends_and_the_next_one_begins_elsewhere() -> None:
    names = [f"n{i}" for i in range(40)]
    rest = [a_pod(f"rest-{name}", node=name, cpu=1, priority=200) for name in names if name != "n7"]
    crowd = [a_pod(f"{name}-{i}", node=name, cpu="10m") for name in names for i in range(99)]
    ledger = a_ledger(two_cpus(*names), [*rest, *crowd, a_pod("full", node="n7", cpu=1)])
    found = [preempt(URGENT, ledger, now=float(now)) for now in range(20)]  # each begins with another node
    assert {each.chosen.node for each in found if each.chosen is not None} == {"n7"}
    ended = {(each.alone, each.clears_nomination) for each in found if each.chosen is None}
    assert ended == {(True, False)}


def test_of_equally_good_nodes_always_the_same_is_taken() -> None:
    names = [f"n{i}" for i in range(9)]
    pods = [full(name, status={"start_time": EARLY}) for name in names]
    chosen = {preempt(URGENT, a_ledger(two_cpus(*order), pods)).message for order in (names, names[::-1])}
    assert len(chosen) == 1


@pytest.mark.parametrize(("nodes", "enough"), [(5000, 500), (300, 100), (40, 40)])
def test_how_many_candidates_are_enough(nodes: int, enough: int) -> None:
    assert CandidateLimits().enough(nodes) == enough


def a_budget(allowed: int, name: str = "guard") -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "a"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )
