"""Victims as elements that go or stay: single pods, members that a gang can spare, and whole gangs."""

from collections.abc import Iterable

from kubenexus.plan.preemption.free_amounts import FreeAmounts
from kubenexus.plan.preemption.least_cover import Element
from kubenexus.plan.preemption.victim_pool import VictimPool


class ElementTable:
    """Makes elements of victims. What an element costs is compared as (tier, work lost, pods)."""

    def __init__(self, pool: VictimPool, free: FreeAmounts) -> None:
        self.pool, self._free = pool, free
        self._ranks, self._work = pool.ranks, pool.work

    def of(self, indices: Iterable[int], rows: frozenset[int]) -> list[Element]:
        """Returns the elements that these pods belong to, with what each frees on some rows."""
        pool = self.pool
        found: list[Element] = []
        gangs: set[int] = set()
        for index in indices:
            gang = pool.gang.item(index)
            if gang < 0 or pool.spare[gang] > 0:
                found.append(self._element((index,), rows))
            elif gang not in gangs:
                gangs.add(gang)
                found.append(self._element(tuple(pool.members(gang)), rows))
        return found

    def level(self, element: Element) -> int:
        """Returns the highest priority that an element hurts."""
        return int(self.pool.level[element.pods[0]])

    def _element(self, pods: tuple[int, ...], rows: frozenset[int]) -> Element:
        row_of, each = self.pool.rows.item, self._free.each
        if len(pods) == 1:
            here = pods[0]
            frees = tuple([column.item(here) for column in each]) if row_of(here) in rows else (0.0,) * len(each)
            return Element(frees, (self._ranks.item(here), self._work.item(here), 1.0), pods)
        there = [index for index in pods if row_of(index) in rows]
        frees = tuple([sum([column.item(index) for index in there]) for column in each])
        rank = max([self._ranks.item(index) for index in pods])
        return Element(frees, (rank, sum([self._work.item(index) for index in pods]), float(len(pods))), pods)
