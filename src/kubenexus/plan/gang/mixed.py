"""Gangs of several crews that share rows: drivers and workers, say. Room for one is no longer room for the other.

First quickly, in a few orders that usually work. If that fails, `beam` looks for a way to place all of them, and
`table` for the most that can be, if the gang is small enough. A decision that ran out of its budget says so.
"""

from itertools import islice, permutations
from typing import Any

import numpy as np

from kubenexus.base.numbers import IntColumn
from kubenexus.plan.gang.beam import Beam
from kubenexus.plan.gang.crews import Crew, asked_by, offered
from kubenexus.plan.gang.fill import fewest
from kubenexus.plan.gang.ground import Budget, Ground, Plan, times
from kubenexus.plan.gang.limits import ORDER
from kubenexus.plan.gang.packings import Share
from kubenexus.plan.gang.table import Table
from kubenexus.state.footprint import Port
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

_MOST_ORDERS = 6


class Mixed:
    """For one decision, which has this budget left."""

    def __init__(self, crews: list[Crew], columns: NodeColumns, budget: Budget) -> None:
        self._crews, self._budget = crews, budget
        asked = [asked_by(crew, columns) for crew in crews]
        names = tuple(dict.fromkeys(name for each in asked for name in each))
        self._demand: Any = np.array([[each.get(name, 0) for name in names] for each in asked], np.int64)
        view = Nodes(columns)
        self._free: Any = np.stack([offered(name, view) - view.used(name) for name in names])
        self._rank: IntColumn = crews[0].member.table.rank
        self._clash = _clashes([crew.member.table.pod.ports for crew in crews])
        self._counts: IntColumn = np.array([crew.size for crew in crews], np.int64)
        rooms = [np.minimum(crew.room, times(self._free, asks)) for crew, asks in zip(crews, self._demand, strict=True)]
        self._room: Any = np.minimum(np.array(rooms), self._counts[:, None])
        self._tried: dict[bytes, Plan] = {}

    def all(self, rows: Any, groups: Any) -> Plan | None:
        """Every member on these rows; None if no way was found, or the budget is spent."""
        if not self._budget.spend(len(rows) * len(self._crews) // 4):
            return None
        ground = self._ground(rows)
        if not ground.suffices():
            return None
        quick = self._quickly(ground, groups)
        if quick.members == ground.total or self._budget.left < 0:
            return quick if quick.members == ground.total else None
        return Beam(ground, self._budget).place()

    def most(self, rows: Any, groups: Any) -> Plan:
        """As many members as these rows hold, if that can be found out within the budget. Asked when `all` found no
        place for them anywhere."""
        ground = self._ground(rows)
        best = self._quickly(ground, groups)
        exact = Table(ground, self._budget).most()
        if exact is None:
            return Plan(best.shares, exhausted=True)
        return max(best, exact, key=lambda each: each.members)

    def _ground(self, rows: Any) -> Ground:
        return Ground(rows, self._free[:, rows], self._room[:, rows], self._demand, self._clash, self._counts)

    # --- quickly --------------------------------------------------------------------------------------------------

    def _quickly(self, ground: Ground, groups: Any) -> Plan:
        """One crew after the other: on the fewest rows, or where those that come later lose least, for as long as the
        budget lasts: of dozens of crews each order takes its time. Rows that were tried are not tried again, unless
        the budget allowed for nothing."""
        key = ground.rows.tobytes()
        found = self._tried.get(key)
        if found is None or not found.members:
            found = self._tried[key] = self._orders(ground, groups)
        return found

    def _orders(self, ground: Ground, groups: Any) -> Plan:
        best = Plan([[] for _ in self._crews])
        for order in islice(permutations(_hardest_first(self._counts)), _MOST_ORDERS):
            for frugal in (False, True):
                if not self._budget.spend(self.price(len(ground.rows), frugal=frugal)):
                    return best
                plan = self._in_order(ground, order, groups, frugal)
                best = max(best, plan, key=lambda each: each.members)
                if best.members == ground.total:
                    return best
        return best

    def price(self, rows: int, *, frugal: bool = False) -> int:
        """Of one order on so many rows. Looking at what others lose looks at every pair of crews."""
        crews = len(self._crews)
        return (ORDER + rows) * crews * (crews if frugal else 1)

    def _in_order(self, ground: Ground, order: tuple[int, ...], groups: Any, frugal: bool) -> Plan:
        rows, free, banned = ground.rows, ground.free.copy(), np.zeros(ground.room.shape, np.bool_)
        shares: list[list[Share]] = [[] for _ in order]
        for position, i in enumerate(order):
            room = np.minimum(ground.room[i], times(free, ground.demand[i]))
            room[banned[i]] = 0
            members = min(int(ground.counts[i]), int(room.sum()))
            if not members:
                continue
            if frugal:
                taken = self._cheapest(ground, i, order[position + 1 :], free, room, members)
            else:
                taken = fewest(np.arange(len(rows)), room, self._rank[rows], members, groups[rows])
            at, numbers = np.array(taken, np.int64).T  # no row twice
            free[:, at] -= ground.demand[i][:, None] * numbers
            banned[np.ix_(ground.clash[i], at)] = True
            shares[i] = [Share(*each) for each in zip(rows[at].tolist(), numbers.tolist(), strict=True)]
        return Plan(shares)

    def _cheapest(self, ground: Ground, i: int, later: tuple[int, ...], free: Any, room: Any, members: int) -> Any:
        """The rows where the crews that come later lose least."""
        room = np.minimum(room, members)
        after = free - room * ground.demand[i][:, None]
        loss: Any = np.zeros(free.shape[1])
        for j in later:
            loss += (times(free, ground.demand[j]) - times(after, ground.demand[j])) / ground.counts[j]
        some = np.flatnonzero(room)
        order = some[np.lexsort((-room[some], loss[some] / room[some]))]
        upto = np.cumsum(room[order])
        last = int((upto >= members).argmax())
        taken = room[order[: last + 1]]
        taken[-1] -= int(upto[last]) - members
        return list(zip(order[: last + 1].tolist(), taken.tolist(), strict=True))


def _clashes(ports: list[tuple[Port, ...]]) -> Any:
    """Which crews cannot share a row. Most ask for no ports of their node."""
    found = np.zeros((len(ports), len(ports)), np.bool_)
    asking = [i for i, each in enumerate(ports) if each]
    for i in asking:
        for j in asking:
            found[i, j] = i != j and any(one.clashes(other) for one in ports[i] for other in ports[j])
    return found


def _hardest_first(counts: IntColumn) -> list[int]:
    """Small crews first: their members are usually the large ones."""
    return sorted(range(len(counts)), key=lambda i: int(counts[i]))
