"""The site of a gang: the tightest domain of the lowest level that holds it.

Objective, in this order: as many members as can be; the lowest level; the domain with the least room to spare; within
the level above the one with the least room to spare, and so on, so that what is whole stays whole; the name.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.numbers import IntColumn
from kubenexus.plan.gang.axes import Axis
from kubenexus.plan.gang.packings import Packing


class Site(msgspec.Struct, gc=False):
    """A domain and how many members it can take. `below` groups its rows by the next lower level."""

    axis: Axis
    code: int
    holds: int
    below: Any

    @property
    def name(self) -> str:
        return self.axis.names[self.code]

    @property
    def rows(self) -> Any:
        return np.array([self.code - 1]) if self.axis.hosts else np.flatnonzero(self.axis.codes == self.code)


class Sites:
    """The levels a gang may choose from, lowest first; the last is the outermost. `near`: rows of members that have
    their place already, whose domains the others join: of the outermost level only if that holds them."""

    def __init__(self, packing: Packing, axes: Sequence[Axis], rank: IntColumn, near: list[int] | None = None) -> None:
        self._packing, self._axes, self._rank = packing, axes, rank
        self._near = near or []
        self._held: dict[int, IntColumn] = {}

    def widest(self) -> Site:
        """The domain of the outermost level that holds most members; "no domain" (code 0) if there is none."""
        last = len(self._axes) - 1
        holds = self._holds(last)
        codes = np.flatnonzero(holds == holds.max())
        return self._site(last, self._choose(codes[codes > 0] if len(codes) > 1 else codes, last))

    def tightest(self, members: int) -> Site | None:
        """The best domain of the lowest level that holds so many."""
        for i in range(len(self._axes)):
            holds = self._holds(i)
            enough = self._nearer(np.flatnonzero(holds >= members), i)
            if len(enough):
                least = enough[holds[enough] == holds[enough].min()]
                return self._site(i, self._choose(least, i))
        return None

    def in_order(self, members: int, loose: Callable[[Axis], Any], most: int) -> list[Site]:
        """Domains that may hold so many, best first, some of each level: for gangs where room alone does not tell.
        `loose` says how loosely they would sit in each domain."""
        found = []
        for i in range(len(self._axes)):
            enough = np.flatnonzero(self._holds(i) >= members)
            names, size, near = self._axes[i].names, loose(self._axes[i]), self._near_codes(i)
            best = sorted(enough.tolist(), key=lambda code: (code not in near, float(size[code]), names[code]))
            found += [self._site(i, code) for code in best[:most]]
        return found

    def outermost(self, most: int) -> list[Site]:
        """Domains of the outermost level, those that may hold most members first."""
        last = len(self._axes) - 1
        holds, names = self._holds(last), self._axes[last].names
        codes = sorted(np.flatnonzero(holds).tolist(), key=lambda code: (-int(holds[code]), names[code]))
        return [self._site(last, code) for code in codes[:most]]

    def _holds(self, i: int) -> IntColumn:
        if i not in self._held:
            axis, held = self._axes[i], self._packing.holds(self._axes[i])
            near = self._near_codes(i)
            if near and i < len(self._axes) - 1:
                there = np.zeros(axis.size, np.bool_)
                there[list(near)] = True
                held = np.where(there, held, 0)
            self._held[i] = held
        return self._held[i]

    def _near_codes(self, i: int) -> set[int]:
        return {code for code in self._axes[i].codes[self._near].tolist() if code} if self._near else set()

    def _nearer(self, codes: Any, i: int) -> Any:
        """Those with members in them, if any is."""
        there = np.isin(codes, list(self._near_codes(i))) if self._near else np.zeros(len(codes), np.bool_)
        return codes[there] if there.any() else codes

    def _choose(self, codes: Any, i: int) -> int:
        """Among domains with equal room: by the room of the domains they are in, then by rank or name."""
        axis = self._axes[i]
        some_row = np.zeros(axis.size, np.int64)
        some_row[axis.codes] = np.arange(len(axis.codes))
        for j in range(i + 1, len(self._axes)):
            if len(codes) == 1:
                break
            around = self._holds(j)[self._axes[j].codes[some_row[codes]]]
            codes = codes[around == around.min()]
        if axis.hosts:
            return int(codes[self._rank[codes - 1].argmax()])
        named: list[int] = sorted(codes.tolist(), key=lambda code: axis.names[code])
        return named[0]

    def _site(self, i: int, code: int) -> Site:
        axis = self._axes[i]
        return Site(axis, code, int(self._holds(i)[code]), self._axes[max(i - 1, 0)].codes if i > 1 else axis.codes)
