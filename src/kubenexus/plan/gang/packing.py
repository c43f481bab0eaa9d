"""How many members of one class a set of rows holds, and on which rows they go.

With capacity as the only limit, or with at most one member in each domain of a label. `spread_packing` spreads them
evenly over the domains of a label.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.plan.gang.fill import fill_fewest_rows
from kubenexus.state.topology import TopologyDomains


class RowShare(NamedTuple):
    """A number of members on one row."""

    row: int
    members: int


class Packing(Protocol):
    constraint: str  # what limits the members besides capacity, for users

    def capacity(self, level: TopologyDomains) -> IntColumn:
        """Returns how many members each domain of a level takes; 0 for code 0, which is no domain."""

    def fill(self, rows: Any, members: int, groups: Any) -> list[RowShare]:
        """Places members on the fewest of these rows, which hold them. Where there is a choice, it touches few of the
        `groups`, which are codes by row."""


class UnconstrainedPacking:
    """Capacity is the only limit."""

    constraint = ""

    def __init__(self, capacity: IntColumn, rank: IntColumn) -> None:
        self._capacity, self._rank = capacity, rank

    def capacity(self, level: TopologyDomains) -> IntColumn:
        if level.is_node_level:
            return np.concatenate([_NONE, self._capacity])
        return sum_by_domain(level.codes, self._capacity, level.size)

    def fill(self, rows: Any, members: int, groups: Any) -> list[RowShare]:
        return [
            RowShare(*each)
            for each in fill_fewest_rows(rows, self._capacity[rows], self._rank[rows], members, groups[rows])
        ]


class AntiAffinityPacking:
    """At most one member in each domain of a label; nodes without the label are independent of each other."""

    def __init__(self, capacity: IntColumn, rank: IntColumn, domains: TopologyDomains) -> None:
        self._capacity, self._rank, self._domains = capacity, rank, domains
        self.constraint = f"at most one member for each {domains.level}"

    def capacity(self, level: TopologyDomains) -> IntColumn:
        inside = (self._capacity > 0) & (self._domains.codes != 0)
        pairs = np.unique(level.codes[inside] * self._domains.size + self._domains.codes[inside])
        free = sum_by_domain(level.codes, np.where(self._domains.codes == 0, self._capacity, 0), level.size)
        apart = np.bincount(pairs // self._domains.size, minlength=level.size)
        apart[0] = 0
        return free + apart

    def fill(self, rows: Any, members: int, groups: Any) -> list[RowShare]:
        codes = self._domains.codes[rows]
        capacity = np.where(codes == 0, self._capacity[rows], 0)
        order = np.flatnonzero((codes != 0) & (self._capacity[rows] > 0))
        order = order[np.argsort(-self._rank[rows][order], kind="stable")]
        _, first = np.unique(codes[order], return_index=True)
        capacity[order[first]] = 1  # the best row of each domain takes its member
        return [RowShare(*each) for each in fill_fewest_rows(rows, capacity, self._rank[rows], members, groups[rows])]


class CombinedCapacity:
    """Several classes. The sum of what each could place alone is an upper bound for all together."""

    constraint = ""

    def __init__(self, capacities: list[IntColumn], counts: list[int]) -> None:
        self._capacities, self._counts = capacities, counts
        self._shares: Any = None

    def capacity(self, level: TopologyDomains) -> IntColumn:
        total: IntColumn = np.zeros(level.size, np.int64)
        for capacity, count in zip(self._capacities, self._counts, strict=True):
            total += np.minimum(UnconstrainedPacking(capacity, capacity).capacity(level), count)
        return total

    def loose(self, level: TopologyDomains) -> Any:
        """Returns how large each domain is for the classes; the smallest is the tightest.

        Summed over the classes first, so that each level reads the rows once. Rounded, so that the order of rows has no
        effect on the sum.
        """
        if self._shares is None:
            self._shares = sum(capacity / count for capacity, count in zip(self._capacities, self._counts, strict=True))
        if level.is_node_level:
            return np.concatenate([_NONE, self._shares])
        return np.round(np.bincount(level.codes, weights=self._shares, minlength=level.size), 6)


_NONE = np.zeros(1, np.int64)


def sum_by_domain(codes: Any, capacity: IntColumn, size: int) -> IntColumn:
    """Returns the sums by code, with 0 for code 0, which is no domain."""
    sums: IntColumn = np.bincount(codes, weights=capacity, minlength=size).astype(np.int64)
    sums[0] = 0
    return sums
