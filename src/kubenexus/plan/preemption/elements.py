"""Victims as elements that go or stay: single pods, members that a gang can spare, and whole gangs."""

from collections.abc import Iterable

from kubenexus.plan.preemption.free_amounts import FreeAmounts
from kubenexus.plan.preemption.least_cover import Element
from kubenexus.plan.preemption.victim_pool import VictimPool


class ElementTable:
    """Makes elements of victims, of at most `most` pods. Costs are compared as (tier, work lost, pods), and elements of
    equal cost are in the order of their UIDs: the API server chooses these, and slots depend on the past."""

    def __init__(self, pool: VictimPool, free: FreeAmounts, most: int) -> None:
        self.pool, self._free, self._most = pool, free, most
        self._ranks, self._work = pool.ranks, pool.work
        self._gang_costs: dict[int, tuple[float, ...]] = {}

    def of(self, indices: Iterable[int], rows: frozenset[int]) -> list[Element]:
        """Returns the elements that these pods belong to, with what each frees on some rows. Not called while pods are
        removed in a transaction (see `VictimPool.record`)."""
        pool = self.pool
        found: list[tuple[str, Element]] = []
        gangs: set[int] = set()
        for index in indices:
            gang = pool.gang.item(index)
            if gang < 0 or pool.spare[gang] > 0:
                found.append((pool.record(index).uid, self._element(index, rows)))
            elif gang not in gangs:
                gangs.add(gang)
                members = pool.members(gang)
                if len(members) <= self._most:
                    first = min([pool.record(member).uid for member in members])
                    found.append((first, self._gang(gang, tuple(members), rows)))
        found.sort(key=_uid)
        return [element for _, element in found]

    def level(self, element: Element) -> int:
        """Returns the highest priority that an element hurts."""
        return int(self.pool.level[element.pods[0]])

    def _element(self, index: int, rows: frozenset[int]) -> Element:
        each = self._free.each
        here = self.pool.rows.item(index) in rows
        frees = tuple([column.item(index) for column in each]) if here else (0.0,) * len(each)
        return Element(frees, (self._ranks.item(index), self._work.item(index), 1.0), (index,))

    def _gang(self, gang: int, pods: tuple[int, ...], rows: frozenset[int]) -> Element:
        row_of = self.pool.rows.item
        there = [index for index in pods if row_of(index) in rows]
        frees = tuple([sum([column.item(index) for index in there]) for column in self._free.each])
        cost = self._gang_costs.get(gang)
        if cost is None:
            rank = max([self._ranks.item(index) for index in pods])
            work = sum([self._work.item(index) for index in pods])
            cost = self._gang_costs[gang] = (rank, work, float(len(pods)))
        return Element(frees, cost, pods)


def _uid(pair: tuple[str, Element]) -> str:
    return pair[0]
