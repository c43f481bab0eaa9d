"""Reservations: the capacity that the first waiting gang needs, and whether a decision for another job would delay it.

A reservation is data: it adds no pod to any node (docs/adr/0008). It covers the capacity for members that is free now,
and as many more nodes as the other members need, those that come closest. Jobs behind the gang go to other nodes, or
where they do not delay it, or wait. Pure; called by `Planner.decide`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.api.gangs.job_key import display_name, is_gang_key, namespace_of
from kubenexus.api.gangs.levels import TopologyLevel
from kubenexus.base.errors import truncated, truncated_key
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.decision import Decision, GangDiagnosis, PodPlacement
from kubenexus.framework.job import Job
from kubenexus.framework.member_constraints import MemberConstraint, MemberRelation
from kubenexus.plan.gang.backtracking import member_record
from kubenexus.plan.gang.empty_capacity import capacity_if_empty
from kubenexus.plan.gang.member_classes import (
    MemberClass,
    count_capacity,
    group_members,
    has_capacity_point,
    member_amounts,
    member_constraints,
)
from kubenexus.plan.gang.placement_sums import largest_placement, total
from kubenexus.plan.gang.replacement import held_for, replacements
from kubenexus.plan.gang.topology import candidate_levels
from kubenexus.state.footprint import footprint_of
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.topology import TopologyDomains
from kubenexus.state.view import Nodes

RESERVED: Final = "GangReservation"  # the plugin name in a diagnosis
MAX_CLASSES: Final = 8  # member classes that capacity is reserved for; each costs time in every decision for other jobs
RESERVATION_ENDED: Final = ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE, name="GangReservationEnd")
_BETTER_NODES: Final = (
    ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
)
EVENTS_TO_REGISTER: Final = {
    RESERVED: (
        ClusterEventWithHint(EventResource.POD_GROUP, ActionType.UPDATE),
        # A new pod may take reserved capacity: then the reservation may end, or another node does no harm.
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.ALL),
        ClusterEventWithHint(EventResource.NODE, _BETTER_NODES),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE),
    )
}


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """The reservation for one gang.

    gang            the key of its job
    member_counts   a member of each class, and how many of that class are needed
    topology        the topology request of the gang
    level, domain   the domain where it comes closest; empty for the whole cluster
    reserved_nodes  for each class the nodes that are to become free for it, and for how many members
    needed          the minimum of the gang
    ready           the part of the members that there is capacity for now (0 to 1), of the class that lacks most
    starts_at       when it is expected to start; infinite if the ends of other pods do not tell (`plan.backfill`)
    planned_at      with `starts_at`: when that was found; pods that had outlived their runtime by then count as longer
    demands, spare  with `starts_at`: what a member of each class requests, and by node what other jobs may take for
                    longer than until then
    """

    gang: str
    member_counts: tuple[tuple[Pod, int], ...]
    topology: TopologyRequest
    level: str = ""
    domain: str = ""
    reserved_nodes: tuple[Mapping[str, int], ...] = ()
    needed: int = 1
    ready: float = 0.0
    starts_at: float = math.inf
    planned_at: float = 0.0
    demands: tuple[Mapping[str, int], ...] = ()
    spare: Mapping[str, Mapping[str, int]] = {}

    @property
    def is_timed(self) -> bool:
        """Whether it is known when the job is expected to start."""
        return self.starts_at < math.inf

    @property
    def nodes(self) -> dict[str, None]:
        """The reserved nodes of all classes."""
        return dict.fromkeys(node for promised in self.reserved_nodes for node in promised)

    def needs_on(self, node: str) -> dict[str, int]:
        """Returns what the members take on a reserved node, by resource."""
        needs: dict[str, int] = {}
        for promised, demand in zip(self.reserved_nodes, self.demands, strict=True):
            for name, amount in demand.items() if node in promised else ():
                needs[name] = needs.get(name, 0) + amount * promised[node]
        return needs

    @property
    def namespace(self) -> str:
        return namespace_of(self.gang)

    @property
    def display_name(self) -> str:
        """The gang as users write it: `ml/llama`."""
        return display_name(self.gang)

    def covers(self) -> tuple[Any, ...]:
        """Returns what other jobs have to avoid. If it changes, jobs that wait because of it may fit."""
        return self.gang, self.level, self.domain, self.reserved_nodes, self.starts_at

    def asks(self) -> dict[str, int]:
        """Returns the sum of what the members request, by resource; `pods` is their number."""
        return total((footprint_of(pod), count) for pod, count in self.member_counts)

    def sentence(self) -> str:
        """Returns the text for users of any namespace: it names neither the gang nor the domain."""
        if self.is_timed:
            return "the room that is left is kept for a job that comes first; jobs that end before it starts go ahead"
        return "the room that is left is kept for a gang that comes first"

    def detail(self) -> str:
        """Returns the text for users of the gang's namespace, and for operators."""
        where = f" in {self.level} {truncated(self.domain)}" if self.domain else ""
        who = f"{'gang' if is_gang_key(self.gang) else 'pod'} {truncated_key(self.display_name)}"
        more = "; jobs that end before it starts go ahead" if self.is_timed else ""
        return f"the room that is left{where} is kept for {who}, which comes first{more}"


