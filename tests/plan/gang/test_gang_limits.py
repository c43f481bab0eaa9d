"""No gang takes more than its budget of counted work: beyond it the gang is refused, cheaply, with the limit named."""

from collections.abc import Callable
from typing import Any

import pytest

from kubenexus.api.core import Pod, TopologySpreadConstraint
from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.api.selectors import LabelSelector
from kubenexus.app.watch.object_cache import ObjectCache, with_shared_parts
from kubenexus.cycle.class_cache import ClassCache, ClassifiedPod
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import SINGLE_POD_VIEW, Job, JobView
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang import gang_limits
from kubenexus.plan.gang.multi_class.packing_problem import BUDGET, WorkBudget
from kubenexus.plan.place_pod import PodPlacer, PodResult
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.snapshot import Snapshot
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod
from kubenexus.testing.harness import a_ledger

RULES, SHIPPED = profile_plugins(), profile_plugins(shipped_profile())
NODES = 20
RACK = "topology.kubernetes.io/rack"


class Counting(ClassCache):
    """Counts members that were signed, and looks at tables."""

    signed = looked = 0

    def signature(self, pod: Pod, columns: NodeColumns, *, lift: bool = True) -> bytes:
        self.signed += 1
        return super().signature(pod, columns, lift=lift)

    def lookup(self, pod: Pod, columns: NodeColumns, job: JobView = SINGLE_POD_VIEW) -> ClassifiedPod:
        self.looked += 1
        return super().lookup(pod, columns, job)


def of_kinds(kinds: int, members: int = 0) -> list[Pod]:
    """Members of so many kinds in turn: each asks for another amount of cpu."""
    return [a_pod(f"m{i}", cpu=f"{10_000 + i % kinds}u", memory="1Mi") for i in range(members or kinds)]


PLAIN = ClassCache(RULES).signature(of_kinds(1)[0], a_ledger().nodes)


def spread_over(*keys: str) -> list[TopologySpreadConstraint]:
    selector = LabelSelector(match_labels={"app": "gang"})
    return [TopologySpreadConstraint(topology_key=key, label_selector=selector) for key in keys]


def decided(
    pods: list[Pod], minimum: int = 0, nodes: int = NODES, topology: TopologyRequest | None = None, cpu: int | str = 64
) -> tuple[Decision, Counting]:
    made = [a_node(f"n{i}", cpu=cpu, zone=f"z{i % 3}", labels={RACK: f"r{i % 5}"}, pods=1000) for i in range(nodes)]
    bench = Counting(RULES)
    job = Job("ns/gang/wide", tuple(pods), minimum or len(pods), topology or TopologyRequest())
    return Planner(RULES, bench).decide(job, a_ledger(made).snapshot(), 0.0), bench


def kinds_within(
    rows: int,
    signature: bytes = PLAIN,
    make: Callable[[int], Pod] = lambda i: a_pod(),
    plugins: int = RULES.per_node,
) -> int:
    """How many kinds the budget is enough for."""
    prices = gang_limits.MemberClassCosts(rows, plugins, WorkBudget())
    for i in range(BUDGET):
        try:
            prices.sign(signature)
            prices.add(make(i), signature)
        except gang_limits.GangLimitError:
            return i
    raise AssertionError("there is no limit")


# --- kinds --------------------------------------------------------------------------------------------------------


def test_a_gang_of_too_many_kinds_is_refused_before_any_table_is_made() -> None:
    most = kinds_within(NODES)
    decision, bench = decided(of_kinds(4000))
    said = f"gang has more than {most} different kinds of members; at {NODES} nodes at most {most} like these can be"
    assert decision.sentence() == f"0/{NODES} nodes are available: {said} planned together."
    assert (decision.code, decision.diagnosis.refused_by) == (Code.UNSCHEDULABLE, (gang_limits.GANG_LIMITS,))
    assert (bench.signed, bench.looked, bench.work.builds) == (most + 1, 0, 0), "counting ends where the limit is"


def test_a_gang_of_as_many_kinds_as_may_be_is_placed_with_one_table_for_each() -> None:
    most = kinds_within(NODES)
    decision, bench = decided(of_kinds(most))
    assert len(decision.placements) == most
    assert bench.work.builds == most


@pytest.mark.parametrize("required", ["", "rack"])
@pytest.mark.parametrize("cpu", [64, "20m"], ids=["with room for all", "with room for some"])
def test_with_as_many_kinds_as_may_be_something_is_tried_whatever_the_site(cpu: int | str, required: str) -> None:
    """One order of the kinds is always left in the budget: nothing is refused for having looked at narrow sites."""
    most = kinds_within(200)
    decision, _ = decided(of_kinds(most), nodes=200, topology=TopologyRequest(required), cpu=cpu)
    assert decision.placed or (decision.gang_diagnosis is not None and decision.gang_diagnosis.fit > 0)


@pytest.mark.parametrize(
    ("rows", "least", "most"),
    [
        pytest.param(100, 200, 400, id="100 nodes"),
        pytest.param(1_000, 150, 250, id="1,000 nodes"),
        pytest.param(5_000, 64, 128, id="5,000 nodes"),
        pytest.param(50_000, 8, 16, id="50,000 nodes"),
    ],
)
def test_how_many_kinds_there_may_be_depends_on_the_nodes(rows: int, least: int, most: int) -> None:
    assert least <= kinds_within(rows) <= most
    assert gang_limits.max_member_classes(PLAIN, rows, RULES.per_node) == kinds_within(rows)


def test_kinds_with_much_in_them_cost_more() -> None:
    assert kinds_within(5_000, PLAIN * 20) < kinds_within(5_000) / 5


