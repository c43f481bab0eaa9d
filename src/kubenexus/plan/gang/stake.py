"""Room that the first gang in line waits for, and whether a decision for somebody else would push it back.

A reservation is data: no pod stands for it on any node (docs/adr/0008). It covers what room there is for members now,
and as many more nodes as the rest of them needs: those that come closest. Who comes after the gang goes elsewhere, or
where it does no harm, or waits. Asked by `Planner.decide`; pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import Nearness
from kubenexus.api.gangs.levels import Level
from kubenexus.base.errors import shown, shown_key
from kubenexus.cycle.bench import Bench
from kubenexus.framework.bonds import Bond, Tie
from kubenexus.framework.decision import Certificate, Decision, Placement
from kubenexus.framework.events import Action, Event, Resource, Wake
from kubenexus.framework.job import Job
from kubenexus.plan.gang.axes import Axis, levels_for
from kubenexus.plan.gang.capacity import if_empty
from kubenexus.plan.gang.crews import Crew, asked_by, bonds, count_room, counts, muster
from kubenexus.plan.gang.replacement import held_for, replacements
from kubenexus.plan.gang.search import member_record
from kubenexus.state.footprint import Footprint, footprint_of
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.view import Nodes

RESERVED: Final = "GangReservation"  # who refused, in a diagnosis
MOST_SORTS: Final = 8  # of members that room is kept for: each is looked at with each decision for another job
ENDED: Final = Event(Resource.POD_GROUP, Action.UPDATE, name="GangReservationEnd")
_MORE: Final = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
WAKES: Final = {
    RESERVED: (
        Wake(Resource.POD_GROUP, Action.UPDATE),
        # A pod that comes may take what was kept: then to keep the rest has no sense, or another place does no harm.
        Wake(Resource.ASSIGNED_POD, Action.ALL),
        Wake(Resource.NODE, _MORE),
        Wake(Resource.TARGET_POD, Action.UPDATE),
    )
}


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """A gang (the key of its job) and the domain where it comes closest, both names empty for the whole cluster.
    `sorts`: a member of each sort, and how many of it are needed. `promised`: for each sort the nodes that are to be
    cleared for it, and for how many. `ready`: for which part of the members there is room now, from 0 to 1, by the sort
    that lacks most of it; `needed` of them make the gang."""

    gang: str
    sorts: tuple[tuple[Pod, int], ...]
    topology: Nearness
    level: str = ""
    domain: str = ""
    promised: tuple[Mapping[str, int], ...] = ()
    needed: int = 1
    ready: float = 0.0

    @property
    def namespace(self) -> str:
        return self.gang.partition("/")[0]

    @property
    def title(self) -> str:
        """`ml/llama`: a gang's key has its family in the middle."""
        namespace, _, rest = self.gang.partition("/")
        return f"{namespace}/{rest.rpartition('/')[2]}"

    def covers(self) -> tuple[Any, ...]:
        """What others have to keep off: if it changes, those that wait for it may find a place."""
        return self.gang, self.level, self.domain, self.promised

    def asks(self) -> dict[str, int]:
        """What all that room is kept for asks for together: resources, and places for pods."""
        return total((footprint_of(pod), count) for pod, count in self.sorts)

    def sentence(self) -> str:
        """For everybody: neither the gang nor the domain is named."""
        return "the room that is left is kept for a gang that comes first"

    def detail(self) -> str:
        """For readers of the gang's own namespace, and for operators."""
        where = f" in {self.level} {shown(self.domain)}" if self.domain else ""
        return f"the room that is left{where} is kept for gang {shown_key(self.title)}, which comes first"


