"""The ways to fill one row with members of several classes, so that no further member fits."""

from typing import Any, NamedTuple

import numpy as np

from kubenexus.plan.gang.multi_class.packing_problem import PackingProblem, WorkBudget, fits_count

_MAX_FILLINGS = 4096  # fillings of one row that are kept
_CELLS = 8  # numbers of a filling that cost as much as one cell


class RowFillings(NamedTuple):
    """The members of each class, one line for each filling. `complete`: there are no other fillings."""

    counts: Any
    complete: bool


def row_fillings(problem: PackingProblem, column: int, budget: WorkBudget) -> RowFillings:
    """Returns the fillings of a row that leave no capacity for a further member; none once the budget is spent."""
    free, capacity = problem.free[:, column], problem.capacity[:, column]
    found, complete = np.zeros((1, problem.class_count), np.int64), True
    for i in range(problem.class_count):
        most = np.minimum(_more(problem, free, found, i), capacity[i])
        if i < problem.class_count - 1:
            found = _each_number(found, i, most)
        else:
            found[:, i] = most
        complete &= len(found) <= _MAX_FILLINGS
        found = _some(found)
        if not budget.spend(2 * len(found) * problem.class_count // _CELLS):
            return RowFillings(found[:0], complete=False)
    for i in range(problem.class_count):
        found = found[(found[:, i] >= capacity[i]) | (_more(problem, free, found, i) == 0)]
    return RowFillings(found, complete)


def _more(problem: PackingProblem, free: Any, found: Any, i: int) -> Any:
    """Returns how many more members of a class fit beside each filling."""
    left = free[:, None] - (found @ problem.demand).T
    more = fits_count(left, problem.demand[i])
    more[(found[:, problem.conflicts[i]] > 0).any(axis=1)] = 0
    return more


def _each_number(found: Any, i: int, most: Any) -> Any:
    """Returns every filling with 0, 1, and so on up to `most` members of the class."""
    numbers = most + 1
    which = np.repeat(np.arange(len(found)), numbers)
    found = found[which]
    found[:, i] = np.arange(len(which)) - (np.cumsum(numbers) - numbers)[which]
    return found


def _some(found: Any) -> Any:
    """Returns at most _MOST fillings, at equal distances, since neighbours differ least."""
    return (
        found if len(found) <= _MAX_FILLINGS else found[np.linspace(0, len(found) - 1, _MAX_FILLINGS).astype(np.int64)]
    )