class ReservationCheck:
    """Checks decisions against a reservation, on the columns of one generation.

    It caches what it counted: of many jobs that are refused one after the other, only the first pays for it.
    """

    def __init__(
        self, reservation: Reservation, class_cache: ClassCache, snapshot: Snapshot, levels: Sequence[TopologyLevel]
    ) -> None:
        self._reservation, self._class_cache, self._snapshot, self._levels = reservation, class_cache, snapshot, levels
        self._columns, self._now = snapshot.nodes, list[MemberClass]()

    def still(self, reservation: Reservation, snapshot: Snapshot) -> bool:
        """Whether the cached counts hold for this reservation and snapshot."""
        same = self._snapshot.generation == snapshot.generation and self._columns is snapshot.nodes
        return same and self._reservation is reservation

    def is_delayed_by(self, decision: Decision, job: Job) -> bool:
        """Whether fewer of the gang's members would fit after this decision, now or when their nodes are free.

        Replacements of lost members, within the capacity that is held for them, never delay the gang.
        """
        rows, pods = self._snapshot.nodes.row_of, {pod.metadata.uid: pod for pod in job.pods}
        again = replacements(decision.placements, held_for(job, self._snapshot))
        taken = [(rows[each.node], each) for each in decision.placements if each.uid not in again]
        member_classes = self._before()
        with self._snapshot.attempt() as transaction:
            for each in decision.placements if again else ():
                if each.uid in again:
                    transaction.add_pod(rows[each.node], member_record(pods[each.uid], each, self._columns))
            member_classes = self._counted() if again and taken else member_classes
            if any(
                self._spoils(member_class, promised, taken) for member_class, promised in self._promises(member_classes)
            ):
                return True
            if not any(member_class.capacity[row] for member_class in member_classes for row, _ in taken):
                return False
            before = self._fit(member_classes)
            for row, placement in taken:
                transaction.add_pod(row, member_record(pods[placement.uid], placement, self._columns))
            return self._fit(self._counted()) < before

    def alternative_rows(self, decision: Decision, job: Job) -> Iterator[Any]:
        """Yields masks of rows to try instead: first the rows where one pod of the job does no harm, or where capacity
        is held for the job; then the rows that the reservation does not use."""
        member_classes, size = self._before(), self._snapshot.nodes.size
        wanted = [
            self._wanted(member_class, promised, size) for member_class, promised in self._promises(member_classes)
        ]
        largest = largest_placement(decision)
        own = self.own(job)
        yield own | ~np.logical_or.reduce(
            [self._harmed(c, n, largest) for c, n in zip(member_classes, wanted, strict=True)]
        )
        yield ~np.logical_or.reduce([number > 0 for number in wanted])

    def own(self, job: Job) -> Any:
        """Returns the rows where the ledger holds capacity of lost members for the job."""
        rows = np.zeros(self._snapshot.nodes.size, np.bool_)
        rows[[self._snapshot.nodes.row_of[node] for node in held_for(job, self._snapshot)]] = True
        return rows

    # --- free capacity --------------------------------------------------------------------------------------------

    def _before(self) -> list[MemberClass]:
        """Returns the capacity before the decision, cached."""
        if not self._now:
            self._now = self._counted()
        return self._now

    def _member_classes(self) -> list[MemberClass]:
        columns = self._snapshot.nodes
        return [
            MemberClass(self._class_cache.lookup(pod, columns), [pod] * count)
            for pod, count in self._reservation.member_counts
        ]

    def _counted(self) -> list[MemberClass]:
        """Returns the classes with the number of members that each row of the domain takes, 0 outside."""
        columns, member_classes = self._snapshot.nodes, self._member_classes()
        ties = member_constraints(member_classes, columns)
        allowed = self._domain_rows(ties)
        for member_class in member_classes:
            count_capacity(
                member_class,
                columns,
                freely={constraint.plugin for constraint in ties if constraint.relation is MemberRelation.SPREAD},
            )
            member_class.capacity[~allowed] = 0
            np.minimum(member_class.capacity, member_class.size, out=member_class.capacity)
        return member_classes

    def _domain_rows(self, ties: list[MemberConstraint]) -> Any:
        held, columns = self._reservation, self._snapshot.nodes
        if not held.level:
            return columns.alive[: columns.size]
        level = self._level(ties)
        if not held.domain:
            return level.codes != 0
        return np.isin(level.codes, [code for code, name in enumerate(level.names) if code and name == held.domain])

    def _level(self, ties: list[MemberConstraint]) -> TopologyDomains:
        """Returns the level that the reservation names."""
        together = [constraint.topology for constraint in ties if constraint.relation is MemberRelation.AFFINITY]
        levels = candidate_levels(self._reservation.topology, together, self._levels, self._snapshot.nodes)
        return next((each for each in levels if each.level == self._reservation.level), levels[-1])

    def _fit(self, member_classes: list[MemberClass]) -> int:
        return sum(min(member_class.size, int(member_class.capacity.sum())) for member_class in member_classes)

    # --- nodes that are to become free ----------------------------------------------------------------------------

    def with_reserved_nodes(self) -> Reservation:
        """Returns the reservation with `reserved_nodes`: for each class the nodes that come closest to holding the
        members without capacity, and for how many each. If no domain holds a member yet, it chooses the one that comes
        closest."""
        held, member_classes = self._reservation, self._counted()
        if held.level and not held.domain:
            self._reservation = held = msgspec.structs.replace(held, domain=self._nearest_domain(member_classes))
        allowed = self._domain_rows(member_constraints(member_classes, self._snapshot.nodes))
        ready = min(min(int(member_class.capacity.sum()) / member_class.size, 1.0) for member_class in member_classes)
        promised = tuple([self._nearest(member_class, allowed) for member_class in member_classes])
        return msgspec.structs.replace(held, reserved_nodes=promised, ready=min(ready, held.ready))

    def _nearest_domain(self, member_classes: list[MemberClass]) -> str:
        """Returns the domain with the most usable capacity, of those that would hold all members if they were empty."""
        columns = self._snapshot.nodes
        level = self._level(member_constraints(member_classes, columns))
        near, holds = np.zeros(level.size), np.ones(level.size, np.bool_)
        for member_class in member_classes:
            aim = np.minimum(capacity_if_empty(member_class, columns), member_class.size)
            near += np.bincount(
                level.codes, weights=self._nearness(member_class, aim) * (aim > 0), minlength=level.size
            )
            holds &= np.bincount(level.codes, weights=aim, minlength=level.size) >= member_class.size
        holds[0] = False
        return level.names[int(np.where(holds, near, -1.0).argmax())] if holds.any() else ""

    def _nearest(self, member_class: MemberClass, allowed: Any) -> Mapping[str, int]:
        columns = self._snapshot.nodes
        missing = member_class.size - int(member_class.capacity.sum())
        if missing <= 0:
            return {}
        aim = np.minimum(capacity_if_empty(member_class, columns), member_class.capacity + missing)
        aim[~allowed | self._closed(member_class)] = 0
        rows = np.flatnonzero(aim > member_class.capacity)
        near = self._nearness(member_class, aim)[rows]
        rows = rows[np.argsort(-near, kind="stable")]
        enough = int(np.searchsorted((aim - member_class.capacity)[rows].cumsum(), missing)) + 1
        return {columns.names[row]: int(aim[row]) for row in rows[:enough].tolist()}

    def _closed(self, member_class: MemberClass) -> Any:
        """Returns the rows that are rejected for other reasons than capacity: to free them would not help."""
        closed = np.zeros(self._snapshot.nodes.size, np.bool_)
        for column in member_class.classified.table.filters:
            if column.bits is not None and not has_capacity_point(column.plugin):
                closed |= column.bits != 0
        return closed

    def _nearness(self, member_class: MemberClass, aim: Any) -> Any:
        """Returns the part of what `aim` members need that each row has free: 0 to 1, summed over the resources."""
        view, total = Nodes(self._snapshot.nodes), np.zeros(len(aim))
        for name, amount in member_class.classified.table.pod.demand.amounts:
            if amount:
                total += np.clip((view.alloc(name) - view.used(name)) / (np.maximum(aim, 1) * amount), 0, 1)
        return total

    def _promises(self, member_classes: list[MemberClass]) -> Iterator[tuple[MemberClass, Mapping[str, int]]]:
        promised = self._reservation.reserved_nodes or ({},) * len(member_classes)
        return zip(member_classes, promised, strict=True)

    def _spoils(
        self, member_class: MemberClass, promised: Mapping[str, int], taken: list[tuple[int, PodPlacement]]
    ) -> bool:
        """Whether the decision takes what the members will need on a reserved node."""
        view, sums = Nodes(self._snapshot.nodes), dict[tuple[int, str], int]()
        numbers = {row: promised[each.node] for row, each in taken if each.node in promised}
        for row, each in taken if numbers else ():
            for name, amount in each.footprint.amounts:
                sums[row, name] = sums.get((row, name), 0) + amount
        return any(
            sums.get((row, name)) and view.alloc(name)[row] - view.used(name)[row] - sums[row, name] < number * amount
            for row, number in numbers.items()
            for name, amount in member_class.classified.table.pod.demand.amounts
        )

    # --- other rows -----------------------------------------------------------------------------------------------

    def _wanted(self, member_class: MemberClass, promised: Mapping[str, int], size: int) -> Any:
        """Returns how many members each row is to hold."""
        wanted, rows = np.zeros(size, np.int64), self._snapshot.nodes.row_of
        for node, number in promised.items():
            if node in rows:
                wanted[rows[node]] = number
        return np.maximum(wanted, member_class.capacity)

    def _harmed(self, member_class: MemberClass, wanted: Any, largest: Mapping[str, int]) -> Any:
        """Returns the rows that would no longer hold `wanted` members beside a pod of size `largest`."""
        view, harmed = Nodes(self._snapshot.nodes), np.zeros(len(wanted), np.bool_)
        for name, amount in (*member_class.classified.table.pod.demand.amounts, ("pods", 1)):
            if largest.get(name):
                harmed |= (view.alloc(name) - view.used(name) - largest[name] < wanted * amount) & (wanted > 0)
        return harmed


