"""A line: jobs that are alike stand in one, oldest first, and it moves as a whole.

Whatever refuses the first of them refuses them all, and whatever may help one may help all. So 100,000 waiting jobs of
ten kinds are ten lines: a refusal, an event, the end of a backoff each move a line, not its jobs.
"""

from typing import Any, NamedTuple

from kubenexus.base.heap import Heap, Slot
from kubenexus.framework.decision import Decision
from kubenexus.framework.verdict import Retry
from kubenexus.queue.entry import Entry, Place
from kubenexus.queue.kind import Kind
from kubenexus.queue.rules import NOBODY, Rules


class Share(NamedTuple):
    """Whose lines take turns when many are to be asked about an event."""

    priority: int
    namespace: str


class Line:
    """`decision` is the last refusal and `blamed` the plugins behind it; while it `stands`, nothing has happened since
    that could change it, and whoever joins shares it. `alone`: a line for a single job that something befell which does
    not concern its kind. `flying` counts the members that are in flight; they are not among `members`. `ripens` is its
    slot among those that gain urgency, `lane` among those that have been tried or have not. `refused` is the order of
    the job that was refused. `flushed`: nothing but time has woken it since it was refused. `scope` is what its jobs
    were signed in. `aside` is the namespace for which it waits, although it is active; `aside_slot` its slot there.
    `heard` is the number of the last event that it was asked about (`queue.watching`).
    """

    __slots__ = (
        "alone",
        "aside",
        "aside_slot",
        "blamed",
        "decision",
        "failed",
        "flushed",
        "flying",
        "gangs",
        "heard",
        "kind",
        "lane",
        "members",
        "parked_at",
        "place",
        "pods",
        "priority",
        "refusals",
        "refused",
        "ripens",
        "rules",
        "scope",
        "share",
        "slot",
        "stands",
        "until",
    )

    def __init__(self, kind: Kind, rules: Rules, priority: int, *, alone: bool = False) -> None:
        self.kind = kind
        self.rules = rules
        self.scope = rules.scope(kind.specimens[0])
        self.priority = priority
        self.share = Share(priority, kind.specimens[0].metadata.namespace)
        self.alone = alone
        self.aside = ""
        self.aside_slot: Slot | None = None
        self.members: Heap[Entry] = Heap()
        self.pods = self.gangs = 0
        self.flying = 0
        self.place = Place.ACTIVE
        self.slot: Slot | None = None
        self.ripens: Slot | None = None
        self.lane: Slot | None = None
        self.decision: Decision | None = None
        self.blamed: tuple[str, ...] = ()
        self.stands = False
        self.failed = self.flushed = False
        self.refusals = 0
        self.refused: tuple[Any, ...] = ()
        self.until = 0.0
        self.parked_at = 0.0
        self.heard = 0

    def push(self, entry: Entry) -> None:
        entry.line = self
        entry.slot = self.members.push(entry.order, entry)
        self.pods += entry.pods
        self.gangs += entry.job.gang

    def remove(self, entry: Entry) -> None:
        self.members.remove(entry.slot)
        self.pods -= entry.pods
        self.gangs -= entry.job.gang
        entry.line = None

    @property
    def head(self) -> Entry | None:
        return self.members.first()

    @property
    def tried(self) -> bool:
        """Whether its first job has had a turn, by itself or as one of its kind, and has not been placed."""
        head = self.head
        return self.refusals > 0 or (head is not None and head.attempts > 0)

    def urgency(self, now: float) -> int:
        """The priority that its first job counts with now."""
        head = self.head
        return self.priority if head is None else self.rules.urgency(self.priority, head.ready, now)

    def order(self, now: float) -> tuple[Any, ...] | None:
        """Its place among the lines: that of its first job. All of them have one priority, and the oldest is the first
        of them, however long each may have been behind a gate."""
        head = self.head
        return None if head is None else self.order_of(head, now)

    def order_of(self, entry: Entry, now: float) -> tuple[Any, ...]:
        """The place of one of its jobs among all, by the priority that it counts with now."""
        urgency = self.rules.urgency(self.priority, entry.ready, now)
        return entry.order if urgency == self.priority else (*self.rules.order(urgency, entry.since), entry.number)

    def grows_at(self, now: float) -> float | None:
        """When its place among the lines will be another one though nothing happens; None: never."""
        head, aging = self.head, self.rules.aging
        return None if head is None or aging is None else aging.grows_at(self.priority, head.ready, now)

    @property
    def in_scope(self) -> bool:
        """Whether signatures mean for its first job what they meant when the line was made. The jobs in it may be of
        several namespaces, as long as none of these has anything that sets it apart."""
        head = self.head
        return head is None or self.scope == self.rules.scope(head.job.pods[0])

    def concerns(self, entry: Entry) -> bool:
        """Whether the refusal that stands goes for this job, too. Room that is kept for a gang is kept from those that
        come after it: of a job before the refused one that is not known."""
        held_back = self.decision is not None and self.decision.diagnosis.held_back
        return not held_back or entry.order >= self.refused

    @property
    def watched(self) -> bool:
        """Whether an event may change how things stand with it."""
        return bool(self.members) and (self.place is Place.UNSCHEDULABLE or self.stands)

    def blame(self, decision: Decision) -> None:
        """Remember who refused. Nobody is blamed for a failure, nor when there was nothing to refuse."""
        failed = decision.code.retry is Retry.SOON
        self.decision = decision
        self.blamed = self.rules.known(() if failed else decision.diagnosis.refused_by)
        self.failed = self.blamed == (NOBODY,)
