"""The ways to fill one row with members of several crews, so that nobody more finds room."""

from typing import Any, NamedTuple

import numpy as np

from kubenexus.plan.gang.multi_class.packing_problem import PackingProblem, WorkBudget, fits_count

_MOST = 4096  # ways of one row that are looked at
_CELLS = 8  # of a way, that are looked at in the time of one of a table


class RowFillings(NamedTuple):
    """How many members of each crew, a line for each way. `complete`: there are no others."""

    counts: Any
    complete: bool


def row_fillings(problem: PackingProblem, column: int, budget: WorkBudget) -> RowFillings:
    """Only full rows: whoever needs less there leaves seats empty. None at all once the budget is spent."""
    free, room = problem.free[:, column], problem.room[:, column]
    found, complete = np.zeros((1, problem.crews), np.int64), True
    for i in range(problem.crews):
        most = np.minimum(_more(problem, free, found, i), room[i])
        if i < problem.crews - 1:
            found = _each_number(found, i, most)
        else:
            found[:, i] = most
        complete &= len(found) <= _MOST
        found = _some(found)
        if not budget.spend(2 * len(found) * problem.crews // _CELLS):
            return RowFillings(found[:0], complete=False)
    for i in range(problem.crews):
        found = found[(found[:, i] >= room[i]) | (_more(problem, free, found, i) == 0)]
    return RowFillings(found, complete)


def _more(problem: PackingProblem, free: Any, found: Any, i: int) -> Any:
    """How many more of a crew each way leaves room for."""
    left = free[:, None] - (found @ problem.demand).T
    more = fits_count(left, problem.demand[i])
    more[(found[:, problem.conflicts[i]] > 0).any(axis=1)] = 0
    return more


def _each_number(found: Any, i: int, most: Any) -> Any:
    """Every way with nobody of the crew, with one, and so on up to the most."""
    numbers = most + 1
    which = np.repeat(np.arange(len(found)), numbers)
    found = found[which]
    found[:, i] = np.arange(len(which)) - (np.cumsum(numbers) - numbers)[which]
    return found


def _some(found: Any) -> Any:
    """Not too many, at equal distances: neighbours differ least."""
    return found if len(found) <= _MOST else found[np.linspace(0, len(found) - 1, _MOST).astype(np.int64)]
