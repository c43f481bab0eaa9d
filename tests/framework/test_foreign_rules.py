"""A rule from outside may be wrong in every way; the attempt then fails and names it, and the scheduler goes on."""

import math
from typing import Any

import numpy as np
import pytest

from kubenexus.api.core import Pod
from kubenexus.framework.decision import Decision
from kubenexus.framework.extension_points import (
    AS_IS,
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    Depends,
    Normalize,
    custom_normalize,
)
from kubenexus.framework.job import Assignment, Job
from kubenexus.framework.plugin_results import call_plugin
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plan.decide import Planner, commit
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.framework.rules import Rule, filtering, label_number, lineup_with, scheduled, scoring

TWO = [a_node("n1", labels={"points": "1"}), a_node("n2", labels={"points": "2"})]


def decided(rule: type[Any], pod: Pod | None = None, ledger: Ledger | None = None) -> Decision:
    planner = Planner(lineup_with(rule))
    return planner.decide(Job.of(pod or a_pod("web", cpu=1)), (ledger or a_ledger(TWO)).snapshot(), 0.0)


def assert_blamed(decision: Decision, *words: str) -> None:
    assert decision.code is Code.ERROR
    assert decision.placements == ()
    for word in ("Rule", *words):
        assert word in decision.sentence()


# --- scores --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "raw"),
    [
        pytest.param([0.9, 2.9], 2, id="2.9 counts as 2"),
        pytest.param([0.2, 0.99999999], 0, id="0.99 counts as 0"),
        pytest.param([1e9 + 0.5, 0.0], 10**9, id="large"),
        pytest.param([True, False], 1, id="truth is 1"),
        pytest.param(np.array([1, 7], np.uint8), 7, id="small integers"),
        pytest.param(np.array([1.5, 7.5], np.float32), 7, id="single precision"),
    ],
)
def test_fractions_are_cut_off_once_at_the_border(scores: Any, raw: int) -> None:
    decision = decided(scoring(lambda nodes: np.asarray(scores)[nodes.where], on=Depends.NODE))
    assert decision.placed
    assert [score.raw for score in decision.placements[0].scores if score.plugin == "Rule"] in ([raw], [int(scores[0])])


def test_fractions_are_cut_off_in_repairs_as_in_the_beginning() -> None:
    """One row at a time as placements touch them, and all rows afresh: the same numbers."""
    rule = scoring(lambda nodes: nodes.used("pods") * 1.7)
    done = scheduled(rule, TWO, [a_pod(f"web-{i}") for i in range(5)])
    afresh = Planner(lineup_with(rule)).decide(Job.of(a_pod("one more")), done.ledger.snapshot(), 0.0)
    assert done.planner.decide(Job.of(a_pod("one more")), done.ledger.snapshot(), 0.0) == afresh


BAD_SCORES = [
    pytest.param(HIGHER_IS_BETTER, [1.0, math.nan], id="NaN"),
    pytest.param(HIGHER_IS_BETTER, [1.0, math.inf], id="infinite"),
    pytest.param(AS_IS, [math.nan, math.nan], id="NaN, kept"),
    pytest.param(AS_IS, [50, 101], id="KEEP, above 100"),
    pytest.param(AS_IS, [50, -1], id="KEEP, below 0"),
    pytest.param(AS_IS, [50.0, 100.5 + 1], id="KEEP, above 100 after truncation"),
    pytest.param(HIGHER_IS_BETTER, [-5, 10], id="UP, a negative score would become negative points"),
    pytest.param(LOWER_IS_BETTER, [-5, 10], id="DOWN, a negative score would become more than 100"),
    pytest.param(custom_normalize(lambda raw: (), lambda raw, _: raw + 1000), [1, 2], id="own, out of range"),
    pytest.param(HIGHER_IS_BETTER, [1e300, 1.0], id="a float that no int64 holds"),
    pytest.param(HIGHER_IS_BETTER, [2**62, 1], id="UP, so large that 100 times it leaves int64"),
    pytest.param(HIGHER_IS_BETTER, [10**30, 1], id="an integer that no int64 holds"),
    pytest.param(HIGHER_IS_BETTER, [1], id="a row too few"),
    pytest.param(HIGHER_IS_BETTER, [1, 2, 3], id="a row too many"),
    pytest.param(HIGHER_IS_BETTER, [[1, 2], [3, 4]], id="a table"),
    pytest.param(HIGHER_IS_BETTER, ["a", "b"], id="words"),
    pytest.param(HIGHER_IS_BETTER, [1j, 2j], id="complex numbers"),
    pytest.param(HIGHER_IS_BETTER, None, id="nothing"),
    pytest.param(HIGHER_IS_BETTER, "high", id="a word"),
    pytest.param(HIGHER_IS_BETTER, {}, id="a dict"),
]


