"""How many members of a job each node takes at a later time, when the pods that are expected to end have ended.

A sweep over the expected ends in order. What becomes free is summed by row for the first k of them, and the first k at
which the job fits is found by bisection: capacity only grows with k. Amounts of resources count; what else a filter
rejects a node for now, it is taken to reject it for later.
"""

from typing import Any

import numpy as np

from kubenexus.plan.gang.empty_capacity import lasting_refusals
from kubenexus.plan.gang.member_classes import (
    UNLIMITED,
    MemberClass,
    allocatable_rows,
    has_capacity_point,
    member_amounts,
)
from kubenexus.plan.gang.packing import CombinedCapacity
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.topology import TopologyDomains
from kubenexus.state.view import Nodes


class CapacityOverTime:
    """The free amounts of each row after the first k of the expected ends.

    `ends` is by the pods' slots, infinite for pods that are not expected to end. Ends after `latest` do not count.
    """

    def __init__(self, columns: NodeColumns, ends: Any, latest: float) -> None:
        self._columns, self._view = columns, Nodes(columns)
        rows = columns.pods.rows
        ends = ends[: len(rows)]
        slots = np.flatnonzero((rows >= 0) & (ends <= latest))
        slots = slots[np.argsort(ends[slots], kind="stable")]
        self.times, self._rows = ends[slots], rows[slots]
        self._kinds = columns.pods.victims.kind[slots]
        # By resource and by class, as they are first used: each is read at every step of the bisection.
        self._amounts: dict[str, Any] = {}
        self._open: dict[int, Any] = {}

    def free(self, resource: str, count: int) -> Any:
        """Returns what is free of a resource on each row after the first `count` ends."""
        free = allocatable_rows(resource, self._view) - self._view.used(resource)
        if not count:
            return free
        amounts = self._amounts.get(resource)
        if amounts is None:
            amounts = self._amounts[resource] = self._columns.pods.victims.kinds.amounts(resource)[self._kinds]
        size = self._columns.size
        return free + np.bincount(self._rows[:count], weights=amounts[:count], minlength=size)[:size].astype(np.int64)

    def capacity(self, member_class: MemberClass, count: int, taken: dict[str, Any] | None = None) -> Any:
        """Returns how many members each row takes after the first `count` ends, beside what is `taken` there."""
        rows = self._open.get(id(member_class))
        if rows is None:
            rows = self._open[id(member_class)] = open_rows(member_class, self._columns)
        capacity: Any = np.where(rows, UNLIMITED, 0)
        for name, amount in member_amounts(member_class, self._columns).items():
            free = self.free(name, count)
            if taken and name in taken:
                free = free - taken[name]
            np.minimum(capacity, np.maximum(free, 0) // amount, out=capacity)
        return capacity

    def first_fit(self, member_classes: list[MemberClass], minimum: int, level: TopologyDomains) -> int | None:
        """Returns after how many ends `minimum` members fit in one domain; None if not even after all of them."""
        if not self._fits(member_classes, minimum, level, len(self.times)):
            return None
        low, high = 0, len(self.times)
        while low < high:
            middle = (low + high) // 2
            if self._fits(member_classes, minimum, level, middle):
                high = middle
            else:
                low = middle + 1
        return low

    def by_domain(self, member_classes: list[MemberClass], level: TopologyDomains, count: int) -> Any:
        """Returns how many members each domain takes after the first `count` ends."""
        capacities = [self.capacity(each, count) for each in member_classes]
        return CombinedCapacity(capacities, [each.size for each in member_classes]).capacity(level)

    def _fits(self, member_classes: list[MemberClass], minimum: int, level: TopologyDomains, count: int) -> bool:
        return int(self.by_domain(member_classes, level, count).max(initial=0)) >= minimum


def open_rows(member_class: MemberClass, columns: NodeColumns) -> Any:
    """Returns the rows that are rejected for nothing but lack of capacity, or not at all."""
    table, classified = member_class.classified.table, member_class.classified
    rows: Any = columns.alive[: columns.size] & ~columns.blocked[: columns.size]
    if classified.rejection is not None:
        return np.zeros(columns.size, np.bool_)
    if classified.node_names is not None:
        rows = rows & Nodes(columns).named(classified.node_names)
    for column in table.filters:
        if column.bits is not None:
            bits = lasting_refusals(column) if has_capacity_point(column.plugin) else column.bits
            rows = rows & (bits == 0)
    return rows
