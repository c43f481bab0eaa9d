"""Upper bounds for the beam search, from prices of members.

At any prices no row earns more than with its best filling, so all rows together never hold members that are worth more
than the sum of these. Prices are integers, so their sums are exact on every machine.
"""

import math
from typing import Any, Final

import numpy as np

from kubenexus.plan.gang.multi_class.packing_problem import PackingProblem, WorkBudget
from kubenexus.plan.gang.multi_class.row_fillings import RowFillings, row_fillings

_WAYS = 128  # fillings of a row that the search follows
_LISTS = 16  # price lists that are computed, besides those by resource and by class
_DEAR = 1 << 20  # the price of all members together
STATES: Final = (1 << 61) - 1  # states that have distinct keys


class SearchBounds:
    """The rows in the order in which the search fills them, their fillings, and the bounds.

    columns, sorts  the columns of the problem, and the kind of each: equal rows are one kind
    ways            the fillings of each kind
    prices          one column for each price list
    caps[n]         what the rows from the n-th on can earn at most
    complete        there are no other fillings
    hopeless        all rows together cannot earn what the members are worth, or the budget is spent
    """

    def __init__(self, problem: PackingProblem, usable: Any, budget: WorkBudget) -> None:
        alike = np.concatenate([problem.free, problem.capacity])[:, usable]
        _, first, sorts, often = np.unique(alike, axis=1, return_index=True, return_inverse=True, return_counts=True)
        found = [row_fillings(problem, int(usable[column]), budget) for column in first]
        self.complete, self.hopeless = False, True
        if budget.left < 0:
            return
        self.prices = _prices(problem, found, often)
        best: Any = np.array([(each.counts @ self.prices).max(axis=0) for each in found])
        spare = often @ best - problem.counts @ self.prices
        self.hopeless = bool((spare < 0).any())
        found = [self._worthwhile(each, most, np.maximum(spare, 0)) for each, most in zip(found, best, strict=True)]
        self.ways = [each.counts for each in found]
        self.complete = all(each.complete for each in found) and math.prod((problem.counts + 1).tolist()) < STATES
        # Rows with few fillings first: those with many can take what is left.
        sorts = sorts.reshape(-1)
        order = np.lexsort((sorts, np.array([len(each) for each in self.ways])[sorts]))
        self.columns, self.sorts = usable[order], sorts[order]
        earned = best[self.sorts][::-1].cumsum(axis=0)[::-1]
        self.caps: Any = np.concatenate([earned, np.zeros((1, best.shape[1]))])

    def _worthwhile(self, found: RowFillings, best: Any, spare: Any) -> RowFillings:
        """Drops fillings that lose more than all rows together can spare."""
        lost = best - found.counts @ self.prices
        fair = np.flatnonzero((lost <= spare).all(axis=1))
        if len(fair) <= _WAYS:
            return RowFillings(found.counts[fair], found.complete)
        least = np.argsort(tightness(lost[fair], spare), kind="stable")[:_WAYS]
        return RowFillings(found.counts[fair[least]], complete=False)


def _prices(problem: PackingProblem, found: list[RowFillings], often: Any) -> Any:
    """Returns price lists: by each resource, by each class alone, and some at which the rows earn little.

    For the latter, classes that the best fillings place too few of become dearer, and the others cheaper.
    """
    counts, worth = problem.counts, np.ones(problem.class_count)
    by_resource = problem.demand[:, problem.demand.any(axis=0)].astype(np.float64)
    lists = [*by_resource.T, *np.eye(problem.class_count)]
    for _ in range(_LISTS):
        prices = worth / counts
        lists.append(prices)
        taken = often @ np.array([each.counts[int((each.counts @ prices).argmax())] for each in found])
        worth *= np.sqrt(np.clip(counts / np.maximum(taken, 1), 0.25, 4.0))
        worth /= worth.sum()
    return np.array([np.round(each * (_DEAR / (each @ counts))) for each in lists]).T


def tightness(amounts: Any, limits: Any) -> Any:
    """Returns how close each line comes to the limits, as one number: the closest limit counts most."""
    near = amounts / np.maximum(limits, 1.0)
    for _ in range(4):
        near *= near
    return (near * _DEAR).astype(np.int64).sum(axis=1)
