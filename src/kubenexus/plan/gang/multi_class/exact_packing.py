"""Exact packing: the most members of several classes that the rows hold.

Dynamic programming, row by row: for each number of members of the smaller classes, the most members of the largest
class that fit beside them.
"""

import math
from typing import Any

import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.plan.gang.multi_class.packing_problem import PackingPlan, PackingProblem, WorkBudget, fits_count
from kubenexus.plan.gang.packing import RowShare

_STEP = 400  # cells for a step, besides those of its table


class ExactPacker:
    """The maximum for one problem."""

    def __init__(self, problem: PackingProblem, budget: WorkBudget) -> None:
        self._problem, self._budget = problem, budget
        *self._small, self._large = np.argsort(problem.counts, kind="stable").tolist()
        self._known: dict[bytes, tuple[Any, Any]] = {}

    def most(self) -> PackingPlan | None:
        """Returns a plan with the most members, or None if that would exceed the budget."""
        problem, small, large = self._problem, self._small, self._large
        if not self._affords(problem.counts) or not all(self._affords(capacity) for capacity in problem.capacity.T):
            return None
        most: Any = np.full(tuple(problem.counts[small] + 1), -1, np.int64)
        most[(0,) * len(small)] = 0
        steps: list[tuple[int, Any, Any, Any]] = []
        for column in self._usable():
            patterns, gains = self._patterns(column)
            if not self._budget.spend(len(patterns) * (most.size + _STEP)):
                return None
            most, chosen = _extended(most, patterns, gains, int(problem.counts[large]))
            steps.append((column, patterns, gains, chosen))
            if most[tuple(problem.counts[small])] == problem.counts[large]:
                break
        return self._traced(most, steps)

    def _affords(self, numbers: IntColumn) -> bool:
        """Whether a table of all combinations up to these numbers is within the budget.

        Checked before the table is allocated: with many classes it would exceed the memory.
        """
        combinations: int = math.prod(numbers[i].item() + 1 for i in self._small)
        return combinations <= self._budget.left

    def _usable(self) -> list[int]:
        """Returns the columns with capacity, the largest first."""
        capacity = self._problem.capacity.sum(axis=0)
        found: list[int] = np.argsort(-capacity, kind="stable")[: int(np.count_nonzero(capacity))].tolist()
        return found

    def _patterns(self, column: int) -> tuple[Any, Any]:
        """Returns the numbers of members of the smaller classes that fit on a row, and for each how many of the largest
        class fit beside them. Equal rows are computed once."""
        free, capacity = self._problem.free[:, column], self._problem.capacity[:, column]
        key = free.tobytes() + capacity.tobytes()
        if key not in self._known:
            self._known[key] = self._looked_at(free, capacity)
        return self._known[key]

    def _looked_at(self, free: Any, capacity: Any) -> tuple[Any, Any]:
        problem, small, large = self._problem, self._small, self._large
        ranges = [np.arange(capacity[i] + 1) for i in small]
        patterns = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(small))
        asked = (patterns @ problem.demand[small]).T
        left = free[:, None] - asked
        fits = ((left >= 0) | (asked == 0)).all(axis=0) & ~self._clashing(patterns)
        patterns, left = patterns[fits], left[:, fits]
        gains = np.minimum(fits_count(left, problem.demand[large]), capacity[large])
        gains[(patterns[:, problem.conflicts[large][small]] > 0).any(axis=1)] = 0
        return patterns, gains

    def _clashing(self, patterns: Any) -> Any:
        bad, small = np.zeros(len(patterns), np.bool_), self._small
        for a in range(len(small)):
            for b in range(a):
                if self._problem.conflicts[small[a], small[b]]:
                    bad |= (patterns[:, a] > 0) & (patterns[:, b] > 0)
        return bad

    def _traced(self, most: Any, steps: list[Any]) -> PackingPlan:
        """Returns the plan, traced from the best end."""
        totals = np.where(most >= 0, most + sum(np.indices(most.shape)), -1)
        at = np.unravel_index(int(totals.argmax()), most.shape)
        shares: list[list[RowShare]] = [[] for _ in range(self._problem.class_count)]
        left = int(most[at])
        for column, patterns, gains, chosen in reversed(steps):
            row, pick = int(self._problem.rows[column]), int(chosen[at])
            pattern, gain = patterns[pick], min(int(gains[pick]), left)
            for i, number in zip(self._small, pattern.tolist(), strict=True):
                shares[i] += [RowShare(row, number)] if number else []
            shares[self._large] += [RowShare(row, gain)] if gain else []
            left -= gain
            at = tuple(np.subtract(at, pattern).tolist())
        return PackingPlan(shares)


def _extended(most: Any, patterns: Any, gains: Any, cap: int) -> tuple[Any, Any]:
    """Returns the table with one row more: the most of the large class, and the pattern that gives it."""
    best, chosen = np.full(most.shape, -1, np.int64), np.zeros(most.shape, np.int32)
    for k, (pattern, gain) in enumerate(zip(patterns.tolist(), gains.tolist(), strict=True)):
        to = tuple(slice(n, None) for n in pattern)
        source = most[tuple(slice(0, size - n) for n, size in zip(pattern, most.shape, strict=True))]
        value = np.where(source >= 0, np.minimum(source + gain, cap), -1)
        better = value > best[to]
        best[to][better] = value[better]
        chosen[to][better] = k
    return best, chosen
