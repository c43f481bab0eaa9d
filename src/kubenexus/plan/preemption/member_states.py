"""What members of a gang find on nodes while victims go and come back, by amounts of resources."""

from typing import Any

import numpy as np

from kubenexus.plan.preemption.gang_trials import Placements
from kubenexus.plan.preemption.least_cover import Element
from kubenexus.plan.preemption.member_counts import MemberCounts
from kubenexus.plan.preemption.victim_pool import VictimPool
from kubenexus.state.nodes import NodeColumns


class NodeState:
    """How many members of the one class each node of a domain takes, while victims go and come back."""

    def __init__(self, counts: MemberCounts, inside: Any) -> None:
        self._counts, self._inside = counts, inside
        self._need = counts.needs[0][:, 0].tolist()
        self._asked = [i for i, need in enumerate(self._need) if need > 0]
        self._free: dict[int, list[float]] = {}
        self._versions: dict[int, int] = {}
        self.members = np.where(inside, counts.by_row(counts.free.now)[0], 0)
        self._most = self.members
        self._could = np.where(inside, counts.by_row(counts.free.with_victims())[0], 0) > 0
        self.total = float(self.members.sum())

    def limit(self, most: Any) -> None:
        """Sets how many members each node takes at most, with all victims gone that are considered."""
        self._most = most

    def may_gain(self, row: int) -> bool:
        """Whether more victims could make room for another member."""
        return bool(self._members(row) < self._most.item(row))

    def version(self, row: int) -> int:
        return self._versions.get(row, 0)

    def lacking(self, row: int) -> tuple[float, ...]:
        """Returns what one more member lacks on a node."""
        free, more = self._row(row), self._members(row) + 1
        return tuple([need * more - amount for need, amount in zip(self._need, free, strict=True)])

    def free_up(self, pool: VictimPool, element: Element, sign: int = 1) -> None:
        """Removes the victims of an element, or puts them back (-1)."""
        for index in element.pods:
            row = int(pool.rows[index])
            if not self._inside[row]:
                continue
            free, before = self._row(row), self._members(row)
            for i, amount in enumerate(self._counts.free.of_victim(index)):
                free[i] += sign * amount
            self.total += self._members(row) - before
            self._versions[row] = self.version(row) + 1

    def can_put_back(self, pool: VictimPool, element: Element) -> bool:
        """Puts an element back if enough members still fit. Returns whether it did."""
        self.free_up(pool, element, -1)
        if self.total >= self._counts.minimum:
            return True
        self.free_up(pool, element)
        return False

    def _row(self, row: int) -> list[float]:
        if row not in self._free:
            self._free[row] = self._counts.free.now[:, row].tolist()
        return self._free[row]

    def _members(self, row: int) -> int:
        if not self._could[row]:
            return 0
        free = self._row(row)
        times = min([free[i] // self._need[i] for i in self._asked], default=self._counts.per_row[0])
        return int(min(max(times, 0), self._counts.per_row[0]))


class PlacedState:
    """What members that were placed need on their nodes, while victims come back."""

    def __init__(
        self,
        counts: MemberCounts,
        columns: NodeColumns,
        pool: VictimPool,
        elements: list[Element],
        placements: Placements,
    ) -> None:
        self._counts = counts
        self._left: dict[int, list[float]] = {}
        for placement in placements:
            row = columns.row_of[placement.node]
            if row not in self._left:
                self._left[row] = counts.free.now[:, row].tolist()
            asked = {"pods": 1, **dict(placement.footprint.amounts)}
            for i, name in enumerate(counts.free.names):
                self._left[row][i] -= asked.get(name, 0)
        for element in elements:
            self._move(pool, element, 1)

    def can_put_back(self, pool: VictimPool, element: Element) -> bool:
        """Puts an element back if the members beside it still have what they need. Returns whether it did."""
        self._move(pool, element, -1)
        rows = {int(pool.rows[index]) for index in element.pods}
        if all(amount >= 0 for row in rows for amount in self._left.get(row, ())):
            return True
        self._move(pool, element, 1)
        return False

    def _move(self, pool: VictimPool, element: Element, sign: int) -> None:
        for index in element.pods:
            left = self._left.get(int(pool.rows[index]))
            if left is not None:
                for i, amount in enumerate(self._counts.free.of_victim(index)):
                    left[i] += sign * amount