class Stake:
    """What a reservation comes to on the columns of one generation. What it has counted is kept: of many jobs that are
    refused one after the other, only the first pays for it."""

    def __init__(self, reservation: Reservation, bench: Bench, snapshot: Snapshot, levels: Sequence[Level]) -> None:
        self._reservation, self._bench, self._snapshot, self._levels = reservation, bench, snapshot, levels
        self._columns, self._now = snapshot.nodes, list[Crew]()

    def still(self, reservation: Reservation, snapshot: Snapshot) -> bool:
        """Whether what it has counted holds for this reservation and snapshot."""
        same = self._snapshot.generation == snapshot.generation and self._columns is snapshot.nodes
        return same and self._reservation is reservation

    def hurt_by(self, decision: Decision, job: Job) -> bool:
        """Whether fewer of the gang's members would find room if this were done, now or when their nodes are clear.
        What replaces lost members in the room that is held for them is there before all else."""
        rows, pods = self._snapshot.nodes.row_of, {pod.metadata.uid: pod for pod in job.pods}
        again = replacements(decision.placements, held_for(job, self._snapshot))
        taken = [(rows[each.node], each) for each in decision.placements if each.uid not in again]
        crews = self._before()
        with self._snapshot.attempt() as attempt:
            for each in decision.placements if again else ():
                if each.uid in again:
                    attempt.lay(rows[each.node], member_record(pods[each.uid], each))
            crews = self._counted() if again and taken else crews
            if any(self._spoils(crew, promised, taken) for crew, promised in self._promises(crews)):
                return True
            if not any(crew.room[row] for crew in crews for row, _ in taken):
                return False
            before = self._fit(crews)
            for row, placement in taken:
                attempt.lay(row, member_record(pods[placement.uid], placement))
            return self._fit(self._counted()) < before

    def elsewhere(self, decision: Decision, job: Job) -> Iterator[Any]:
        """Masks of rows to try instead: those where one member more of the job does no harm, or where room is held for
        it; then those of which the gang wants nothing."""
        crews, size = self._before(), self._snapshot.nodes.size
        wanted = [self._wanted(crew, promised, size) for crew, promised in self._promises(crews)]
        largest = _largest(decision)
        own = self.own(job)
        yield own | ~np.logical_or.reduce([self._harmed(c, n, largest) for c, n in zip(crews, wanted, strict=True)])
        yield ~np.logical_or.reduce([number > 0 for number in wanted])

    def own(self, job: Job) -> Any:
        """The rows where room of its lost members is held for the job."""
        rows = np.zeros(self._snapshot.nodes.size, np.bool_)
        rows[[self._snapshot.nodes.row_of[node] for node in held_for(job, self._snapshot)]] = True
        return rows

    # --- how much room there is -----------------------------------------------------------------------------------

    def _before(self) -> list[Crew]:
        """As it is while nothing more is placed."""
        if not self._now:
            self._now = self._counted()
        return self._now

    def _crews(self) -> list[Crew]:
        columns = self._snapshot.nodes
        return [Crew(self._bench.look(pod, columns), [pod] * count) for pod, count in self._reservation.sorts]

    def _counted(self) -> list[Crew]:
        """How many members each row of the site takes, none outside."""
        columns, crews = self._snapshot.nodes, self._crews()
        ties = bonds(crews, columns)
        site = self._site(ties)
        for crew in crews:
            count_room(crew, columns, freely={bond.plugin for bond in ties if bond.tie is Tie.EVEN})
            crew.room[~site] = 0
            np.minimum(crew.room, crew.size, out=crew.room)
        return crews

    def _site(self, ties: list[Bond]) -> Any:
        held, columns = self._reservation, self._snapshot.nodes
        if not held.level:
            return columns.alive[: columns.size]
        axis = self._axis(ties)
        if not held.domain:
            return axis.codes != 0
        return np.isin(axis.codes, [code for code, name in enumerate(axis.names) if code and name == held.domain])

    def _axis(self, ties: list[Bond]) -> Axis:
        """The level that the reservation names."""
        together = [bond.topology for bond in ties if bond.tie is Tie.TOGETHER]
        axes = levels_for(self._reservation.topology, together, self._levels, self._snapshot.nodes)
        return next((each for each in axes if each.level == self._reservation.level), axes[-1])

    def _fit(self, crews: list[Crew]) -> int:
        return sum(min(crew.size, int(crew.room.sum())) for crew in crews)

    # --- nodes that are to be cleared -----------------------------------------------------------------------------

    def promise(self) -> Reservation:
        """The reservation with its promises: for each sort the nodes that come closest to holding those who lack room,
        and how many each is to hold. Where no domain holds anybody yet, the one that comes closest is chosen."""
        held, crews = self._reservation, self._counted()
        if held.level and not held.domain:
            self._reservation = held = msgspec.structs.replace(held, domain=self._nearest_domain(crews))
        site = self._site(bonds(crews, self._snapshot.nodes))
        ready = min(min(int(crew.room.sum()) / crew.size, 1.0) for crew in crews)
        promised = tuple([self._nearest(crew, site) for crew in crews])
        return msgspec.structs.replace(held, promised=promised, ready=min(ready, held.ready))

    def _nearest_domain(self, crews: list[Crew]) -> str:
        """Of those that would hold all if they were empty, the one with the most that is of use."""
        columns = self._snapshot.nodes
        axis = self._axis(bonds(crews, columns))
        near, holds = np.zeros(axis.size), np.ones(axis.size, np.bool_)
        for crew in crews:
            aim = np.minimum(if_empty(crew, columns), crew.size)
            near += np.bincount(axis.codes, weights=self._nearness(crew, aim) * (aim > 0), minlength=axis.size)
            holds &= np.bincount(axis.codes, weights=aim, minlength=axis.size) >= crew.size
        holds[0] = False
        return axis.names[int(np.where(holds, near, -1.0).argmax())] if holds.any() else ""

    def _nearest(self, crew: Crew, site: Any) -> Mapping[str, int]:
        columns = self._snapshot.nodes
        missing = crew.size - int(crew.room.sum())
        if missing <= 0:
            return {}
        aim = np.minimum(if_empty(crew, columns), crew.room + missing)
        aim[~site | self._closed(crew)] = 0
        rows = np.flatnonzero(aim > crew.room)
        near = self._nearness(crew, aim)[rows]
        rows = rows[np.argsort(-near, kind="stable")]
        enough = int(np.searchsorted((aim - crew.room)[rows].cumsum(), missing)) + 1
        return {columns.names[row]: int(aim[row]) for row in rows[:enough].tolist()}

    def _closed(self, crew: Crew) -> Any:
        """The rows that something else than room keeps members from: clearing them would be in vain."""
        closed = np.zeros(self._snapshot.nodes.size, np.bool_)
        for column in crew.member.table.filters:
            if column.bits is not None and not counts(column.plugin):
                closed |= column.bits != 0
        return closed

    def _nearness(self, crew: Crew, aim: Any) -> Any:
        """How much of what so many members need each row has free, from 0 to 1 for each resource."""
        view, total = Nodes(self._snapshot.nodes), np.zeros(len(aim))
        for name, amount in crew.member.table.pod.demand.amounts:
            if amount:
                total += np.clip((view.alloc(name) - view.used(name)) / (np.maximum(aim, 1) * amount), 0, 1)
        return total

    def _promises(self, crews: list[Crew]) -> Iterator[tuple[Crew, Mapping[str, int]]]:
        promised = self._reservation.promised or ({},) * len(crews)
        return zip(crews, promised, strict=True)

    def _spoils(self, crew: Crew, promised: Mapping[str, int], taken: list[tuple[int, Placement]]) -> bool:
        """Whether somebody takes on a promised node what the members will need there."""
        view, sums = Nodes(self._snapshot.nodes), dict[tuple[int, str], int]()
        numbers = {row: promised[each.node] for row, each in taken if each.node in promised}
        for row, each in taken if numbers else ():
            for name, amount in each.footprint.amounts:
                sums[row, name] = sums.get((row, name), 0) + amount
        return any(
            sums.get((row, name)) and view.alloc(name)[row] - view.used(name)[row] - sums[row, name] < number * amount
            for row, number in numbers.items()
            for name, amount in crew.member.table.pod.demand.amounts
        )

    # --- where else -----------------------------------------------------------------------------------------------

    def _wanted(self, crew: Crew, promised: Mapping[str, int], size: int) -> Any:
        """How many members each row is to hold."""
        wanted, rows = np.zeros(size, np.int64), self._snapshot.nodes.row_of
        for node, number in promised.items():
            if node in rows:
                wanted[rows[node]] = number
        return np.maximum(wanted, crew.room)

    def _harmed(self, crew: Crew, wanted: Any, largest: Mapping[str, int]) -> Any:
        """The rows that would no longer hold so many with somebody so large there, too."""
        view, harmed = Nodes(self._snapshot.nodes), np.zeros(len(wanted), np.bool_)
        for name, amount in (*crew.member.table.pod.demand.amounts, ("pods", 1)):
            if largest.get(name):
                harmed |= (view.alloc(name) - view.used(name) - largest[name] < wanted * amount) & (wanted > 0)
        return harmed


