"""The reservation of the first job in the queue at its earliest expected start (EASY backfill).

now                       starts_at
 │ a job that ends here      │
 ├───────────────▶│          │   goes ahead, wherever there is room
 │ a job that runs longer    │
 ├───────────────────────────┼──────▶   only beside what the first job needs: `Reservation.spare`
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from kubenexus.api.gangs.levels import TopologyLevel
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import Job
from kubenexus.framework.member_constraints import MemberRelation
from kubenexus.plan.backfill.capacity_over_time import CapacityOverTime
from kubenexus.plan.gang.member_classes import MemberClass, group_members, member_amounts, member_constraints
from kubenexus.plan.gang.reservation import MAX_CLASSES, Reservation
from kubenexus.plan.gang.topology import candidate_levels
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.topology import TopologyDomains
from kubenexus.state.view import Nodes

MAX_AHEAD: Final = 7 * 86_400.0  # seconds; what is expected to end later is not waited for


def reserve_at_start(
    job: Job,
    class_cache: ClassCache,
    snapshot: Snapshot,
    levels: Sequence[TopologyLevel],
    now: float,
    ahead: float = MAX_AHEAD,
) -> Reservation | None:
    """Returns the reservation for a job that was just refused, at the time when it is expected to fit.

    None if it would fit now by the amounts of resources (so it waits for something else), not within `ahead` seconds,
    or not by ends that are known. Members that limit each other by more than capacity have none either.
    """
    columns = snapshot.nodes
    ends = columns.pods.expected_ends
    if not ends.known:
        return None
    member_classes = group_members(job.pods, class_cache, columns)
    ties = member_constraints(member_classes, columns) if len(job.pods) > 1 else []
    if len(member_classes) > MAX_CLASSES or any(each.relation is not MemberRelation.AFFINITY for each in ties):
        return None
    level = candidate_levels(job.topology, [each.topology for each in ties], levels, columns)[-1]
    sweep = CapacityOverTime(columns, columns.pods.with_terminating(ends.ends(now), now), now + ahead)
    count = sweep.first_fit(member_classes, job.minimum, level)
    if not count:
        return None
    found = _reservation(job, member_classes, level, sweep, count, columns)
    return with_spare(msgspec.structs.replace(found, planned_at=now), columns, now)


def _reservation(
    job: Job,
    member_classes: list[MemberClass],
    level: TopologyDomains,
    sweep: CapacityOverTime,
    count: int,
    columns: NodeColumns,
) -> Reservation:
    domain = int(sweep.by_domain(member_classes, level, count).argmax())
    within = level.codes == domain
    taken: dict[str, Any] = {}
    reserved, demands = list[dict[str, int]](), list[dict[str, int]]()
    left = job.minimum if len(member_classes) == 1 else len(job.pods)
    for member_class in member_classes:
        amounts = member_amounts(member_class, columns)
        numbers = _choose_rows(sweep, member_class, count, taken, within, min(left, member_class.size))
        for name, amount in amounts.items():
            taken[name] = taken.get(name, 0) + numbers * amount
        rows = np.flatnonzero(numbers).tolist()
        reserved.append({columns.names[row]: int(numbers[row]) for row in rows})
        demands.append(amounts)
    fits = int(sweep.by_domain(member_classes, level, 0).max(initial=0))
    return Reservation(
        job.key,
        tuple([(each.pods[0], min(each.size, left)) for each in member_classes]),
        job.topology,
        level.level if job.topology.required else "",
        level.names[domain] if job.topology.required else "",
        tuple(reserved),
        needed=job.minimum,
        ready=min(fits / max(job.minimum, 1), 1.0),
        starts_at=float(sweep.times[count - 1]),
        demands=tuple(demands),
    )


def _choose_rows(
    sweep: CapacityOverTime, member_class: MemberClass, count: int, taken: dict[str, Any], within: Any, wanted: int
) -> Any:
    """Returns for how many of `wanted` members each row is reserved: rows that are free now first, then the fewest."""
    capacity = np.where(within, sweep.capacity(member_class, count, taken), 0)
    now = np.where(within, sweep.capacity(member_class, 0, taken), 0)
    capacity, now = np.minimum(capacity, wanted), np.minimum(now, wanted)
    order = np.lexsort((-capacity, -now))
    before = np.concatenate([[0], capacity[order].cumsum()[:-1]])
    numbers = np.zeros(len(capacity), np.int64)
    numbers[order] = np.clip(wanted - before, 0, capacity[order])
    return numbers


def with_spare(held: Reservation, columns: NodeColumns, now: float) -> Reservation:
    """Returns the reservation with what its nodes have beyond its needs when it starts, by the pods that are there now.

    A pod that has outlived its estimate since the reservation was planned still counts as one that ends in time: the
    first job waits for it, and others must not take its place. Amounts below 0 mean that pods came which the
    reservation does not hold back.
    """
    rows = np.array([columns.row_of[node] for node in held.nodes if node in columns.row_of], np.int64)
    freed = _Freed(columns, rows, held, now)
    spare: dict[str, Mapping[str, int]] = {}
    for name in held.nodes:
        row = columns.row_of.get(name)
        if row is not None:
            needs = held.needs_on(name)
            spare[name] = {resource: freed.free(resource, row) - amount for resource, amount in needs.items()}
    return held if spare == held.spare else msgspec.structs.replace(held, spare=spare)


class _Freed:
    """What is free on some rows at a time, summed for each resource at its first use."""

    def __init__(self, columns: NodeColumns, rows: Any, held: Reservation, now: float) -> None:
        self._columns, self._view = columns, Nodes(columns)
        there = columns.pods.rows
        wanted = np.zeros(columns.size + 1, np.bool_)
        wanted[rows] = True
        slots = np.flatnonzero(wanted[there] & (there >= 0))
        ends = columns.pods.expected_ends.ends(now, held.planned_at, slots)
        slots = slots[(ends <= held.starts_at) | columns.pods.is_terminating(slots)]
        self._rows, self._kinds = there[slots], columns.pods.victims.kind[slots]
        self._free: dict[str, Any] = {}

    def free(self, resource: str, row: int) -> int:
        known = self._free.get(resource)
        if known is None:
            amounts = self._columns.pods.victims.kinds.amounts(resource)[self._kinds]
            size = self._columns.size
            freed = np.bincount(self._rows, weights=amounts, minlength=size)[:size].astype(np.int64)
            known = self._free[resource] = self._view.alloc(resource) - self._view.used(resource) + freed
        return int(known[row])
