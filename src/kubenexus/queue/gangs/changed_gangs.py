"""`ChangedGangs`: the gangs whose jobs have to be built again, and when each is built.

    an object is updated ──▶ _updated ──▶ regrouped ─┐
    a member is lost, bound, started, ... ▶ urgent ──┤  credit of that line
    a member came, or left its gates ─────▶ grown ───┼──────────────────────▶ at_once ──▶ next
    a member changed otherwise ───────────▶ edited ──┘

One update of an object may concern thousands of gangs, so it is recorded in constant time: the object gets a number.
Its gangs are in the order in which they were last marked, and those with a smaller number are marked in portions.
Until a gang is built, `is_outdated` is true, and none of its jobs is decided.
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Final, Protocol

from kubenexus.api.gangs.job_key import namespace_of
from kubenexus.queue.gangs.namespace_turns import NamespaceTurns
from kubenexus.queue.gangs.rebuild_pacing import GROWTH, RebuildPacing

Named = tuple[str, str, str]  # an object: its kind, its namespace and its name

MARKED: Final = 500  # gangs of updated objects that one call of `mark_due` marks: 1 ms
LEAST_WEIGHT: Final = 8  # members that a smaller gang counts as, when objects have it built: 2,500 gangs at once
PAUSE: Final = 0.05  # seconds for which such gangs gather credit, so that the loop does not wake up for each of them

_UNKNOWN: Final = object()


class NumberedGang(Protocol):
    """What is read and written here of a `GangState`. `marked` is the number of the last update that it was marked
    for."""

    @property
    def size(self) -> int:
        """How many members it has."""

    names: set[Named]
    marked: int


class _NamedObject:
    """An object that gangs name. `number` is that of its last update, `meaning` what gangs read of it."""

    __slots__ = ("gangs", "meaning", "number")

    def __init__(self) -> None:
        self.gangs: OrderedDict[str, None] = OrderedDict()
        self.number = 0
        self.meaning: Hashable | object = _UNKNOWN


class _PacedLine:
    """Gangs that are built once there is credit. `exempt`: a gang of which a thirty-second has changed needs none."""

    def __init__(self, *, exempt: bool) -> None:
        self.gangs: NamespaceTurns[str] = NamespaceTurns()
        self.pacing = RebuildPacing()
        self.exempt = exempt

    def weight(self, size: int) -> int:
        return size if self.exempt else max(size, LEAST_WEIGHT)

    def due(self, size: int) -> float:
        """Returns when a gang of this size should be looked at again."""
        return self.pacing.due(self.weight(size)) + (0.0 if self.exempt else PAUSE)


class ChangedGangs:
    """`gangs` are the gangs of the registry. Namespaces take turns at each step."""

    def __init__(self, gangs: Mapping[str, NumberedGang]) -> None:
        self._gangs = gangs
        self.number = 0
        self._named: dict[Named, _NamedObject] = {}
        self._updated: NamespaceTurns[Named] = NamespaceTurns()
        self._at_once: NamespaceTurns[str] = NamespaceTurns()
        self.urgent, self.grown, self.edited = _PacedLine(exempt=True), _PacedLine(exempt=True), _PacedLine(exempt=True)
        self._regrouped = _PacedLine(exempt=False)
        self._lines = (self.urgent, self.grown, self.edited, self._regrouped)

    # --- changes ----------------------------------------------------------------------------------------------------

    def add(self, line: _PacedLine, gang: str) -> None:
        """Records a change of one member. If a thirty-second of the gang has changed it is built at once."""
        namespace = namespace_of(gang)
        count = line.gangs.add(namespace, gang)
        if line.exempt and count * GROWTH >= self._gangs[gang].size:
            self._at_once.add(namespace, gang)

    def name(self, gang: str, named: Named) -> None:
        """Records that a member of the gang names this object."""
        known = self._named.get(named)
        if known is None:
            known = self._named[named] = _NamedObject()
        if gang not in known.gangs:
            known.gangs[gang] = None
            self._gangs[gang].names.add(named)

    def updated(self, named: Named, meaning: object) -> None:
        """Records that an object was created, updated or deleted. Takes constant time. Nothing happens if no gang names
        it, or if it means to gangs what it meant before."""
        known = self._named.get(named)
        if known is None or (known.meaning is not _UNKNOWN and known.meaning == meaning):
            return
        self.number += 1
        known.number, known.meaning = self.number, meaning
        self._updated.add(named[1], named)

    def objects(self, kind: str) -> list[Named]:
        """Returns the objects of a kind that gangs name."""
        return [named for named in self._named if named[0] == kind]

    def remove(self, gang: str) -> None:
        """Forgets a gang that is dropped, and the objects that no other gang names."""
        self._unmark(gang)
        for named in self._gangs[gang].names:
            known = self._named[named]
            del known.gangs[gang]
            if not known.gangs:
                del self._named[named]
                self._updated.discard(named[1], named)

    # --- what is built when -----------------------------------------------------------------------------------------

    def mark_due(self, now: float) -> None:
        """Marks gangs of updated objects, a portion of them, and moves all gangs that there is credit for."""
        self._mark_updated()
        for line in self._lines:
            while (gang := line.gangs.first()) is not None:
                namespace = namespace_of(gang)
                if not self._at_once.contains(namespace, gang):
                    if not line.pacing.allows(line.weight(self._gangs[gang].size), now):
                        break
                    self._at_once.add(namespace, gang)
                line.gangs.end_turn()
                line.gangs.discard(namespace, gang)

    def _mark_updated(self) -> None:
        for _ in range(MARKED):
            named = self._updated.first()
            if named is None:
                return
            known = self._named[named]
            gang = next(iter(known.gangs))
            if self._gangs[gang].marked >= known.number:
                self._updated.discard(named[1], named)
                continue
            self._updated.end_turn()
            self._mark(gang)
            self._regrouped.gangs.add(namespace_of(gang), gang)

    def _mark(self, gang: str) -> None:
        gang_state = self._gangs[gang]
        gang_state.marked = self.number
        for named in gang_state.names:
            self._named[named].gangs.move_to_end(gang)

    def next(self) -> str | None:
        """Returns the gang to be built next; None if no other is due. The caller builds it, and calls `built`."""
        gang = self._at_once.first()
        if gang is not None:
            self._at_once.end_turn()
        return gang

    def built(self, gang: str) -> None:
        """Records that a gang is built from all that is known now."""
        self._unmark(gang)
        self._mark(gang)

    def _unmark(self, gang: str) -> None:
        namespace = namespace_of(gang)
        self._at_once.discard(namespace, gang)
        for line in self._lines:
            line.gangs.discard(namespace, gang)

    def due(self, now: float) -> float | None:
        """Returns when a gang will be built, if nothing else happens; None for never."""
        if self._at_once or self._updated:
            return now
        firsts = [(line, line.gangs.first()) for line in self._lines]
        times = [line.due(self._gangs[gang].size) for line, gang in firsts if gang is not None]
        return min(times, default=None)

    # --- what must not be decided before it is built ------------------------------------------------------------------

    def is_to_be_built(self, gang: str) -> bool:
        """Whether anything about the gang has changed since it was built, as far as that is known for each gang."""
        namespace = namespace_of(gang)
        lines = (line.gangs for line in self._lines)
        return any(line.contains(namespace, gang) for line in (self._at_once, *lines))

    def is_outdated(self, gang: str) -> bool:
        """Whether the jobs of the gang must not be decided as they are."""
        return self.is_regrouped(gang) or self.urgent.gangs.contains(namespace_of(gang), gang)

    def is_regrouped(self, gang: str) -> bool:
        """Whether an object that the gang names was updated since, or so much has changed that it is built at once.
        Members that were lost or bound do not count: the jobs of single members do not depend on each other."""
        namespace, gang_state = namespace_of(gang), self._gangs[gang]
        if self._at_once.contains(namespace, gang) or self._regrouped.gangs.contains(namespace, gang):
            return True
        return any(self._named[named].number > gang_state.marked for named in gang_state.names)
