"""The packing problem of several classes: what is free on each row, and what the members request."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.plan.gang.packing import RowShare

BUDGET = 3_000_000  # cells that one decision may compute, about 100 ms


class PackingPlan(msgspec.Struct, gc=False):
    """The shares of each class, in the order of the classes. `exhausted`: there may be a better plan."""

    shares: list[list[RowShare]]
    exhausted: bool = False

    @property
    def members(self) -> int:
        return sum(share.members for shares in self.shares for share in shares)


class WorkBudget(msgspec.Struct, gc=False):
    """The budget of a decision, in cells of tables. So decisions end in time, and equally on every machine."""

    left: int = BUDGET
    kept: int = 0

    def spend(self, cells: int) -> bool:
        """Spends cells, and returns whether there were enough."""
        self.left -= cells
        return self.left >= 0

    def keep(self, cells: int) -> None:
        """Sets cells aside for later, or as many as are left."""
        self.kept = min(cells, max(self.left, 0))
        self.left -= self.kept

    def release(self) -> None:
        """Returns what was set aside to the budget. An overdraft does not reduce it."""
        self.left, self.kept = max(self.left, 0) + self.kept if self.kept else self.left, 0


class PackingProblem(msgspec.Struct, gc=False):
    """Matrices with a column for each of `rows`.

    free       the free amount of each resource
    capacity   how many members of each class fit if no other class is placed
    demand     what a member of each class requests
    conflicts  which classes cannot share a row
    counts     the members of each class
    """

    rows: IntColumn
    free: Any
    capacity: Any
    demand: Any
    conflicts: Any
    counts: IntColumn

    @property
    def class_count(self) -> int:
        return len(self.counts)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def suffices(self) -> bool:
        """Whether the rows have enough of each resource for all members together: a necessary condition."""
        use = np.clip(self.free, 0, self.demand.T @ self.capacity)
        each = self.capacity.sum(axis=1) >= self.counts
        return bool(each.all() and (use.sum(axis=1) >= self.counts @ self.demand).all())


def fits_count(free: Any, demand: IntColumn) -> IntColumn:
    """Returns how many times the demand fits into the free amounts of each row."""
    asked = np.flatnonzero(demand)
    often: IntColumn = np.maximum(free[asked], 0) // demand[asked][:, None]
    least: IntColumn = often.min(axis=0)
    return least
