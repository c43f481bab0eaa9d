"""Beam search: places all members of several classes, row by row, or none. It follows the most promising states.

A state is how many members of each class are left, no matter which rows the others are on. So equal rows, and orders
with the same result, are one state. A state is hopeless if the members left are worth more than the remaining rows can
earn, by any price list of `SearchBounds`. The further a state is from that limit, the more promising it is.
"""

from typing import Any, Final

import numpy as np

from kubenexus.plan.gang.multi_class.packing_problem import PackingPlan, PackingProblem, WorkBudget
from kubenexus.plan.gang.multi_class.search_bounds import STATES, SearchBounds, tightness
from kubenexus.plan.gang.packing import RowShare

WIDTHS: Final = (16, 64, 256)  # states that are followed, in one try after the other
_ROW, _STATE = 4000, 12  # cells for a row, and for a state with each filling of the row

Trail = list[tuple[Any, Any]]  # for each row: the previous state of each state, and its filling


class BeamSearch:
    """The search for one problem. `sure`: if it found nothing, there is no solution."""

    def __init__(self, problem: PackingProblem, budget: WorkBudget) -> None:
        self._problem, self._budget, self.sure = problem, budget, False

    def place(self) -> PackingPlan | None:
        """Returns a plan with every member, or None."""
        usable = np.flatnonzero(self._problem.capacity.any(axis=0))
        if not self._problem.suffices():
            self.sure = True
            return None
        if not self._budget.spend(2 * _ROW * len(usable)):
            return None
        self._bounds = SearchBounds(self._problem, usable, self._budget)
        if self._bounds.hopeless:
            self.sure = self._bounds.complete
            return None
        for width in WIDTHS:
            trail = self._follow(width)
            if trail is not None:
                return self._traced(trail)
            if self.sure or self._budget.left < 0:
                break
        return None

    def _follow(self, width: int) -> Trail | None:
        """Returns a trail to a state with no members left, or None."""
        left, trail, lost = self._problem.counts[None, :], Trail(), not self._bounds.complete
        for step, sort in enumerate(self._bounds.sorts.tolist()):
            ways = self._bounds.ways[sort]
            if not self._budget.spend(_ROW + _STATE * len(left) * len(ways)):
                return None
            after = np.maximum(left[:, None, :] - ways[None, :, :], 0).reshape(-1, left.shape[1])
            which = self._distinct(after)
            if not after[which[0]].any():
                return [*trail, np.divmod(which[:1], len(ways))]
            which, dropped = self._promising(after, which, step + 1, width)
            lost |= dropped
            if not len(which):
                break
            left = after[which]
            trail.append(np.divmod(which, len(ways)))
        self.sure = not lost
        return None

    def _distinct(self, after: Any) -> Any:
        """Returns one index of each distinct state; the state with no members left comes first."""
        key, span = np.zeros(len(after), np.int64), 1
        for i, count in enumerate(self._problem.counts.tolist()):
            key, span = key + after[:, i] * span, span * (count + 1) % STATES
        return np.unique(key, return_index=True)[1]

    def _promising(self, after: Any, which: Any, step: int, width: int) -> tuple[Any, bool]:
        """Returns the best `width` states that are not hopeless, and whether others were dropped."""
        worth, caps = after[which] @ self._bounds.prices, self._bounds.caps[step]
        fair = (worth <= caps).all(axis=1)
        which, worth = which[fair], worth[fair]
        if len(which) <= width:
            return which, False
        return which[np.argsort(tightness(worth, caps), kind="stable")[:width]], True

    def _traced(self, trail: Trail) -> PackingPlan:
        """Returns the plan of a trail, traced from its end. The last fillings may have more members than are left."""
        bounds, at, taken = self._bounds, 0, list[tuple[int, list[int]]]()
        for step in reversed(range(len(trail))):
            origins, by = trail[step]
            column, way = int(bounds.columns[step]), bounds.ways[bounds.sorts[step]][int(by[at])]
            taken.append((int(self._problem.rows[column]), way.tolist()))
            at = int(origins[at])
        left, shares = self._problem.counts.tolist(), list[list[RowShare]]([] for _ in range(self._problem.class_count))
        for row, numbers in reversed(taken):
            for i, most in enumerate(numbers):
                number = min(most, left[i])
                left[i] -= number
                shares[i] += [RowShare(row, number)] if number else []
        return PackingPlan(shares)
