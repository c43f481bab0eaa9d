"""Members of one crew evenly over the domains of a label: how many rows hold, where they go, and what they lack."""

from typing import Any

import numpy as np

from kubenexus.base.numbers import IntColumn
from kubenexus.framework.bonds import Bond
from kubenexus.framework.decision import Spot
from kubenexus.plan.gang.axes import Axis
from kubenexus.plan.gang.fill import fewest
from kubenexus.plan.gang.packings import Share, by_code

_TALL = 1 << 40  # higher than any domain


class Even:
    """Domains of a label may differ by so many members; see `Bond`."""

    def __init__(self, room: IntColumn, rank: IntColumn, domains: Axis, bond: Bond) -> None:
        self._rank, self._domains, self._bond = rank, domains, bond
        self._room = np.where(domains.codes == 0, 0, room)
        self._counts = np.zeros(domains.size, np.int64)
        self._present = np.zeros(domains.size, np.bool_)
        known = min(domains.size, len(bond.counts))
        self._counts[:known], self._present[:known] = bond.counts[:known], bond.present[:known]
        self.level = domains.level
        self.constraint = f"spread over {domains.level} by at most {bond.skew}"

    def suits(self, axis: Axis, most: int) -> bool:
        """Whether a table of the level's domains by the label's would be small enough."""
        return axis.size * self._domains.size <= most

    def holds(self, axis: Axis) -> IntColumn:
        sums = np.zeros((axis.size, self._domains.size), np.int64)
        inside = np.flatnonzero(self._room)
        np.add.at(sums, (axis.codes[inside], self._domains.codes[inside]), self._room[inside])
        found: IntColumn = np.array([int(self._reach(each).sum()) for each in sums], np.int64)
        found[0] = 0
        return found

    def fill(self, rows: Any, members: int, groups: Any) -> list[Share]:
        codes, shares = self._domains.codes[rows], []
        poured = self._poured(by_code(codes, self._room[rows], len(self._counts)), members)
        for code in np.flatnonzero(poured).tolist():
            there = rows[codes == code]
            found = fewest(there, self._room[there], self._rank[there], int(poured[code]), groups[there])
            shares += [Share(*each) for each in found]
        return shares

    def _reach(self, room: IntColumn) -> IntColumn:
        """How many each domain can get: none rises above the lowest that the emptiest can come to, and the skew."""
        heights = (self._counts + room)[self._present]
        least = 0 if self._bond.floor or not len(heights) else int(heights.min())
        top: IntColumn = np.clip(least + self._bond.skew - self._counts, 0, room)
        return top

    def _poured(self, room: IntColumn, members: int) -> IntColumn:
        """Like water: the emptiest domains first, up to one level."""
        most = self._reach(room)
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

    def wanting(self, rows: Any, members: int) -> tuple[Spot, ...]:
        """The least room that would have to come to which domains for so many members on these rows, which do not hold
        them; empty if none would do: domains that have no row among these stay as they are."""
        codes, size = self._domains.codes[rows], len(self._counts)
        room = by_code(codes, self._room[rows], size)
        inside = self._present & (np.bincount(codes, minlength=size) > 0)
        more = self._least_more(room, inside, members)
        named = [Spot(self._domains.names[code], int(more[code])) for code in np.flatnonzero(more).tolist()]
        return tuple(sorted(named, key=lambda spot: spot.domain))

    def _least_more(self, room: IntColumn, inside: Any, members: int) -> IntColumn:
        """A domain that all others have to wait for gets the first of it. Up to the lowest height from which enough
        members fit, each step asks for no more in sum than the one before; beyond that it does."""
        low, high = self._heights(room, inside, members)
        while low < high:
            height = (low + high) // 2
            if self._fits_at(height, room, inside) >= members:
                high = height
            else:
                low = height + 1
        tried = [self._more_at(height, room, inside, members) for height in (low - 1, low)]
        possible = [more for more in tried if more is not None]
        return min(possible, key=lambda more: int(more.sum()), default=np.zeros_like(room))

    def _heights(self, room: IntColumn, inside: Any, members: int) -> tuple[int, int]:
        """Between which heights the emptiest domain may come to be."""
        if self._bond.floor:
            return 0, 0
        least = int((self._counts + room)[self._present].min(initial=_TALL))
        fixed = int(self._counts[self._present & ~inside].min(initial=_TALL))
        return least, max(least, min(fixed, int(self._counts.max(initial=0)) + members))

    def _fits_at(self, height: int, room: IntColumn, inside: Any) -> int:
        """How many members, with all domains raised to that height."""
        return int(np.clip(height + self._bond.skew - self._counts, 0, room + self._raised(height, room, inside)).sum())

    def _raised(self, height: int, room: IntColumn, inside: Any) -> IntColumn:
        raised: IntColumn = np.where(inside, np.maximum(height - self._counts - room, 0), 0)
        return raised if not self._bond.floor else np.zeros_like(room)

    def _more_at(self, height: int, room: IntColumn, inside: Any, members: int) -> IntColumn | None:
        """What each domain needs for so many members if the emptiest comes to that height; None: no room would do."""
        more = self._raised(height, room, inside)
        behind = members - self._fits_at(height, room, inside)
        top = np.where(inside, np.maximum(height + self._bond.skew - self._counts - room - more, 0), 0)
        for code in sorted(np.flatnonzero(top).tolist(), key=lambda code: (not more[code], self._domains.names[code])):
            taken = min(max(behind, 0), int(top[code]))
            more[code] += taken
            behind -= taken
        return more if behind <= 0 else None
