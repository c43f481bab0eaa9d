"""Packs gangs of several classes on shared rows, such as drivers and workers: one class takes capacity from another.

First a few greedy orders, which usually succeed. Then `BeamSearch` looks for a way to place all members, and
`ExactPacker` for the maximum, if the gang is small enough. A plan that ran out of budget is marked `exhausted`.
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

_MAX_ORDERS = 6


class MultiClassPacker:
    """Packs the classes of one gang, in one decision, within the budget that is left."""

    def __init__(self, member_classes: list[MemberClass], columns: NodeColumns, budget: WorkBudget) -> None:
        self._member_classes, self._budget = member_classes, budget
        asked = [member_amounts(member_class, columns) for member_class in member_classes]
        names = tuple(dict.fromkeys(name for each in asked for name in each))
        self._demand: Any = np.array([[each.get(name, 0) for name in names] for each in asked], np.int64)
        view = Nodes(columns)
        self._free: Any = np.stack([allocatable_rows(name, view) - view.used(name) for name in names])
        self._rank: IntColumn = member_classes[0].classified.table.rank
        self._conflicts = _port_conflicts([member_class.classified.table.pod.ports for member_class in member_classes])
        self._counts: IntColumn = np.array([member_class.size for member_class in member_classes], np.int64)
        capacities = [
            np.minimum(member_class.capacity, fits_count(self._free, asks))
            for member_class, asks in zip(member_classes, self._demand, strict=True)
        ]
        self._capacity: Any = np.minimum(np.array(capacities), self._counts[:, None])
        self._tried: dict[bytes, PackingPlan] = {}

    def place_all(self, rows: Any, groups: Any) -> PackingPlan | None:
        """Returns a plan with every member on these rows; None if it found none, or the budget is spent."""
        if not self._budget.spend(len(rows) * len(self._member_classes) // 4):
            return None
        problem = self._problem(rows)
        if not problem.suffices():
            return None
        quick = self._quickly(problem, groups)
        if quick.members == problem.total or self._budget.left < 0:
            return quick if quick.members == problem.total else None
        return BeamSearch(problem, self._budget).place()

    def place_most(self, rows: Any, groups: Any) -> PackingPlan:
        """Returns a plan with as many members as these rows hold, if the budget allows to compute that. Called when
        `place_all` found no plan on any rows."""
        problem = self._problem(rows)
        best = self._quickly(problem, groups)
        exact = ExactPacker(problem, self._budget).most()
        if exact is None:
            return PackingPlan(best.shares, exhausted=True)
        return max(best, exact, key=lambda each: each.members)

    def _problem(self, rows: Any) -> PackingProblem:
        return PackingProblem(
            rows, self._free[:, rows], self._capacity[:, rows], self._demand, self._conflicts, self._counts
        )

    # --- greedy orders --------------------------------------------------------------------------------------------

    def _quickly(self, problem: PackingProblem, groups: Any) -> PackingPlan:
        """Returns the best greedy plan within the budget: one class after the other, on the fewest rows or where later
        classes lose least. The result is cached by rows, unless the budget allowed for nothing."""
        key = problem.rows.tobytes()
        found = self._tried.get(key)
        if found is None or not found.members:
            found = self._tried[key] = self._orders(problem, groups)
        return found

    def _orders(self, problem: PackingProblem, groups: Any) -> PackingPlan:
        best = PackingPlan([[] for _ in self._member_classes])
        for order in islice(permutations(_hardest_first(self._counts)), _MAX_ORDERS):
            for frugal in (False, True):
                if not self._budget.spend(self.price(len(problem.rows), frugal=frugal)):
                    return best
                plan = self._in_order(problem, order, groups, frugal)
                best = max(best, plan, key=lambda each: each.members)
                if best.members == problem.total:
                    return best
        return best

    def price(self, rows: int, *, frugal: bool = False) -> int:
        """Returns the cells of one order on so many rows. With `frugal` every pair of classes is compared."""
        classes = len(self._member_classes)
        return (ORDER + rows) * classes * (classes if frugal else 1)

    def _in_order(self, problem: PackingProblem, order: tuple[int, ...], groups: Any, frugal: bool) -> PackingPlan:
        rows, free, banned = problem.rows, problem.free.copy(), np.zeros(problem.capacity.shape, np.bool_)
        shares: list[list[RowShare]] = [[] for _ in order]
        for position, i in enumerate(order):
            capacity = np.minimum(problem.capacity[i], fits_count(free, problem.demand[i]))
            capacity[banned[i]] = 0
            members = min(int(problem.counts[i]), int(capacity.sum()))
            if not members:
                continue
            if frugal:
                taken = self._cheapest(problem, i, order[position + 1 :], free, capacity, members)
            else:
                taken = fill_fewest_rows(np.arange(len(rows)), capacity, self._rank[rows], members, groups[rows])
            at, numbers = np.array(taken, np.int64).T  # no row twice
            free[:, at] -= problem.demand[i][:, None] * numbers
            banned[np.ix_(problem.conflicts[i], at)] = True
            shares[i] = [RowShare(*each) for each in zip(rows[at].tolist(), numbers.tolist(), strict=True)]
        return PackingPlan(shares)

    def _cheapest(
        self, problem: PackingProblem, i: int, later: tuple[int, ...], free: Any, capacity: Any, members: int
    ) -> Any:
        """Returns the rows where the later classes lose least."""
        capacity = np.minimum(capacity, members)
        after = free - capacity * problem.demand[i][:, None]
        loss: Any = np.zeros(free.shape[1])
        for j in later:
            loss += (fits_count(free, problem.demand[j]) - fits_count(after, problem.demand[j])) / problem.counts[j]
        some = np.flatnonzero(capacity)
        order = some[np.lexsort((-capacity[some], loss[some] / capacity[some]))]
        upto = np.cumsum(capacity[order])
        last = int((upto >= members).argmax())
        taken = capacity[order[: last + 1]]
        taken[-1] -= int(upto[last]) - members
        return list(zip(order[: last + 1].tolist(), taken.tolist(), strict=True))


def _port_conflicts(ports: list[tuple[Port, ...]]) -> Any:
    """Returns which classes cannot share a row, because of host ports. Most have none."""
    found = np.zeros((len(ports), len(ports)), np.bool_)
    asking = [i for i, each in enumerate(ports) if each]
    for i in asking:
        for j in asking:
            found[i, j] = i != j and any(one.clashes(other) for one in ports[i] for other in ports[j])
    return found


def _hardest_first(counts: IntColumn) -> list[int]:
    """Returns the classes in order of size, the smallest first: their members usually request most."""
    return sorted(range(len(counts)), key=lambda i: int(counts[i]))
