"""How many members of one crew a set of rows holds, and on which of them they go: with room as the only limit, or with
at most one in a domain of a label. Evenly over its domains: `even`."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from kubenexus.base.numbers import IntColumn
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


class Jointly:
    """Several crews. What each finds alone is a bound for what they find together: the rest is tried out."""

    constraint = ""

    def __init__(self, rooms: list[IntColumn], counts: list[int]) -> None:
        self._rooms, self._counts = rooms, counts
        self._shares: Any = None

    def holds(self, axis: Axis) -> IntColumn:
        total: IntColumn = np.zeros(axis.size, np.int64)
        for room, count in zip(self._rooms, self._counts, strict=True):
            total += np.minimum(Free(room, room).holds(axis), count)
        return total

    def loose(self, axis: Axis) -> Any:
        """How large each domain is for the crews: the least is the tightest. Summed over the crews first, so that a
        level costs one look at the rows however many there are; rounded, since the order of rows says nothing."""
        if self._shares is None:
            self._shares = sum(room / count for room, count in zip(self._rooms, self._counts, strict=True))
        if axis.hosts:
            return np.concatenate([_NONE, self._shares])
        return np.round(np.bincount(axis.codes, weights=self._shares, minlength=axis.size), 6)


_NONE = np.zeros(1, np.int64)


def by_code(codes: Any, room: IntColumn, size: int) -> IntColumn:
    """Sums for each code, but for code 0, which is no domain."""
    sums: IntColumn = np.bincount(codes, weights=room, minlength=size).astype(np.int64)
    sums[0] = 0
    return sums