def reserve(
    job: Job, certificate: Certificate, bench: Bench, snapshot: Snapshot, levels: Sequence[Level]
) -> Reservation:
    """For a gang that was just refused for want of room. Of one with many sorts of members, for those that ask for
    most."""
    crews = muster(job.pods, bench, snapshot.nodes)
    most = certificate.needed if len(crews) == 1 else len(job.pods)
    if len(crews) > MOST_SORTS:
        crews = sorted(crews, key=lambda crew: -_weight(crew, snapshot.nodes))[:MOST_SORTS]
    sorts = tuple([(crew.pods[0], min(crew.size, most)) for crew in crews])
    needed, ready = certificate.needed, certificate.fit / max(certificate.needed, 1)
    bare = Reservation(
        job.key, sorts, job.topology, certificate.level, certificate.domain, needed=needed, ready=min(ready, 1.0)
    )
    return Stake(bare, bench, snapshot, levels).promise()


def _weight(crew: Crew, columns: NodeColumns) -> float:
    """How much its members ask for, in parts of the largest node there is."""
    index, largest = columns.resources.index, columns.resources.largest
    asked = [amount / max(largest[index[name]], 1) for name, amount in asked_by(crew, columns).items() if name in index]
    return crew.size * max(asked, default=0.0)


def total(parts: Iterable[tuple[Footprint, int]]) -> dict[str, int]:
    """What so many of each ask for together; `pods` says how many they are."""
    sums = {"pods": 0}
    for footprint, count in parts:
        for name, amount in (*footprint.amounts, ("pods", 1)):
            sums[name] = sums.get(name, 0) + amount * count
    return sums


def lacks_room(certificate: Certificate) -> bool:
    """Whether it is room that a gang waits for. Not if no room would do, or none that will ever be free; and where
    members limit each other, only once some have found their place: whether the others lack room is not known."""
    if certificate.never or certificate.endless or certificate.unlabelled:
        return False
    if certificate.spread and not certificate.spots:
        return False
    return certificate.fit > 0 or not certificate.constraint


def _largest(decision: Decision) -> Mapping[str, int]:
    """The most that one of the members takes of each resource."""
    most = {"pods": 1}
    for footprint in {id(each.footprint): each.footprint for each in decision.placements}.values():
        for name, amount in footprint.amounts:
            most[name] = max(most.get(name, 0), amount)
    return most
