"""Raw scores of any range become 0..100 over the nodes where the pod can run."""

from typing import Any

import numpy as np
import pytest

from kubenexus.framework.extension_points import (
    AS_IS,
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    Depends,
    Normalize,
    custom_normalize,
)
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import Run
from tests.framework.rules import label_number, scheduled, scoring


def spread_out(raw: Any, extremes: tuple[int, ...]) -> Any:
    low, high = extremes
    return 100 * (raw - low) // (high - low) if high > low else raw * 0 + 50


MIN_MAX = custom_normalize(lambda raw: (int(raw.min(initial=2**40)), int(raw.max(initial=-(2**40)))), spread_out)

CASES = [
    pytest.param(AS_IS, [0, 40, 100], [0, 40, 100], id="KEEP: as they are"),
    pytest.param(HIGHER_IS_BETTER, [5, 10, 20], [25, 50, 100], id="UP: the largest becomes 100"),
    pytest.param(HIGHER_IS_BETTER, [0, 1, 3], [0, 33, 100], id="UP: rounded down"),
    pytest.param(HIGHER_IS_BETTER, [0, 0, 0], [0, 0, 0], id="UP: nothing stays nothing"),
    pytest.param(HIGHER_IS_BETTER, [7, 7, 7], [100, 100, 100], id="UP: all the same, all the best"),
    pytest.param(LOWER_IS_BETTER, [0, 5, 10], [100, 50, 0], id="DOWN: 0 becomes 100, the largest 0"),
    pytest.param(LOWER_IS_BETTER, [5, 10, 20], [75, 50, 0], id="DOWN: the smallest need not become 100"),
    pytest.param(LOWER_IS_BETTER, [0, 0, 0], [100, 100, 100], id="DOWN: no faults at all"),
    pytest.param(LOWER_IS_BETTER, [0, 1, 3], [100, 67, 0], id="DOWN: the quotient is rounded, not the result"),
    pytest.param(MIN_MAX, [-10, 0, 10], [0, 50, 100], id="own: negative scores too"),
    pytest.param(MIN_MAX, [3, 3, 3], [50, 50, 50], id="own: its own answer to a draw"),
    pytest.param(HIGHER_IS_BETTER, [1, 2**40, 2**50], [0, 0, 100], id="UP: large numbers are exact"),
]


def normalized(done: Run) -> dict[str, int]:
    """What the rule gave to the nodes: of the chosen one we are told."""
    return {
        placement.node: score.normalized
        for decision in done.decisions.values()
        for placement in decision.placements
        for score in placement.scores
        if score.plugin == "Rule"
    }


@pytest.mark.parametrize(("normalize", "raw", "expected"), CASES)
def test_normalised_by_hand(normalize: Normalize, raw: list[int], expected: list[int]) -> None:
    column = np.array(raw, np.int64)
    if normalize.extremes is None or normalize.apply is None:
        assert raw == expected
        return
    extremes = normalize.extremes(column)
    assert normalize.apply(column, extremes).tolist() == expected
    assert [int(normalize.apply(number, extremes)) for number in raw] == expected, "and one number at a time"


@pytest.mark.parametrize(("normalize", "raw", "expected"), CASES)
def test_the_best_node_is_chosen_and_told_its_score(normalize: Normalize, raw: list[int], expected: list[int]) -> None:
    nodes = [a_node(f"n{i}", labels={"points": str(points)}) for i, points in enumerate(raw)]
    done = scheduled(scoring(label_number, normalize, Depends.NODE), nodes, [a_pod("web")])
    chosen = done.placements["web"]
    assert expected[int(chosen[1:])] == max(expected)
    assert normalized(done) == {chosen: max(expected)}


@pytest.mark.parametrize(
    ("normalize", "expected"),
    [
        pytest.param(HIGHER_IS_BETTER, "n1", id="UP"),
        pytest.param(LOWER_IS_BETTER, "n0", id="DOWN"),
        pytest.param(MIN_MAX, "n1", id="own"),
    ],
)
def test_nodes_where_the_pod_cannot_run_do_not_stretch_the_scale(normalize: Normalize, expected: str) -> None:
    nodes = [
        a_node("n0", labels={"points": "5"}),
        a_node("n1", labels={"points": "10"}),
        a_node("full", cpu=0, labels={"points": "1000000"}),
    ]
    done = scheduled(scoring(label_number, normalize, Depends.NODE), nodes, [a_pod("web", cpu=1)])
    assert done.placements == {"web": expected}
    assert normalized(done)[expected] == (50 if normalize is LOWER_IS_BETTER else 100)


def test_an_int_stands_for_the_same_score_everywhere() -> None:
    done = scheduled(scoring(lambda nodes: 7), [a_node("n1"), a_node("n2")], [a_pod("web")])
    assert set(normalized(done).values()) == {100}


def test_the_scale_moves_with_what_is_placed() -> None:
    """`used` grows where pods land; each is normalised over the nodes as they are then."""
    rule = scoring(lambda nodes: nodes.used("pods"), LOWER_IS_BETTER)
    done = scheduled(rule, [a_node("n1"), a_node("n2")], [a_pod(f"web-{i}") for i in range(6)])
    assert sorted(done.placements.values()) == ["n1"] * 3 + ["n2"] * 3


def test_a_score_that_was_the_same_everywhere_may_part_later() -> None:
    def answer(nodes: Nodes) -> Any:
        used = nodes.used("pods")
        return 3 if not used.any() else used

    done = scheduled(
        scoring(answer, LOWER_IS_BETTER), [a_node("n1"), a_node("n2")], [a_pod(f"web-{i}") for i in range(4)]
    )
    assert len(done.placements) == 4
