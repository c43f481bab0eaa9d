"""The site of a gang: the tightest domain of the lowest level that holds it.

Objective, in this order: as many members as can be; the lowest level; the domain with the least room to spare; within
the level above the one with the least room to spare, and so on, so that what is whole stays whole; the name.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.plan.gang.packing import Packing
from kubenexus.state.topology import TopologyDomains


class DomainCandidate(msgspec.Struct, gc=False):
    """A domain and how many members it can take. `below` groups its rows by the next lower level."""

    level: TopologyDomains
    code: int
    capacity: int
    below: Any

    @property
    def name(self) -> str:
        return self.level.names[self.code]

    @property
    def rows(self) -> Any:
        return np.array([self.code - 1]) if self.level.is_node_level else np.flatnonzero(self.level.codes == self.code)


class DomainChooser:
    """The levels a gang may choose from, lowest first; the last is the outermost. `near`: rows of members that have
    their place already, whose domains the others join: of the outermost level only if that holds them."""

    def __init__(
        self, packing: Packing, levels: Sequence[TopologyDomains], rank: IntColumn, near: list[int] | None = None
    ) -> None:
        self._packing, self._levels, self._rank = packing, levels, rank
        self._near = near or []
        self._held: dict[int, IntColumn] = {}

    def largest(self) -> DomainCandidate:
        """The domain of the outermost level that holds most members; "no domain" (code 0) if there is none."""
        last = len(self._levels) - 1
        holds = self._holds(last)
        codes = np.flatnonzero(holds == holds.max())
        return self._site(last, self._choose(codes[codes > 0] if len(codes) > 1 else codes, last))

    def tightest(self, members: int) -> DomainCandidate | None:
        """The best domain of the lowest level that holds so many."""
        for i in range(len(self._levels)):
            holds = self._holds(i)
            enough = self._nearer(np.flatnonzero(holds >= members), i)
            if len(enough):
                least = enough[holds[enough] == holds[enough].min()]
                return self._site(i, self._choose(least, i))
        return None

    def in_order(self, members: int, loose: Callable[[TopologyDomains], Any], most: int) -> list[DomainCandidate]:
        """Domains that may hold so many, best first, some of each level: for gangs where room alone does not tell.
        `loose` says how loosely they would sit in each domain."""
        found = []
        for i in range(len(self._levels)):
            enough = np.flatnonzero(self._holds(i) >= members)
            names, size, near = self._levels[i].names, loose(self._levels[i]), self._near_codes(i)
            best = sorted(enough.tolist(), key=lambda code: (code not in near, float(size[code]), names[code]))
            found += [self._site(i, code) for code in best[:most]]
        return found

    def outermost(self, most: int) -> list[DomainCandidate]:
        """Domains of the outermost level, those that may hold most members first."""
        last = len(self._levels) - 1
        holds, names = self._holds(last), self._levels[last].names
        codes = sorted(np.flatnonzero(holds).tolist(), key=lambda code: (-int(holds[code]), names[code]))
        return [self._site(last, code) for code in codes[:most]]

    def _holds(self, i: int) -> IntColumn:
        if i not in self._held:
            level, held = self._levels[i], self._packing.capacity(self._levels[i])
            near = self._near_codes(i)
            if near and i < len(self._levels) - 1:
                there = np.zeros(level.size, np.bool_)
                there[list(near)] = True
                held = np.where(there, held, 0)
            self._held[i] = held
        return self._held[i]

    def _near_codes(self, i: int) -> set[int]:
        return {code for code in self._levels[i].codes[self._near].tolist() if code} if self._near else set()

    def _nearer(self, codes: Any, i: int) -> Any:
        """Those with members in them, if any is."""
        there = np.isin(codes, list(self._near_codes(i))) if self._near else np.zeros(len(codes), np.bool_)
        return codes[there] if there.any() else codes

    def _choose(self, codes: Any, i: int) -> int:
        """Among domains with equal room: by the room of the domains they are in, then by rank or name."""
        level = self._levels[i]
        some_row = np.zeros(level.size, np.int64)
        some_row[level.codes] = np.arange(len(level.codes))
        for j in range(i + 1, len(self._levels)):
            if len(codes) == 1:
                break
            around = self._holds(j)[self._levels[j].codes[some_row[codes]]]
            codes = codes[around == around.min()]
        if level.is_node_level:
            return int(codes[self._rank[codes - 1].argmax()])
        named: list[int] = sorted(codes.tolist(), key=lambda code: level.names[code])
        return named[0]

    def _site(self, i: int, code: int) -> DomainCandidate:
        level = self._levels[i]
        return DomainCandidate(
            level, code, int(self._holds(i)[code]), self._levels[max(i - 1, 0)].codes if i > 1 else level.codes
        )
