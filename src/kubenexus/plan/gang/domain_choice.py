"""The choice of a domain for a gang: the tightest domain of the lowest level that holds it.

Objective, in this order: the most members; the lowest level; the domain with the least free capacity; the domain whose
surrounding domain on the next level has the least free capacity, and so on, so that large free domains stay whole; the
score of its nodes, such as for a better fabric; the name.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.cycle.tie_break import TIE_BREAK_BITS
from kubenexus.plan.gang.packing import Packing
from kubenexus.state.topology import TopologyDomains


class DomainCandidate(msgspec.Struct, gc=False):
    """A domain, and how many members it takes. `below` has the codes of its rows on the next lower level."""

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
    """Chooses among the domains of `levels`, the lowest level first, the outermost last.

    `near` are the rows of members that are bound already. The others join their domains; on the outermost level only if
    that domain holds them.
    """

    def __init__(
        self, packing: Packing, levels: Sequence[TopologyDomains], rank: IntColumn, near: list[int] | None = None
    ) -> None:
        self._packing, self._levels, self._rank = packing, levels, rank
        self._near = near or []
        self._held: dict[int, IntColumn] = {}
        self._scored: dict[int, Any] = {}

    def largest(self) -> DomainCandidate:
        """Returns the domain of the outermost level that holds most members; code 0 if no domain holds any."""
        last = len(self._levels) - 1
        holds = self._holds(last)
        codes = np.flatnonzero(holds == holds.max())
        return self._candidate(last, self._choose(codes[codes > 0] if len(codes) > 1 else codes, last))

    def tightest(self, members: int) -> DomainCandidate | None:
        """Returns the best domain of the lowest level that holds so many members, or None."""
        for i in range(len(self._levels)):
            holds = self._holds(i)
            enough = self._nearer(np.flatnonzero(holds >= members), i)
            if len(enough):
                least = enough[holds[enough] == holds[enough].min()]
                return self._candidate(i, self._choose(least, i))
        return None

    def in_order(self, members: int, loose: Callable[[TopologyDomains], Any], most: int) -> list[DomainCandidate]:
        """Returns up to `most` domains of each level that may hold so many members, the best first.

        For gangs where capacity alone does not decide. `loose` returns for each domain of a level how much it is larger
        than the gang.
        """
        found = []
        for i in range(len(self._levels)):
            enough = np.flatnonzero(self._holds(i) >= members)
            names, size, near = self._levels[i].names, loose(self._levels[i]), self._near_codes(i)
            score = self._scores(i)
            best = sorted(
                enough.tolist(), key=lambda code: (code not in near, float(size[code]), -score[code], names[code])
            )
            found += [self._candidate(i, code) for code in best[:most]]
        return found

    def outermost(self, most: int) -> list[DomainCandidate]:
        """Returns up to `most` domains of the outermost level, those that may hold most members first."""
        last = len(self._levels) - 1
        holds, score, names = self._holds(last), self._scores(last), self._levels[last].names
        codes = sorted(np.flatnonzero(holds).tolist(), key=lambda code: (-int(holds[code]), -score[code], names[code]))
        return [self._candidate(last, code) for code in codes[:most]]

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
        """Returns the domains with bound members, or all if there are none."""
        there = np.isin(codes, list(self._near_codes(i))) if self._near else np.zeros(len(codes), np.bool_)
        return codes[there] if there.any() else codes

    def _choose(self, codes: Any, i: int) -> int:
        """Returns one of the domains of equal capacity: by that of the surrounding domains, then by rank, then by
        name."""
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
        if len(codes) > 1:
            scores = self._scores(i)[codes]
            codes = codes[scores == scores.max()]
        named: list[int] = sorted(codes.tolist(), key=lambda code: level.names[code])
        return named[0]

    def _scores(self, i: int) -> Any:
        """Returns for each domain of a level the mean score of its feasible rows, 0 without any.

        Sums of scores are exact, and so the order of rows has no effect. A rank has a tie break below its score, which
        differs from node to node and must not choose domains.
        """
        if i not in self._scored:
            level, feasible = self._levels[i], self._rank >= 0
            points = np.where(feasible, self._rank >> TIE_BREAK_BITS, 0)
            rows = np.bincount(level.codes, weights=feasible, minlength=level.size)
            self._scored[i] = np.bincount(level.codes, weights=points, minlength=level.size) / np.maximum(rows, 1)
        return self._scored[i]

    def _candidate(self, i: int, code: int) -> DomainCandidate:
        level = self._levels[i]
        return DomainCandidate(
            level, code, int(self._holds(i)[code]), self._levels[max(i - 1, 0)].codes if i > 1 else level.codes
        )
