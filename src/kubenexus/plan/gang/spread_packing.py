"""Members of one crew evenly over the domains of a label: how many rows hold, where they go, and what they lack."""

from typing import Any

import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.framework.decision import DomainShortage
from kubenexus.framework.member_constraints import MemberConstraint
from kubenexus.plan.gang.fill import fill_fewest_rows
from kubenexus.plan.gang.packing import RowShare, sum_by_domain
from kubenexus.state.topology import TopologyDomains

_TALL = 1 << 40  # higher than any domain


class SpreadPacking:
    """Domains of a label may differ by so many members; see `MemberConstraint`."""

    def __init__(
        self, capacity: IntColumn, rank: IntColumn, domains: TopologyDomains, constraint: MemberConstraint
    ) -> None:
        self._rank, self._domains, self._constraint = rank, domains, constraint
        self._capacity = np.where(domains.codes == 0, 0, capacity)
        self._counts = np.zeros(domains.size, np.int64)
        self._present = np.zeros(domains.size, np.bool_)
        known = min(domains.size, len(constraint.counts))
        self._counts[:known], self._present[:known] = constraint.counts[:known], constraint.present[:known]
        self.level = domains.level
        self.constraint = f"spread over {domains.level} by at most {constraint.skew}"

    def suits(self, level: TopologyDomains, most: int) -> bool:
        """Whether a table of the level's domains by the label's would be small enough."""
        return level.size * self._domains.size <= most

    def capacity(self, level: TopologyDomains) -> IntColumn:
        sums = np.zeros((level.size, self._domains.size), np.int64)
        inside = np.flatnonzero(self._capacity)
        np.add.at(sums, (level.codes[inside], self._domains.codes[inside]), self._capacity[inside])
        found: IntColumn = np.array([int(self._reach(each).sum()) for each in sums], np.int64)
        found[0] = 0
        return found

    def fill(self, rows: Any, members: int, groups: Any) -> list[RowShare]:
        codes, shares = self._domains.codes[rows], []
        poured = self._poured(sum_by_domain(codes, self._capacity[rows], len(self._counts)), members)
        for code in np.flatnonzero(poured).tolist():
            there = rows[codes == code]
            found = fill_fewest_rows(there, self._capacity[there], self._rank[there], int(poured[code]), groups[there])
            shares += [RowShare(*each) for each in found]
        return shares

    def _reach(self, capacity: IntColumn) -> IntColumn:
        """How many each domain can get: none rises above the lowest that the emptiest can come to, and the skew."""
        heights = (self._counts + capacity)[self._present]
        least = 0 if self._constraint.floor or not len(heights) else int(heights.min())
        top: IntColumn = np.clip(least + self._constraint.skew - self._counts, 0, capacity)
        return top

    def _poured(self, capacity: IntColumn, members: int) -> IntColumn:
        """Like water: the emptiest domains first, up to one level."""
        most = self._reach(capacity)
        low, high = 0, int((self._counts + most).max(initial=0))
        while low < high:
            level = (low + high) // 2
            if int(np.clip(level - self._counts, 0, most).sum()) >= members:
                high = level
            else:
                low = level + 1
        poured: IntColumn = np.clip(low - self._counts, 0, most)
        above = int(poured.sum()) - members
        for code in np.flatnonzero((poured > 0) & (self._counts + poured == low))[:above].tolist():
            poured[code] -= 1
        return poured

    # --- what is missing ------------------------------------------------------------------------------------------

    def missing_capacity(self, rows: Any, members: int) -> tuple[DomainShortage, ...]:
        """The least room that would have to come to which domains for so many members on these rows, which do not hold
        them; empty if none would do: domains that have no row among these stay as they are."""
        codes, size = self._domains.codes[rows], len(self._counts)
        capacity = sum_by_domain(codes, self._capacity[rows], size)
        inside = self._present & (np.bincount(codes, minlength=size) > 0)
        more = self._least_more(capacity, inside, members)
        named = [DomainShortage(self._domains.names[code], int(more[code])) for code in np.flatnonzero(more).tolist()]
        return tuple(sorted(named, key=lambda shortage: shortage.domain))

    def _least_more(self, capacity: IntColumn, inside: Any, members: int) -> IntColumn:
        """A domain that all others have to wait for gets the first of it. Up to the lowest height from which enough
        members fit, each step asks for no more in sum than the one before; beyond that it does."""
        low, high = self._heights(capacity, inside, members)
        while low < high:
            height = (low + high) // 2
            if self._fits_at(height, capacity, inside) >= members:
                high = height
            else:
                low = height + 1
        tried = [self._more_at(height, capacity, inside, members) for height in (low - 1, low)]
        possible = [more for more in tried if more is not None]
        return min(possible, key=lambda more: int(more.sum()), default=np.zeros_like(capacity))

    def _heights(self, capacity: IntColumn, inside: Any, members: int) -> tuple[int, int]:
        """Between which heights the emptiest domain may come to be."""
        if self._constraint.floor:
            return 0, 0
        least = int((self._counts + capacity)[self._present].min(initial=_TALL))
        fixed = int(self._counts[self._present & ~inside].min(initial=_TALL))
        return least, max(least, min(fixed, int(self._counts.max(initial=0)) + members))

    def _fits_at(self, height: int, capacity: IntColumn, inside: Any) -> int:
        """How many members, with all domains raised to that height."""
        return int(
            np.clip(
                height + self._constraint.skew - self._counts, 0, capacity + self._raised(height, capacity, inside)
            ).sum()
        )

    def _raised(self, height: int, capacity: IntColumn, inside: Any) -> IntColumn:
        raised: IntColumn = np.where(inside, np.maximum(height - self._counts - capacity, 0), 0)
        return raised if not self._constraint.floor else np.zeros_like(capacity)

    def _more_at(self, height: int, capacity: IntColumn, inside: Any, members: int) -> IntColumn | None:
        """What each domain needs for so many members if the emptiest comes to that height; None: no room would do."""
        more = self._raised(height, capacity, inside)
        behind = members - self._fits_at(height, capacity, inside)
        top = np.where(inside, np.maximum(height + self._constraint.skew - self._counts - capacity - more, 0), 0)
        for code in sorted(np.flatnonzero(top).tolist(), key=lambda code: (not more[code], self._domains.names[code])):
            taken = min(max(behind, 0), int(top[code]))
            more[code] += taken
            behind -= taken
        return more if behind <= 0 else None
