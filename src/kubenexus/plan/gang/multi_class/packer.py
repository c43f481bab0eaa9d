"""Gangs of several crews that share rows: drivers and workers, say. Room for one is no longer room for the other.

First quickly, in a few orders that usually work. If that fails, `beam` looks for a way to place all of them, and
`table` for the most that can be, if the gang is small enough. A decision that ran out of its budget says so.
"""

from itertools import islice, permutations
from typing import Any

import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.plan.gang.fill import fill_fewest_rows
from kubenexus.plan.gang.gang_limits import ORDER
from kubenexus.plan.gang.member_classes import MemberClass, allocatable_rows, member_amounts
from kubenexus.plan.gang.multi_class.beam_search import BeamSearch
from kubenexus.plan.gang.multi_class.exact_packing import ExactPacker
from kubenexus.plan.gang.multi_class.packing_problem import PackingPlan, PackingProblem, WorkBudget, fits_count
from kubenexus.plan.gang.packing import RowShare
from kubenexus.state.footprint import Port
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

_MOST_ORDERS = 6


class MultiClassPacker:
    """For one decision, which has this budget left."""

    def __init__(self, member_classes: list[MemberClass], columns: NodeColumns, budget: WorkBudget) -> None:
        self._member_classes, self._budget = member_classes, budget
        asked = [member_amounts(member_class, columns) for member_class in member_classes]
        names = tuple(dict.fromkeys(name for each in asked for name in each))
        self._demand: Any = np.array([[each.get(name, 0) for name in names] for each in asked], np.int64)
        view = Nodes(columns)
        self._free: Any = np.stack([allocatable_rows(name, view) - view.used(name) for name in names])
        self._rank: IntColumn = member_classes[0].classified.table.rank
        self._clash = _clashes([member_class.classified.table.pod.ports for member_class in member_classes])
        self._counts: IntColumn = np.array([member_class.size for member_class in member_classes], np.int64)
        rooms = [
            np.minimum(member_class.capacity, fits_count(self._free, asks))
            for member_class, asks in zip(member_classes, self._demand, strict=True)
        ]
        self._room: Any = np.minimum(np.array(rooms), self._counts[:, None])
        self._tried: dict[bytes, PackingPlan] = {}

    def place_all(self, rows: Any, groups: Any) -> PackingPlan | None:
        """Every member on these rows; None if no way was found, or the budget is spent."""
        if not self._budget.spend(len(rows) * len(self._member_classes) // 4):
            return None
        problem = self._ground(rows)
        if not problem.suffices():
            return None
        quick = self._quickly(problem, groups)
        if quick.members == problem.total or self._budget.left < 0:
            return quick if quick.members == problem.total else None
        return BeamSearch(problem, self._budget).place()

    def place_most(self, rows: Any, groups: Any) -> PackingPlan:
        """As many members as these rows hold, if that can be found out within the budget. Asked when `place_all` found
        no place for them anywhere."""
        problem = self._ground(rows)
        best = self._quickly(problem, groups)
        exact = ExactPacker(problem, self._budget).most()
        if exact is None:
            return PackingPlan(best.shares, exhausted=True)
        return max(best, exact, key=lambda each: each.members)

    def _ground(self, rows: Any) -> PackingProblem:
        return PackingProblem(rows, self._free[:, rows], self._room[:, rows], self._demand, self._clash, self._counts)

    # --- quickly --------------------------------------------------------------------------------------------------

    def _quickly(self, problem: PackingProblem, groups: Any) -> PackingPlan:
        """One crew after the other: on the fewest rows, or where those that come later lose least, for as long as the
        budget lasts: of dozens of crews each order takes its time. Rows that were tried are not tried again, unless
        the budget allowed for nothing."""
        key = problem.rows.tobytes()
        found = self._tried.get(key)
        if found is None or not found.members:
            found = self._tried[key] = self._orders(problem, groups)
        return found

    def _orders(self, problem: PackingProblem, groups: Any) -> PackingPlan:
        best = PackingPlan([[] for _ in self._member_classes])
        for order in islice(permutations(_hardest_first(self._counts)), _MOST_ORDERS):
            for frugal in (False, True):
                if not self._budget.spend(self.price(len(problem.rows), frugal=frugal)):
                    return best
                plan = self._in_order(problem, order, groups, frugal)
                best = max(best, plan, key=lambda each: each.members)
                if best.members == problem.total:
                    return best
        return best

    def price(self, rows: int, *, frugal: bool = False) -> int:
        """Of one order on so many rows. Looking at what others lose looks at every pair of crews."""
        crews = len(self._member_classes)
        return (ORDER + rows) * crews * (crews if frugal else 1)

    def _in_order(self, problem: PackingProblem, order: tuple[int, ...], groups: Any, frugal: bool) -> PackingPlan:
        rows, free, banned = problem.rows, problem.free.copy(), np.zeros(problem.room.shape, np.bool_)
        shares: list[list[RowShare]] = [[] for _ in order]
        for position, i in enumerate(order):
            room = np.minimum(problem.room[i], fits_count(free, problem.demand[i]))
            room[banned[i]] = 0
            members = min(int(problem.counts[i]), int(room.sum()))
            if not members:
                continue
            if frugal:
                taken = self._cheapest(problem, i, order[position + 1 :], free, room, members)
            else:
                taken = fill_fewest_rows(np.arange(len(rows)), room, self._rank[rows], members, groups[rows])
            at, numbers = np.array(taken, np.int64).T  # no row twice
            free[:, at] -= problem.demand[i][:, None] * numbers
            banned[np.ix_(problem.conflicts[i], at)] = True
            shares[i] = [RowShare(*each) for each in zip(rows[at].tolist(), numbers.tolist(), strict=True)]
        return PackingPlan(shares)

    def _cheapest(
        self, problem: PackingProblem, i: int, later: tuple[int, ...], free: Any, room: Any, members: int
    ) -> Any:
        """The rows where the crews that come later lose least."""
        room = np.minimum(room, members)
        after = free - room * problem.demand[i][:, None]
        loss: Any = np.zeros(free.shape[1])
        for j in later:
            loss += (fits_count(free, problem.demand[j]) - fits_count(after, problem.demand[j])) / problem.counts[j]
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
