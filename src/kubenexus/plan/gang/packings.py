"""How many members of one crew a set of rows holds, and on which of them they go: with room as the only limit, with at
most one in a domain of a label, or evenly over its domains."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from kubenexus.base.numbers import IntColumn
from kubenexus.framework.bonds import Bond
from kubenexus.plan.gang.axes import Axis
from kubenexus.plan.gang.fill import fewest


class Share(NamedTuple):
    """So many members on this row."""

    row: int
    members: int


class Packing(Protocol):
    constraint: str  # what limits the members besides room, in words

    def holds(self, axis: Axis) -> IntColumn:
        """How many members each domain of a level can take; none in "no domain" (code 0)."""

    def fill(self, rows: Any, members: int, groups: Any) -> list[Share]:
        """So many members, which the rows do hold, on the fewest of them; `groups` are codes that had better not be
        mixed where there is a choice."""


class Free:
    """Room is all that counts."""

    constraint = ""

    def __init__(self, room: IntColumn, rank: IntColumn) -> None:
        self._room, self._rank = room, rank

    def holds(self, axis: Axis) -> IntColumn:
        if axis.hosts:
            return np.concatenate([_NONE, self._room])
        return by_code(axis.codes, self._room, axis.size)

    def fill(self, rows: Any, members: int, groups: Any) -> list[Share]:
        return [Share(*each) for each in fewest(rows, self._room[rows], self._rank[rows], members, groups[rows])]


class Apart:
    """At most one member in a domain of a label; nodes without the label do not matter to each other."""

    def __init__(self, room: IntColumn, rank: IntColumn, domains: Axis) -> None:
        self._room, self._rank, self._domains = room, rank, domains
        self.constraint = f"at most one member for each {domains.level}"

    def holds(self, axis: Axis) -> IntColumn:
        inside = (self._room > 0) & (self._domains.codes != 0)
        pairs = np.unique(axis.codes[inside] * self._domains.size + self._domains.codes[inside])
        free = by_code(axis.codes, np.where(self._domains.codes == 0, self._room, 0), axis.size)
        apart = np.bincount(pairs // self._domains.size, minlength=axis.size)
        apart[0] = 0
        return free + apart

    def fill(self, rows: Any, members: int, groups: Any) -> list[Share]:
        codes = self._domains.codes[rows]
        room = np.where(codes == 0, self._room[rows], 0)
        order = np.flatnonzero((codes != 0) & (self._room[rows] > 0))
        order = order[np.argsort(-self._rank[rows][order], kind="stable")]
        _, first = np.unique(codes[order], return_index=True)
        room[order[first]] = 1  # the best row of each domain stands for it
        return [Share(*each) for each in fewest(rows, room, self._rank[rows], members, groups[rows])]


class Together:
    """Several crews. What each finds alone is a bound for what they find together: the rest is tried out."""

    constraint = ""

    def __init__(self, rooms: list[IntColumn], counts: list[int]) -> None:
        self._rooms, self._counts = rooms, counts

    def holds(self, axis: Axis) -> IntColumn:
        total: IntColumn = np.zeros(axis.size, np.int64)
        for room, count in zip(self._rooms, self._counts, strict=True):
            total += np.minimum(Free(room, room).holds(axis), count)
        return total

    def loose(self, axis: Axis) -> Any:
        """How large each domain is for the crews: the least is the tightest."""
        return sum(Free(room, room).holds(axis) / count for room, count in zip(self._rooms, self._counts, strict=True))


class Even:
    """Domains of a label may differ by so many members; see `Bond`."""

    def __init__(self, room: IntColumn, rank: IntColumn, domains: Axis, bond: Bond) -> None:
        self._rank, self._domains, self._bond = rank, domains, bond
        self._room = np.where(domains.codes == 0, 0, room)
        self._counts = np.zeros(domains.size, np.int64)
        self._present = np.zeros(domains.size, np.bool_)
        known = min(domains.size, len(bond.counts))
        self._counts[:known], self._present[:known] = bond.counts[:known], bond.present[:known]
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


_NONE = np.zeros(1, np.int64)


def by_code(codes: Any, room: IntColumn, size: int) -> IntColumn:
    """Sums for each code, but for code 0, which is no domain."""
    sums: IntColumn = np.bincount(codes, weights=room, minlength=size).astype(np.int64)
    sums[0] = 0
    return sums
