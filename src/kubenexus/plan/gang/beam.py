"""All members of several crews on the rows, or nobody: row by row, following the most promising ways to have come so
far.

How far one has come is how many of each crew are left, whoever sits where: rows that are alike, and orders that come to
the same, are one state. A state is hopeless if the members that are left are worth more than the rows to come can earn,
by any price list of the `outlook`; how close it is to that says how promising it is.
"""

from typing import Any, Final

import numpy as np

from kubenexus.plan.gang.ground import Budget, Ground, Plan
from kubenexus.plan.gang.outlook import STATES, Outlook, pressing
from kubenexus.plan.gang.packings import Share

WIDTHS: Final = (16, 64, 256)  # states that are followed, in one attempt after the other
_ROW, _STATE = 4000, 12  # cells that a look at a row costs, and a state with each of the row's ways

Trail = list[tuple[Any, Any]]  # for each row: from which state each state came, and by which way


class Beam:
    """For one ground. `sure`: when nothing was found, there is nothing."""

    def __init__(self, ground: Ground, budget: Budget) -> None:
        self._ground, self._budget, self.sure = ground, budget, False

    def place(self) -> Plan | None:
        """Every member, or None."""
        usable = np.flatnonzero(self._ground.room.any(axis=0))
        if not self._ground.suffices():
            self.sure = True
            return None
        if not self._budget.spend(2 * _ROW * len(usable)):
            return None
        self._outlook = Outlook(self._ground, usable, self._budget)
        if self._outlook.hopeless:
            self.sure = self._outlook.complete
            return None
        for width in WIDTHS:
            trail = self._follow(width)
            if trail is not None:
                return self._traced(trail)
            if self.sure or self._budget.left < 0:
                break
        return None

    def _follow(self, width: int) -> Trail | None:
        """The last state of the trail has nobody left."""
        left, trail, lost = self._ground.counts[None, :], Trail(), not self._outlook.complete
        for step, sort in enumerate(self._outlook.sorts.tolist()):
            ways = self._outlook.ways[sort]
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
        """One of each; the one where nobody is left comes first."""
        key, span = np.zeros(len(after), np.int64), 1
        for i, count in enumerate(self._ground.counts.tolist()):
            key, span = key + after[:, i] * span, span * (count + 1) % STATES
        return np.unique(key, return_index=True)[1]

    def _promising(self, after: Any, which: Any, step: int, width: int) -> tuple[Any, bool]:
        """Those that are not hopeless, and of these so many; whether some were dropped."""
        worth, caps = after[which] @ self._outlook.prices, self._outlook.caps[step]
        fair = (worth <= caps).all(axis=1)
        which, worth = which[fair], worth[fair]
        if len(which) <= width:
            return which, False
        return which[np.argsort(pressing(worth, caps), kind="stable")[:width]], True

    def _traced(self, trail: Trail) -> Plan:
        """Back from the end to who sits where, then on from the beginning: the last seats of a way may stay empty."""
        outlook, at, taken = self._outlook, 0, list[tuple[int, list[int]]]()
        for step in reversed(range(len(trail))):
            origins, by = trail[step]
            column, way = int(outlook.columns[step]), outlook.ways[outlook.sorts[step]][int(by[at])]
            taken.append((int(self._ground.rows[column]), way.tolist()))
            at = int(origins[at])
        left, shares = self._ground.counts.tolist(), list[list[Share]]([] for _ in range(self._ground.crews))
        for row, numbers in reversed(taken):
            for i, most in enumerate(numbers):
                number = min(most, left[i])
                left[i] -= number
                shares[i] += [Share(row, number)] if number else []
        return Plan(shares)
