"""Gangs of several crews that share rows: drivers and workers, say. Room for one is no longer room for the other.

First quickly, in a few orders that usually work. If that fails and the gang is small enough, exactly: row by row, for
each number of members of the smaller crews the most of the largest crew that can still be placed. Work is counted in
cells of these tables, so that a decision ends in time; one that ran out says so.
"""

from itertools import permutations
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.numbers import IntColumn
from kubenexus.plan.gang.crews import Crew
from kubenexus.plan.gang.fill import fewest
from kubenexus.plan.gang.packings import Share
from kubenexus.state.footprint import Port
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

BUDGET = 3_000_000  # cells that one decision may fill
_STEP = 400  # what a step costs besides its cells
_MOST_ORDERS = 6


class Plan(msgspec.Struct, gc=False):
    """Shares for each crew, in the crews' order. `exhausted`: there may be better ones."""

    shares: list[list[Share]]
    exhausted: bool = False

    @property
    def members(self) -> int:
        return sum(share.members for shares in self.shares for share in shares)


class Mixed:
    def __init__(self, crews: list[Crew], columns: NodeColumns) -> None:
        self._crews = crews
        asked = [dict(crew.member.table.pod.demand.amounts) | {"pods": 1} for crew in crews]
        names = tuple(dict.fromkeys(name for each in asked for name in each))
        self.demand: Any = np.array([[each.get(name, 0) for name in names] for each in asked], np.int64)
        view = Nodes(columns)
        self._free: Any = np.stack([view.alloc(name) - view.used(name) for name in names])
        self._rank: IntColumn = crews[0].member.table.rank
        ports = [crew.member.table.pod.ports for crew in crews]
        self._clash = np.array([[i != j and _clash(a, b) for j, b in enumerate(ports)] for i, a in enumerate(ports)])
        self.left = BUDGET

    def pack(self, rows: Any, counts: list[int], groups: Any) -> Plan:
        """As many members as these rows hold; all of them if that can be found out within the budget."""
        best = Plan([[] for _ in counts])
        for order in list(permutations(_hardest_first(counts)))[:_MOST_ORDERS]:
            for frugal in (False, True):
                plan = self._quick(rows, counts, order, groups, frugal)
                best = max(best, plan, key=lambda each: each.members)
                if best.members == sum(counts):
                    return best
        exact = self._exactly(rows, counts)
        if exact is None:
            return Plan(best.shares, exhausted=True)
        return max(best, exact, key=lambda each: each.members)

    # --- quickly --------------------------------------------------------------------------------------------------

    def _quick(self, rows: Any, counts: list[int], order: tuple[int, ...], groups: Any, frugal: bool) -> Plan:
        free, banned = self._free[:, rows].copy(), np.zeros((len(counts), len(rows)), np.bool_)
        shares: list[list[Share]] = [[] for _ in counts]
        for position, i in enumerate(order):
            room = self._room(i, free, rows, banned[i])
            members = min(counts[i], int(room.sum()))
            if not members:
                continue
            if frugal:
                taken = self._cheapest(i, order[position + 1 :], counts, free, room, members)
            else:
                where = np.arange(len(rows))
                taken = fewest(where, room, self._rank[rows], members, groups[rows])
            self.left -= len(rows) * len(counts)
            for at, number in taken:
                free[:, at] -= number * self.demand[i]
                banned[self._clash[i], at] = True
                shares[i].append(Share(int(rows[at]), number))
        return Plan(shares)

    def _room(self, i: int, free: Any, rows: Any, banned: Any) -> IntColumn:
        room: IntColumn = np.minimum(self._crews[i].room[rows], _times(free, self.demand[i]))
        room[banned] = 0
        return room

    def _cheapest(self, i: int, later: tuple[int, ...], counts: list[int], free: Any, room: Any, members: int) -> Any:
        """The rows where the crews that come later lose least."""
        room = np.minimum(room, members)
        after = free - room * self.demand[i][:, None]
        loss: Any = np.zeros(free.shape[1])
        for j in later:
            loss += (_times(free, self.demand[j]) - _times(after, self.demand[j])) / counts[j]
        some = np.flatnonzero(room)
        order = some[np.lexsort((-room[some], loss[some] / room[some]))]
        upto = np.cumsum(room[order])
        last = int((upto >= members).argmax())
        taken = room[order[: last + 1]]
        taken[-1] -= int(upto[last]) - members
        return list(zip(order[: last + 1].tolist(), taken.tolist(), strict=True))

    # --- exactly --------------------------------------------------------------------------------------------------

    def _exactly(self, rows: Any, counts: list[int]) -> Plan | None:
        """None if that would take too long."""
        *small, large = np.argsort(counts, kind="stable").tolist()
        shape = tuple(counts[i] + 1 for i in small)
        most: Any = np.full(shape, -1, np.int64)
        most[(0,) * len(small)] = 0
        steps: list[tuple[int, Any, Any, Any]] = []
        known: dict[bytes, tuple[Any, Any]] = {}
        for row in rows[self._any_room(rows)].tolist():
            patterns, gains = self._patterns(row, small, large, counts, known)
            self.left -= len(patterns) * (most.size + _STEP)
            if self.left < 0:
                return None
            most, chosen = _extended(most, patterns, gains, counts[large])
            steps.append((row, patterns, gains, chosen))
            if most[tuple(counts[i] for i in small)] == counts[large]:
                break
        return self._traced(most, steps, small, large, counts)

    def _any_room(self, rows: Any) -> Any:
        room = sum(np.minimum(crew.room[rows], crew.size) for crew in self._crews)
        return np.argsort(-np.asarray(room), kind="stable")[: int(np.count_nonzero(room))]

    def _patterns(
        self, row: int, small: list[int], large: int, counts: list[int], known: dict[bytes, tuple[Any, Any]]
    ) -> tuple[Any, Any]:
        """The ways to put members of the smaller crews on a row, and how many of the largest each leaves room for.
        Rows that are alike are looked at once."""
        free, rooms = self._free[:, row], [int(crew.room[row]) for crew in self._crews]
        key = free.tobytes() + bytes(str(rooms), "ascii")
        if key not in known:
            ranges = [np.arange(min(rooms[i], counts[i]) + 1) for i in small]
            patterns = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(small))
            asked = (patterns @ self.demand[small]).T
            left = free[:, None] - asked
            fits = ((left >= 0) | (asked == 0)).all(axis=0) & ~self._clashing(patterns, small)
            patterns, left = patterns[fits], left[:, fits]
            gains = np.minimum(_times(left, self.demand[large]), min(rooms[large], counts[large]))
            gains[(patterns[:, self._clash[large][small]] > 0).any(axis=1)] = 0
            known[key] = patterns, gains
        return known[key]

    def _clashing(self, patterns: Any, small: list[int]) -> Any:
        bad = np.zeros(len(patterns), np.bool_)
        for a in range(len(small)):
            for b in range(a):
                if self._clash[small[a], small[b]]:
                    bad |= (patterns[:, a] > 0) & (patterns[:, b] > 0)
        return bad

    def _traced(self, most: Any, steps: list[Any], small: list[int], large: int, counts: list[int]) -> Plan:
        """Back from the best end to who went where."""
        totals = np.where(most >= 0, most + sum(np.indices(most.shape)), -1)
        at = np.unravel_index(int(totals.argmax()), most.shape)
        shares: list[list[Share]] = [[] for _ in counts]
        left = int(most[at])
        for row, patterns, gains, chosen in reversed(steps):
            pick = int(chosen[at])
            pattern, gain = patterns[pick], min(int(gains[pick]), left)
            for i, number in zip(small, pattern.tolist(), strict=True):
                shares[i] += [Share(row, number)] if number else []
            shares[large] += [Share(row, gain)] if gain else []
            left -= gain
            at = tuple(np.subtract(at, pattern).tolist())
        return Plan(shares)


