"""Victims as elements that go or stay: single pods, members that a gang can spare, and whole gangs."""

from collections.abc import Iterable
from typing import Any

from kubenexus.plan.preemption.free_amounts import FreeAmounts
from kubenexus.plan.preemption.least_cover import Element
from kubenexus.plan.preemption.victim_pool import VictimPool


class ElementTable:
    """Makes elements of victims. What an element costs is compared as (tier, work lost, pods)."""

    def __init__(self, pool: VictimPool, free: FreeAmounts, now: float) -> None:
        self.pool, self._free = pool, free
        self._ranks, self._work = pool.ranks, pool.work(now)

    def of(self, indices: Iterable[int], rows: frozenset[int]) -> list[Element]:
        """Returns the elements that these pods belong to, with what each frees on some rows."""
        pool = self.pool
        found: list[Element] = []
        gangs: set[int] = set()
        for index in indices:
            gang = int(pool.gang[index])
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
        here = [index for index in pods if int(self.pool.rows[index]) in rows]
        each = self._free.each
        frees = tuple([float(sum([column[index] for index in here])) for column in each])
        rank = max(float(self._ranks[index]) for index in pods)
        return Element(frees, (rank, _total(self._work, pods), float(len(pods))), pods)


def _total(column: Any, pods: tuple[int, ...]) -> float:
    return float(sum([column[index] for index in pods]))
