"""Rows that several crews share: what is free on each, and what the members ask for."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.plan.gang.packing import RowShare

BUDGET = 3_000_000  # cells that one decision may fill


class PackingPlan(msgspec.Struct, gc=False):
    """Shares for each crew, in the crews' order. `exhausted`: there may be better ones."""

    shares: list[list[RowShare]]
    exhausted: bool = False

    @property
    def members(self) -> int:
        return sum(share.members for shares in self.shares for share in shares)


class WorkBudget(msgspec.Struct, gc=False):
    """Work is counted in cells of tables, so that a decision ends in time and the same one ends alike everywhere."""

    left: int = BUDGET
    kept: int = 0

    def spend(self, cells: int) -> bool:
        """Whether there was enough left."""
        self.left -= cells
        return self.left >= 0

    def keep(self, cells: int) -> None:
        """Set so many aside for later, or as many as there are."""
        self.kept = min(cells, max(self.left, 0))
        self.left -= self.kept

    def release(self) -> None:
        """What was set aside may be spent now. What was overdrawn is not taken off it."""
        self.left, self.kept = max(self.left, 0) + self.kept if self.kept else self.left, 0


class PackingProblem(msgspec.Struct, gc=False):
    """Matrices with a column for each of `rows`: `free` of each resource, and `room` for members of each crew, were it
    alone. `demand` is what a member of each crew asks for, `conflicts` who cannot be on one row, `counts` how many
    there are."""

    rows: IntColumn
    free: Any
    room: Any
    demand: Any
    conflicts: Any
    counts: IntColumn

    @property
    def crews(self) -> int:
        return len(self.counts)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def suffices(self) -> bool:
        """Whether the rows have as much of everything as all members ask for: if not, no more needs to be asked."""
        use = np.clip(self.free, 0, self.demand.T @ self.room)
        each = self.room.sum(axis=1) >= self.counts
        return bool(each.all() and (use.sum(axis=1) >= self.counts @ self.demand).all())


def fits_count(free: Any, demand: IntColumn) -> IntColumn:
    """How often a demand goes into what is free, for each row."""
    asked = np.flatnonzero(demand)
    often: IntColumn = np.maximum(free[asked], 0) // demand[asked][:, None]
    least: IntColumn = often.min(axis=0)
    return least