@pytest.mark.parametrize(("normalize", "scores"), BAD_SCORES)
def test_a_score_that_is_none_fails_the_attempt_and_names_the_rule(normalize: Normalize, scores: Any) -> None:
    assert_blamed(decided(scoring(lambda nodes: scores, normalize)))


@pytest.mark.parametrize("scores", [np.int64(5), np.float64(5.5), np.array(5), 5.5, True], ids=repr)
def test_any_single_number_stands_for_all_rows(scores: Any) -> None:
    decision = decided(scoring(lambda nodes: scores))
    assert decision.placed, decision.sentence()
    assert [score.raw for score in decision.placements[0].scores if score.plugin == "Rule"] == [int(scores)]


@pytest.mark.parametrize("normalize", [HIGHER_IS_BETTER, LOWER_IS_BETTER, AS_IS], ids=["UP", "DOWN", "KEEP"])
def test_a_node_where_the_pod_cannot_run_may_score_as_it_likes(normalize: Normalize) -> None:
    """Upstream scores only the nodes that passed the filters, so a rule may expect nothing sensible of the others."""
    nodes = [*TWO, a_node("full", cpu=0, labels={"points": "5000"})]
    done = scheduled(scoring(label_number, normalize, Depends.NODE), nodes, [a_pod("web", cpu=1)])
    assert done.placements == {"web": "n1" if normalize is LOWER_IS_BETTER else "n2"}


# --- exceptions ----------------------------------------------------------------------------------------------------


def explode(*_: Any) -> Any:
    raise ZeroDivisionError("half a node")


class ExplodesInPrepare(Rule):
    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Any:
        return explode()

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        """Lets everybody in."""


class ExplodesInPins(Rule):
    def node_names(self, pod: Pod) -> Any:
        return explode()


class ExplodesInAssign(Rule):
    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        return explode()


class WrongAssignment(Rule):
    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Any:
        return {"gpu": 1}


@pytest.mark.parametrize(
    ("rule", "pod"),
    [
        pytest.param(filtering(explode), a_pod("web"), id="filter"),
        pytest.param(scoring(explode), a_pod("web"), id="score"),
        pytest.param(ExplodesInPrepare, a_pod("web"), id="pre_filter"),
        pytest.param(ExplodesInPins, a_pod("web", requires=["zone Exists"]), id="node_names"),
        pytest.param(ExplodesInAssign, a_pod("web"), id="assign"),
        pytest.param(
            scoring(lambda n: n.used("pods"), custom_normalize(explode, explode)), a_pod("web"), id="extremes"
        ),
        pytest.param(
            scoring(lambda n: n.used("pods"), custom_normalize(lambda r: (1,), explode)), a_pod("web"), id="normalize"
        ),
        pytest.param(WrongAssignment, a_pod("web"), id="an assignment that is none"),
        pytest.param(filtering(lambda n, v: v.reject(np.array([True]), Reason("x"))), a_pod("web"), id="a short mask"),
    ],
)
def test_an_exception_becomes_a_decision_that_names_the_rule(rule: type[Any], pod: Pod) -> None:
    nodes = [a_node(f"n{i}", labels={"zone": "a"}) for i in range(3)]
    assert_blamed(decided(rule, pod, a_ledger(nodes)))


def test_the_exceptions_own_words_are_told() -> None:
    assert_blamed(decided(scoring(explode)), "half a node")
    assert_blamed(decided(filtering(explode)), "half a node")


def test_a_gang_with_a_rule_that_fails_is_not_placed_in_part_and_leaves_no_trace() -> None:
    """A filter that looks at usage and does not say how many there is room for is asked again after each member."""

    def second_time(nodes: Nodes, verdict: NodeVerdict) -> None:
        if nodes.columns.resources.used.any():
            raise RuntimeError("not twice")

    ledger = a_ledger(TWO)
    before = ledger.nodes.resources.used.tobytes()
    gang = Job("default/gang", tuple(a_pod(f"m{i}", cpu=1) for i in range(3)), minimum=1)
    decision = Planner(lineup_with(filtering(second_time))).decide(gang, ledger.snapshot(), 0.0)
    assert_blamed(decision, "not twice")
    assert ledger.nodes.resources.used.tobytes() == before


