"""Several crews on a few rows, all of them or nobody: the search against trying everything."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.plan.gang.multi_class.beam_search import BeamSearch
from kubenexus.plan.gang.multi_class.exact_packing import ExactPacker
from kubenexus.plan.gang.multi_class.packing_problem import PackingPlan, PackingProblem, WorkBudget


@st.composite
def problems(draw: st.DrawFn) -> PackingProblem:
    rows, crews, resources = draw(st.integers(1, 4)), draw(st.integers(2, 3)), draw(st.integers(1, 2))

    def matrix(lines: int, columns: int, least: int, most: int) -> Any:
        return np.array([[draw(st.integers(least, most)) for _ in range(columns)] for _ in range(lines)], np.int64)

    demand = matrix(crews, resources, 0, 4)
    demand[:, 0] += 1
    counts = matrix(1, crews, 1, 4)[0]
    clash = np.zeros((crews, crews), np.bool_)
    if draw(st.booleans()):
        clash[0, 1] = clash[1, 0] = True
    room = np.minimum(matrix(crews, rows, 0, 4), counts[:, None])
    return PackingProblem(np.arange(rows) * 10, matrix(resources, rows, -1, 9), room, demand, clash, counts)


def fits(problem: PackingProblem, column: int, way: tuple[int, ...]) -> bool:
    asked = np.array(way) @ problem.demand
    clashing = any(problem.conflicts[i, j] for i, j in itertools.combinations(np.flatnonzero(way).tolist(), 2))
    enough = ((asked <= problem.free[:, column]) | (asked == 0)).all()
    return bool(enough and not clashing and (np.array(way) <= problem.capacity[:, column]).all())


def most(problem: PackingProblem) -> int:
    """How many members can be placed at all."""

    @functools.cache
    def from_here(column: int, left: tuple[int, ...]) -> int:
        if column == len(problem.rows):
            return 0
        ways = itertools.product(*(range(number + 1) for number in left))
        return max(
            sum(way) + from_here(column + 1, tuple(a - b for a, b in zip(left, way, strict=True)))
            for way in ways
            if fits(problem, column, way)
        )

    return from_here(0, tuple(problem.counts.tolist()))


def agreed(problem: PackingProblem, plan: PackingPlan) -> None:
    """The plan keeps to what there is."""
    for column, row in enumerate(problem.rows.tolist()):
        way = [sum(share.members for share in shares if share.row == row) for shares in plan.shares]
        assert fits(problem, column, tuple(way))


@given(problem=problems())
def test_all_are_placed_exactly_when_they_can_be(problem: PackingProblem) -> None:
    search = BeamSearch(problem, WorkBudget())
    plan = search.place()
    assert (plan is not None) == (most(problem) == problem.total)
    if plan is None:
        assert search.sure, "everything was tried"
    else:
        agreed(problem, plan)
        assert [sum(share.members for share in shares) for shares in plan.shares] == problem.counts.tolist()


@given(problem=problems())
def test_the_table_finds_the_most(problem: PackingProblem) -> None:
    plan = ExactPacker(problem, WorkBudget()).most()
    assert plan is not None
    agreed(problem, plan)
    assert plan.members == most(problem)


def puzzling() -> PackingProblem:
    """Forty rows that are just filled: half of them by three members of one crew, the others by one of each."""
    demand = np.array([[4], [3], [5]])
    counts = np.array([80, 20, 20])
    free = np.full((1, 40), 12)
    room = np.minimum(free // demand, counts[:, None])
    return PackingProblem(np.arange(40), free, room, demand, np.zeros((3, 3), np.bool_), counts)


def test_the_same_ground_is_filled_alike_each_time() -> None:
    plans = [BeamSearch(puzzling(), WorkBudget()).place() for _ in range(3)]
    assert plans[0] is not None
    assert plans[0] == plans[1] == plans[2]


def test_who_runs_out_of_budget_is_not_sure() -> None:
    search = BeamSearch(puzzling(), WorkBudget(400_000))
    assert search.place() is None
    assert not search.sure


def crowd(kinds: int, members: int) -> PackingProblem:
    """So many of each kind, on fifty rows that hold a few of them."""
    demand = np.array([[100 * (kind + 1), 1] for kind in range(kinds)])
    free = np.stack([np.full(50, 8000), np.full(50, 110)])
    counts = np.full(kinds, members)
    room = np.minimum(free[0] // demand[:, :1], counts[:, None])
    return PackingProblem(np.arange(50), free, room, demand, np.zeros((kinds, kinds), np.bool_), counts)


@pytest.mark.parametrize(("kinds", "members"), [(4, 1000), (5, 200), (6, 60), (8, 10)])
def test_a_table_that_no_memory_holds_is_never_made(kinds: int, members: int) -> None:
    assert ExactPacker(crowd(kinds, members), WorkBudget()).most() is None
