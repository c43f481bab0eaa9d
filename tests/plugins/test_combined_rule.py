"""What the two resource rules say together is what each of them says alone."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.extension_points import CombinedRule
from kubenexus.framework.job import SINGLE_POD_VIEW, Job
from kubenexus.framework.profile import EnabledPlugin, Profile, ProfilePlugins
from kubenexus.framework.verdict import NodeVerdict, ReasonTable
from kubenexus.plan.decide import Planner
from kubenexus.plugins import BUILT_IN, default_profile, profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes, OneNode
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import CheckedCluster, a_ledger
from kubenexus.testing.strategies import clusters, pods

LINEUP = profile_plugins()
AMOUNTS = st.sampled_from([None, 0, 1, "100m", "999m", 1, 2, 3, "3500m", 4])
BYTES = st.sampled_from([None, 0, 1, "1Ki", "64Mi", "200Mi", "1Gi", "1500Mi", "3Gi", 10**9 + 7])


def together() -> CombinedRule:
    return LINEUP.combined[0].rule


def one_by_one(pod: Any, view: Nodes) -> list[list[int]] | None:
    """What each rule scores, row by row; None if one of them has something against any of these rows."""
    rules: list[Any] = [plugin for plugin in LINEUP.plugins if plugin.name in together().names]
    verdict = NodeVerdict(ReasonTable())
    for rule in rules:
        if hasattr(rule, "filter"):
            rule.filter(pod, view, verdict)
    if np.any(verdict.row_bits if view.single else verdict.bits):
        return None
    return [np.broadcast_to(np.asarray(rule.score(pod, view, SINGLE_POD_VIEW)), view.width).tolist() for rule in rules]


def check(pod: Pod, ledger: Ledger) -> int:
    """How many of the questions were answered together."""
    columns, told = ledger.nodes, 0
    pod_class = ClassCache(LINEUP).make_class(pod, columns)
    for rows in (None, np.arange(columns.size), np.arange(columns.size)[::-2].copy()):
        some = together().rows(pod_class, Nodes(columns, rows)) if columns.size else None
        if some is not None:
            assert [each.tolist() for each in some] == one_by_one(pod_class, Nodes(columns, rows))
            told += 1
    for row in range(columns.size):
        one = together().row(pod_class, OneNode(columns, row))
        if one is not None:
            assert [[each] for each in one] == one_by_one(pod_class, OneNode(columns, row))
            assert [[each] for each in one] == one_by_one(pod_class, Nodes(columns, np.array([row])))
            told += 1
    return told


@given(
    sizes=st.lists(
        st.tuples(
            st.sampled_from([1, "1500m", 4, 64]), st.sampled_from(["256Mi", "4Gi", 10**10 + 1]), st.integers(1, 4)
        ),
        min_size=1,
        max_size=5,
    ),
    running=st.lists(st.tuples(AMOUNTS, BYTES, st.integers(0, 4)), max_size=8),
    asked=st.tuples(AMOUNTS, BYTES),
)
def test_ordinary_pods_on_ordinary_nodes(sizes: Any, running: Any, asked: Any) -> None:
    nodes = [a_node(f"n{i}", cpu=cpu, memory=memory, pods=pods) for i, (cpu, memory, pods) in enumerate(sizes)]
    there = [
        a_pod(f"r{i}", node=f"n{where % len(nodes)}", cpu=cpu, memory=memory)
        for i, (cpu, memory, where) in enumerate(running)
    ]
    check(a_pod("asking", cpu=asked[0], memory=asked[1]), a_ledger(nodes, there))


@given(clusters(), pods())
def test_any_pods_on_any_nodes(cluster: CheckedCluster, pod: Pod) -> None:
    check(pod, cluster.ledger)


@pytest.mark.parametrize(
    ("pod", "answered"),
    [
        pytest.param({"cpu": 1, "memory": "1Gi"}, 6, id="the ordinary pod"),
        pytest.param({"cpu": 1}, 6, id="asks for cpu alone"),
        pytest.param({"cpu": 8, "memory": "1Gi"}, 2, id="fits some nodes only: each is asked, and the two it fits on"),
        pytest.param({"cpu": 1, "memory": "1Gi", "gpu": 1}, 2, id="asks for a GPU: the two nodes that have one"),
        pytest.param({"cpu": 1, "memory": "1Gi", "gpu": 2}, 0, id="asks for more GPUs than any node has"),
        pytest.param({}, 0, id="asks for nothing: balance is no matter of such pods"),
    ],
)
def test_who_is_answered_together(pod: Any, answered: int) -> None:
    nodes = [a_node("n1", cpu=4), a_node("n2", cpu=8, gpu=1), a_node("n3", cpu=8, gpu=1)]
    assert check(a_pod("asking", **pod), a_ledger(nodes)) == answered


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}}, id="full nodes first"),
        pytest.param(
            {"NodeResourcesFit": {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 3}]}}}, id="cpu alone"
        ),
        pytest.param(
            {"NodeResourcesBalancedAllocation": {"resources": [{"name": "cpu"}, {"name": "nvidia.com/gpu"}]}},
            id="balance of something else",
        ),
    ],
)
def test_rules_that_are_configured_otherwise_answer_alone(args: dict[str, Any]) -> None:
    enabled = tuple(
        EnabledPlugin(each.name, each.weight, args.get(each.name, {})) for each in default_profile().plugins
    )
    assert ProfilePlugins(Profile("other", enabled), BUILT_IN).combined == []


@pytest.mark.parametrize("point", ["filter", "score"])
def test_nobody_answers_for_a_rule_that_is_off(point: str) -> None:
    """One of the two is off at a point: the other is asked alone there, and scores and reasons are its own."""
    names = tuple(each.name for each in default_profile().plugins if each.name != "NodeResourcesFit")
    profile = Profile("other", default_profile().plugins, points={point: names})
    ledger = a_ledger([a_node("n1", cpu=4), a_node("n2", cpu=8)])
    planner = Planner(ProfilePlugins(profile, BUILT_IN))
    for i in range(3):  # the first asks about all rows, the others about the one that changed
        decision = planner.decide(Job.of(a_pod(f"p{i}", cpu=1, memory="1Gi")), ledger.snapshot(), 0.0)
        assert ("NodeResourcesFit" in {each.plugin for each in decision.placements[0].scores}) == (point == "filter")
        ledger.upsert_pod(a_pod(f"p{i}", cpu=1, memory="1Gi", node=decision.placements[0].node))


def test_who_fails_together_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the attempt fails, not the scheduler."""
    planner = Planner(profile_plugins())
    monkeypatch.setattr(planner.profile_plugins.combined[0].rule, "rows", lambda pod, nodes: 1 // 0)
    decision = planner.decide(Job.of(a_pod("p", cpu=1)), a_ledger([a_node("n1")]).snapshot(), 0.0)
    assert not decision.placed
    assert "NodeResourcesBalancedAllocation" in decision.error
    assert "ZeroDivisionError" in decision.error