def _extended(most: Any, patterns: Any, gains: Any, cap: int) -> tuple[Any, Any]:
    """With one row more: the most of the large crew for each number of the small ones, and the pattern that gave it."""
    best, chosen = np.full(most.shape, -1, np.int64), np.zeros(most.shape, np.int32)
    for k, (pattern, gain) in enumerate(zip(patterns.tolist(), gains.tolist(), strict=True)):
        to = tuple(slice(n, None) for n in pattern)
        source = most[tuple(slice(0, size - n) for n, size in zip(pattern, most.shape, strict=True))]
        value = np.where(source >= 0, np.minimum(source + gain, cap), -1)
        better = value > best[to]
        best[to][better] = value[better]
        chosen[to][better] = k
    return best, chosen


def _times(free: Any, demand: IntColumn) -> IntColumn:
    """How often a demand goes into what is free, for each row."""
    asked = np.flatnonzero(demand)
    times: IntColumn = np.maximum(free[asked], 0) // demand[asked][:, None]
    least: IntColumn = times.min(axis=0)
    return least


def _clash(some: tuple[Port, ...], others: tuple[Port, ...]) -> bool:
    return any(one.clashes(other) for one in some for other in others)


def _hardest_first(counts: list[int]) -> list[int]:
    """Small crews first: their members are usually the large ones."""
    return sorted(range(len(counts)), key=lambda i: counts[i])