def test_labels_of_nodes_are_paid_for_once_by_the_whole_gang() -> None:
    one = kinds_within(5_000, make=lambda i: a_pod(selects={"pool": str(i)}))
    each = kinds_within(5_000, make=lambda i: a_pod(selects={f"pool-{i}": "a"}))
    assert kinds_within(5_000) - 2 <= one
    assert each < 0.6 * one


EVERY_WAY = a_pod(
    selects={"a": ""},
    requires=["b Exists"],
    prefers={"c Exists": 1},
    near=["app=x per d"],
    apart=["app=x per e"],
    topology_spread_constraints=spread_over("f"),
)


def test_all_labels_of_nodes_that_a_pod_may_name_are_counted() -> None:
    assert sorted(gang_limits.node_keys(EVERY_WAY)) == ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize("shared", [True, False], ids=["shared specs", "specs of their own"])
def test_members_of_many_kinds_in_turn_are_signed_once_for_each_kind(shared: bool) -> None:
    pods, cache = of_kinds(40, 1000), ObjectCache()
    decision, bench = decided([with_shared_parts(pod, cache.stripped_pod(pod)) for pod in pods] if shared else pods)
    assert (len(decision.placements), bench.signed, bench.work.builds) == (1000, 40, 40)


def test_members_that_have_to_be_told_apart_one_by_one_are_so_many_at_most() -> None:
    """Labels that a pod selects by, of more kinds with one spec than a member is held against, in turns."""
    keep_away = [f"colour={i} per {HOSTNAME}" for i in range(12)]
    pods = [a_pod(f"m{i}", labels={"colour": str(i % 12)}, apart=keep_away) for i in range(5000)]
    decision, bench = decided(pods)
    assert "members to be told apart one by one, which is the limit" in decision.sentence()
    assert bench.signed * 500 <= gang_limits.CLASS_BUDGET
    assert bench.looked == 0


# --- members ------------------------------------------------------------------------------------------------------


def test_five_thousand_members_of_one_kind_are_planned_in_one_go() -> None:
    decision, bench = decided(of_kinds(1, 5000))
    assert len(decision.placements) == 5000
    assert (bench.signed, bench.work.builds) == (1, 1)


def test_a_gang_that_needs_more_members_at_once_than_may_be_is_refused() -> None:
    decision, bench = decided(of_kinds(1, 5001))
    said = "gang needs 5001 members at once; at most 5000 can be planned together"
    assert decision.sentence() == f"0/{NODES} nodes are available: {said}."
    assert (bench.signed, bench.looked) == (0, 0)


def test_of_a_gang_with_more_members_than_may_be_that_needs_fewer_the_first_are_placed() -> None:
    decision, _ = decided(of_kinds(1, 5003), minimum=4000)
    assert [placement.pod for placement in decision.placements][-1] == "default/m4999"
    assert len(decision.placements) == 5000


# --- members that limit each other --------------------------------------------------------------------------------


@pytest.fixture
def seats(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The members that were asked about one by one."""
    asked: list[str] = []

    def seat(self: PodPlacer, pod: Pod, snapshot: Snapshot, job: JobView, within: Any = None) -> PodResult:
        asked.append(pod.key)
        return found(self, pod, snapshot, job, within)

    found = PodPlacer.place
    monkeypatch.setattr(PodPlacer, "place", seat)
    return asked


def limiting(members: int) -> list[Pod]:
    """They keep apart on nodes, and are spread over zones."""
    fields: dict[str, Any] = {"apart": [f"app=gang per {HOSTNAME}"], "topology_spread_constraints": spread_over(ZONE)}
    return [a_pod(f"m{i}", labels={"app": "gang"}, cpu=1, **fields) for i in range(members)]


def test_a_gang_that_needs_more_members_that_limit_each_other_than_may_be_is_refused(seats: list[str]) -> None:
    decision, _ = decided(limiting(1000))
    assert "gang needs 1000 members at once that limit each other; at 20 nodes at most" in decision.sentence()
    assert decision.diagnosis.refused_by == (gang_limits.GANG_LIMITS,)
    assert seats == []


@pytest.mark.parametrize("nodes", [60, 300])
def test_members_are_asked_about_as_often_as_the_budget_allows(seats: list[str], nodes: int) -> None:
    decision, bench = decided(limiting(200), nodes=nodes)
    price = gang_limits.placement_cells(
        bench.signature(limiting(1)[0], a_ledger([a_node("n")]).nodes), nodes, RULES.per_node
    )
    assert decision.placed == (nodes >= 200)
    assert 0 < len(seats) * price <= BUDGET


@pytest.mark.parametrize(
    ("plugins", "members"),
    [
        pytest.param(RULES.per_node, 200, id="with the plugins of kube-scheduler"),
        pytest.param(SHIPPED.per_node, 65, id="with the shipped profile"),
    ],
)
def test_how_many_members_that_limit_each_other_can_be_planned_at_five_thousand_nodes(
    plugins: int, members: int
) -> None:
    price = gang_limits.placement_cells(PLAIN * 3, 5_000, plugins)
    assert members <= (BUDGET - gang_limits.table_cells(PLAIN * 3, 5_000)) // price <= 2 * members


def test_a_profile_with_more_plugins_allows_for_fewer_kinds() -> None:
    """To call them takes most of the time for a kind, at any number of nodes."""
    assert SHIPPED.per_node > 1.5 * RULES.per_node
    for rows in (100, 1_000, 5_000):
        assert 25 <= kinds_within(rows, plugins=SHIPPED.per_node) <= min(50, kinds_within(rows) // 2)
