"""Spreads members of one class over the domains of a label: how many rows hold, where they go, and what is missing."""

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
    """Packing with a limit on how many pods the domains of a label may differ by (`MemberConstraint`)."""

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
        """Whether a table of the level's domains by the label's domains has at most `most` cells."""
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
        for code in self._by_name(poured > 0):
            there = rows[codes == code]
            found = fill_fewest_rows(there, self._capacity[there], self._rank[there], int(poured[code]), groups[there])
            shares += [RowShare(*each) for each in found]
        return shares

    def _reach(self, capacity: IntColumn) -> IntColumn:
        """Returns how many members each domain can get: up to the skew above the height that the emptiest can reach."""
        heights = (self._counts + capacity)[self._present]
        least = 0 if self._constraint.floor or not len(heights) else int(heights.min())
        top: IntColumn = np.clip(least + self._constraint.skew - self._counts, 0, capacity)
        return top

    def _poured(self, capacity: IntColumn, members: int) -> IntColumn:
        """Distributes members like water: into the emptiest domains first, up to one height."""
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
        for code in self._by_name((poured > 0) & (self._counts + poured == low))[:above]:
            poured[code] -= 1
        return poured

    def _by_name(self, among: Any) -> list[int]:
        """Returns these domains in the order of their names: codes depend on the order in which nodes came."""
        return sorted(np.flatnonzero(among).tolist(), key=self._domains.names.__getitem__)

    # --- missing capacity -----------------------------------------------------------------------------------------

    def missing_capacity(self, rows: Any, members: int) -> tuple[DomainShortage, ...]:
        """Returns the least additional capacity, by domain, with which these rows would hold so many members.

        Empty if no capacity would do: domains without a row among these cannot change.
        """
        codes, size = self._domains.codes[rows], len(self._counts)
        capacity = sum_by_domain(codes, self._capacity[rows], size)
        inside = self._present & (np.bincount(codes, minlength=size) > 0)
        more = self._least_more(capacity, inside, members)
        named = [DomainShortage(self._domains.names[code], int(more[code])) for code in np.flatnonzero(more).tolist()]
        return tuple(sorted(named, key=lambda shortage: shortage.domain))

    def _least_more(self, capacity: IntColumn, inside: Any, members: int) -> IntColumn:
        """Returns the least additional capacity of each domain.

        Domains that limit all others get theirs first. Up to the lowest height at which enough members fit, each step
        needs no more in sum than the one before; beyond it each needs more.
        """
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
        """Returns the lowest and the highest height that the emptiest domain may reach."""
        if self._constraint.floor:
            return 0, 0
        least = int((self._counts + capacity)[self._present].min(initial=_TALL))
        fixed = int(self._counts[self._present & ~inside].min(initial=_TALL))
        return least, max(least, min(fixed, int(self._counts.max(initial=0)) + members))

    def _fits_at(self, height: int, capacity: IntColumn, inside: Any) -> int:
        """Returns how many members fit with all domains raised to that height."""
        return int(
            np.clip(
                height + self._constraint.skew - self._counts, 0, capacity + self._raised(height, capacity, inside)
            ).sum()
        )

    def _raised(self, height: int, capacity: IntColumn, inside: Any) -> IntColumn:
        raised: IntColumn = np.where(inside, np.maximum(height - self._counts - capacity, 0), 0)
        return raised if not self._constraint.floor else np.zeros_like(capacity)

    def _more_at(self, height: int, capacity: IntColumn, inside: Any, members: int) -> IntColumn | None:
        """Returns what each domain needs if the emptiest reaches that height; None: no capacity would do."""
        more = self._raised(height, capacity, inside)
        behind = members - self._fits_at(height, capacity, inside)
        top = np.where(inside, np.maximum(height + self._constraint.skew - self._counts - capacity - more, 0), 0)
        for code in sorted(np.flatnonzero(top).tolist(), key=lambda code: (not more[code], self._domains.names[code])):
            taken = min(max(behind, 0), int(top[code]))
            more[code] += taken
            behind -= taken
        return more if behind <= 0 else None
