"""Among nodes with the same score: by lot, by name, or one already in use, as the profile says."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod
from kubenexus.framework.job import Job
from kubenexus.framework.profile import EnabledPlugin, Profile, TieBreak
from kubenexus.plan.decide import Planner
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import CheckedCluster, run
from kubenexus.testing.strategies import clusters, pods

TEN = [a_node(f"n{i}") for i in range(10)]
# Rules that refuse but do not score: all nodes that are left are equally good.
NO_SCORES = Profile("no scores", (EnabledPlugin("NodeUnschedulable"), EnabledPlugin("NodePorts")))


def ties(tie_break: TieBreak, profile: Profile = NO_SCORES, seed: int = 0) -> Profile:
    return msgspec.structs.replace(profile, tie_break=tie_break, seed=seed)


def chosen(pod: Pod, nodes: list[Node], profile: Profile, running: list[Pod] | None = None) -> str:
    return run(nodes, [*(running or []), pod], profile=profile).placements[pod.metadata.name]


@given(order=st.permutations(TEN))
def test_by_name_the_first_name_wins_in_whatever_order_nodes_came(order: list[Node]) -> None:
    assert chosen(a_pod("p"), order, ties(TieBreak.NAME)) == "n0"


def test_by_name_a_node_that_comes_later_and_sorts_first_wins_from_then_on() -> None:
    done = run(TEN[3:], [a_pod("p")], profile=ties(TieBreak.NAME))
    assert done.placements == {"p": "n3"}
    done.ledger.upsert_node(TEN[1])
    assert done.then([a_pod("q")]).placements == {"q": "n1"}
    done.ledger.remove_node("n1")
    assert done.then([a_pod("r")]).placements == {"r": "n3"}


@pytest.mark.parametrize("busy", [f"n{i}" for i in range(10)])
def test_in_use_a_node_that_runs_something_wins(busy: str) -> None:
    assert chosen(a_pod("p"), TEN, ties(TieBreak.IN_USE), [a_pod("q", node=busy)]) == busy


def test_in_use_a_node_stays_chosen_while_it_has_room() -> None:
    done = run(TEN, [a_pod(f"p{i}") for i in range(5)], profile=ties(TieBreak.IN_USE))
    assert len(set(done.placements.values())) == 1


@given(order=st.permutations(TEN), tie_break=st.sampled_from([TieBreak.SEEDED, TieBreak.IN_USE]))
def test_by_lot_the_same_node_wins_in_whatever_order_nodes_came(order: list[Node], tie_break: TieBreak) -> None:
    profile = ties(tie_break)
    assert chosen(a_pod("p", cpu=1), order, profile) == chosen(a_pod("p", cpu=1), TEN, profile)


def test_by_lot_the_pods_name_does_not_matter_but_its_class_does() -> None:
    profile = ties(TieBreak.SEEDED)
    assert len({chosen(a_pod(f"p{i}", cpu=1), TEN, profile) for i in range(8)}) == 1
    assert len({chosen(a_pod("p", cpu=i), TEN, profile) for i in range(1, 9)}) > 1


def test_by_lot_the_seed_matters() -> None:
    assert len({chosen(a_pod("p"), TEN, ties(TieBreak.SEEDED, seed=i)) for i in range(8)}) > 1


def test_by_lot_nobody_is_preferred() -> None:
    """A thousand classes on ten equal nodes: each gets about a tenth."""
    profile = ties(TieBreak.SEEDED)
    planner, ledger = Planner(profile_plugins(profile)), run(TEN, [], profile=profile).ledger
    lots = Counter(
        planner.decide(Job.of(a_pod("p", cpu=f"{i}m")), ledger.snapshot(), 0.0).placements[0].node
        for i in range(1, 1001)
    )
    assert len(lots) == 10
    assert min(lots.values()) > 60
    assert max(lots.values()) < 140


def test_by_lot_the_pods_of_one_class_fill_equal_nodes_evenly() -> None:
    done = run(TEN, [a_pod(f"p{i}", cpu="100m", memory="100Mi") for i in range(100)])
    assert set(Counter(done.placements.values()).values()) == {10}


@given(tie_break=st.sampled_from(TieBreak), cluster=clusters(), pod=pods("incoming"))
def test_a_tie_break_only_breaks_ties(tie_break: TieBreak, cluster: CheckedCluster, pod: Pod) -> None:
    """Whoever wins has the best score, and the others' answers do not depend on it."""
    plain = Planner(profile_plugins()).decide(Job.of(pod), cluster.ledger.snapshot(), 0.0)
    rules = profile_plugins(ties(tie_break, default_profile()))
    decision = Planner(rules).decide(Job.of(pod), cluster.ledger.snapshot(), 0.0)
    assert [p.total for p in decision.placements] == [p.total for p in plain.placements]
    assert (decision.code, decision.diagnosis.counts) == (plain.code, plain.diagnosis.counts)


def test_by_name_the_best_score_still_wins_after_many_placements() -> None:
    """Ranks are repaired row by row as pods are placed: totals must not creep into the lots."""
    nodes = [a_node("a", cpu=16), a_node("b", cpu=16), a_node("c", cpu=16)]
    done = run(
        nodes, [a_pod(f"p{i}", cpu=1, memory="1Gi") for i in range(30)], profile=ties(TieBreak.NAME, default_profile())
    )
    assert set(Counter(done.placements.values()).values()) == {10}


@pytest.mark.parametrize("weight", [1, 100, 1_000_000])
def test_a_score_outweighs_every_lot_however_heavy_it_is(weight: int) -> None:
    plugins = tuple(EnabledPlugin(name, weight) for name in ("ImageLocality", "NodeResourcesFit"))
    nodes = [a_node(f"n{i}", images={"app:1": 2 << 30} if i == 7 else {}) for i in range(10)]
    done = run(nodes, [a_pod("p", cpu=1, memory="1Gi")], profile=Profile("heavy", plugins))
    (placement,) = done.decisions["p"].placements
    assert placement.node == "n7"
    assert placement.total == sum(score.weight * score.normalized for score in placement.scores)