def reserve(
    job: Job,
    gang_diagnosis: GangDiagnosis,
    class_cache: ClassCache,
    snapshot: Snapshot,
    levels: Sequence[TopologyLevel],
) -> Reservation:
    """Returns the reservation for a gang that was just refused for lack of capacity.

    With more than MAX_CLASSES classes, it is for those that request most.
    """
    member_classes = group_members(job.pods, class_cache, snapshot.nodes)
    most = gang_diagnosis.needed if len(member_classes) == 1 else len(job.pods)
    if len(member_classes) > MAX_CLASSES:
        member_classes = sorted(member_classes, key=lambda member_class: -_weight(member_class, snapshot.nodes))[
            :MAX_CLASSES
        ]
    sorts = tuple([(member_class.pods[0], min(member_class.size, most)) for member_class in member_classes])
    needed, ready = gang_diagnosis.needed, gang_diagnosis.fit / max(gang_diagnosis.needed, 1)
    bare = Reservation(
        job.key, sorts, job.topology, gang_diagnosis.level, gang_diagnosis.domain, needed=needed, ready=min(ready, 1.0)
    )
    return ReservationCheck(bare, class_cache, snapshot, levels).with_reserved_nodes()


def _weight(member_class: MemberClass, columns: NodeColumns) -> float:
    """Returns what the members request, in units of the largest node."""
    index, largest = columns.resources.index, columns.resources.max_allocatable
    asked = [
        amount / max(largest[index[name]], 1)
        for name, amount in member_amounts(member_class, columns).items()
        if name in index
    ]
    return member_class.size * max(asked, default=0.0)


def is_capacity_shortage(gang_diagnosis: GangDiagnosis) -> bool:
    """Whether the gang waits for capacity.

    Not if no capacity would do, or none that will ever be free. Where members limit each other, only if some of them
    fit: otherwise it is not known whether the others lack capacity.
    """
    if gang_diagnosis.exceeds_cluster or gang_diagnosis.endless or gang_diagnosis.unlabelled:
        return False
    if gang_diagnosis.spread and not gang_diagnosis.short_domains:
        return False
    return gang_diagnosis.fit > 0 or not gang_diagnosis.constraint