# --- going on ------------------------------------------------------------------------------------------------------


def broken_by_label(nodes: Nodes) -> Any:
    points = label_number(nodes)
    return np.where(points == 13, np.nan, points)


def test_when_what_broke_the_rule_is_gone_the_same_class_is_placed_again() -> None:
    ledger = a_ledger([*TWO, a_node("n13", labels={"points": "13"})])
    planner = Planner(lineup_with(scoring(broken_by_label, on=Depends.NODE)))
    job = Job.of(a_pod("web", cpu=1))
    assert_blamed(planner.decide(job, ledger.snapshot(), 0.0))
    ledger.upsert_node(a_node("n13", labels={"points": "3"}))
    assert planner.decide(job, ledger.snapshot(), 0.0).placements[0].node == "n13"


@pytest.mark.parametrize("normalize", [HIGHER_IS_BETTER, AS_IS], ids=["UP", "KEEP"])
def test_a_rule_that_breaks_later_fails_then_and_not_before(normalize: Normalize) -> None:
    """The class is known and only a row is repaired: the failure must not get lost on that way."""
    rule = scoring(lambda n: np.where(n.used("pods") > 0, np.nan, 1.0), normalize)
    ledger, planner = a_ledger(TWO), Planner(lineup_with(rule))
    first = Job.of(a_pod("web-0", cpu=1))
    decision = planner.decide(first, ledger.snapshot(), 0.0)
    assert decision.placed
    commit(decision, first, ledger, 0.0)
    assert_blamed(planner.decide(Job.of(a_pod("web-1", cpu=1)), ledger.snapshot(), 0.0))
    ledger.remove_pod("default/web-0")
    assert planner.decide(Job.of(a_pod("web-1", cpu=1)), ledger.snapshot(), 0.0).placed


def test_other_classes_go_on_while_one_fails() -> None:
    class OnlyBigPods(Rule):
        normalize = HIGHER_IS_BETTER

        def score(self, pod: PodClass, nodes: Nodes, job: Any) -> Any:
            return explode() if dict(pod.demand.amounts).get("cpu", 0) > 1000 else nodes.used("pods")

    done = scheduled(OnlyBigPods, TWO, [a_pod("small-1", cpu=1), a_pod("big", cpu=2), a_pod("small-2", cpu=1)])
    assert set(done.placements) == {"small-1", "small-2"}
    assert_blamed(done.decisions["big"])


def test_a_skip_of_some_rows_only_is_a_failure_too() -> None:
    rule = scoring(lambda n: Skip() if n.width == 1 else n.used("pods"))
    ledger, planner = a_ledger(TWO), Planner(lineup_with(rule))
    for i in range(2):
        job = Job.of(a_pod(f"web-{i}", cpu=1))
        decision = planner.decide(job, ledger.snapshot(), 0.0)
        if decision.placed:
            commit(decision, job, ledger, 0.0)
        else:
            assert_blamed(decision)


def test_with_one_feasible_node_nobody_is_asked_to_score() -> None:
    """As upstream: a rule that cannot score does not keep a pod from the only node it fits."""
    ledger = a_ledger([a_node("n1"), a_node("full", cpu=0)])
    decision = decided(scoring(explode), ledger=ledger)
    assert [placement.node for placement in decision.placements] == ["n1"]


def fullness(nodes: Nodes) -> Any:
    """What a user would write first: it is not a number where a node has no cpu, or is no more."""
    with np.errstate(all="ignore"):
        return 100 * nodes.used("cpu") / nodes.alloc("cpu")


@pytest.mark.parametrize("normalize", [HIGHER_IS_BETTER, AS_IS], ids=["UP", "KEEP"])
def test_a_ratio_is_no_number_only_where_nobody_looks(normalize: Normalize) -> None:
    """On the row of a deleted node, and on a node without cpu, where the pod cannot run anyway."""
    ledger = a_ledger([a_node("gone"), *TWO, a_node("no cpu", cpu=0)], [a_pod("busy", cpu=4, node="n2")])
    ledger.remove_node("gone")
    decision = decided(scoring(fullness, normalize), ledger=ledger)
    assert [placement.node for placement in decision.placements] == ["n2"], decision.sentence()


def test_an_interrupt_is_the_users_and_not_a_failure_of_the_rule() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_plugin(Rule({}), interrupted)
