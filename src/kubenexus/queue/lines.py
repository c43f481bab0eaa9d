"""How lines move.

                              refuse                          an event that helps, 5 minutes
               ┌───────────────────────────────▶ UNSCHEDULABLE ──────────────┐
               │                                                             ▼
    join ──▶ ACTIVE ◀──────────────────────────────────────── no ── still backing off?
               │  ▲                                                          │ yes
               │  └── its time has come, or nothing else is to do ── BACKOFF ◀┘
               └────────────────────────────────────────────────────────▲
                  refused, but something happened meanwhile that helps; or nobody is to blame

A line without waiting jobs is nowhere, and forgotten once none of its jobs is in flight.
"""

from typing import Any

from kubenexus.base.clock import Clock
from kubenexus.framework.decision import Decision
from kubenexus.framework.events import Event
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Retry
from kubenexus.queue.allowance import Allowance
from kubenexus.queue.entry import Entry, Place
from kubenexus.queue.kind import Kind
from kubenexus.queue.line import Line
from kubenexus.queue.places import Places
from kubenexus.queue.policy import Policy
from kubenexus.queue.rules import Rules
from kubenexus.queue.shares import Shares
from kubenexus.queue.tally import Amount, Tally, amount_of, one

FAILURE = "ScheduleAttemptFailure"
SLOW = "SlowDecision"


class Lines:
    def __init__(self, policy: Policy, tally: Tally, clock: Clock) -> None:
        self.places = Places(clock)
        self._policy = policy
        self._tally = tally
        self._by_kind: dict[bytes, Line] = {}
        self.woken = 0  # lines that events woke, so far
        self.shares = Shares(self.places)

    def __len__(self) -> int:
        return len(self._by_kind)

    def home(self, kind: Kind, rules: Rules, priority: int) -> Line:
        """The line of jobs of this kind, made if there is none."""
        line = self._by_kind.get(kind.signature)
        if line is None or line.scope != rules.scope(kind.specimens[0]):
            line = self._by_kind[kind.signature] = Line(kind, rules, priority)
        return line

    def is_home(self, line: Line) -> bool:
        """Whether new jobs of its kind would join this line: it is not one for a single job, nor of old signatures."""
        return self._by_kind.get(line.kind.signature) is line

    def is_outdated(self, line: Line) -> bool:
        """Whether signatures have changed since its first job joined it."""
        return not line.alone and not (self.is_home(line) and line.in_scope)

    # --- jobs come and go -----------------------------------------------------------------------------------------

    def join(self, entry: Entry, line: Line, event: str) -> None:
        """A job without a refusal of its own. It shares the line's if that stands, and else has the line tried."""
        if not line.stands and line.place is not Place.ACTIVE:
            self.activate(line, event)
        self.stand(entry, line, event)

    def stand(self, entry: Entry, line: Line, event: str) -> None:
        """A job takes its place in the line, wherever that is."""
        if line.stands and not line.concerns(entry):
            self.activate(line, event)
        line.push(entry)
        self._tally.enter(line.place, one(entry), event)
        if line.head is entry:  # else the line stays where it is
            self.places.settle(line)

    def leave(self, entry: Entry) -> None:
        line = entry.standing
        self._tally.leave(line.place, one(entry))
        line.remove(entry)
        self.tidy(line)

    def swap(self, entry: Entry, job: Job, order: tuple[Any, ...]) -> None:
        """The job changed, but not so that it has to move to another line."""
        line = entry.standing
        self._tally.leave(line.place, Amount(0, entry.pods - len(job.pods)))
        line.remove(entry)
        entry.job, entry.order = job, order
        line.push(entry)
        self.places.settle(line)
        if line.stands and not line.concerns(entry):
            self.activate(line, "ForceActivate")

    def isolate(self, entry: Entry, line: Line, place: Place, until: float, event: str, refused_at: float) -> None:
        """A line for this job alone. Its kind is not concerned, and `line`, where it belongs, stays as it is."""
        apart = Line(line.kind, line.rules, line.priority, alone=True)
        apart.decision, apart.place, apart.until = line.decision, place, until
        apart.failed, apart.parked_at = place is Place.BACKOFF, refused_at
        self.stand(entry, apart, event)

    def tidy(self, line: Line) -> None:
        """After a job left: an empty line has no refusal that anybody would share."""
        if line.members:
            self.places.settle(line)
            return
        self.places.lift(line)
        line.place, line.stands, line.failed, line.flushed = Place.ACTIVE, False, False, False
        if not line.flying and self.is_home(line):
            del self._by_kind[line.kind.signature]

    # --- lines move -----------------------------------------------------------------------------------------------

    def refuse(self, line: Line, entry: Entry, decision: Decision, now: float, *, woken: bool) -> None:
        """The first of a line was refused, and with it all. `woken`: something happened meanwhile that may help."""
        if line.refusals or entry.attempts > 1:
            self.shares.in_vain(line)
        self.catch_up(line, now)
        if line.stands:  # another of them was refused while this one was in flight
            line.refused = min(line.refused, entry.order)
            self.stand(entry, line, FAILURE)
            return
        self.places.lift(line)
        self._tally.leave(line.place, amount_of(line))
        line.push(entry)
        line.blame(decision)
        line.refused = entry.order
        line.refusals, line.flushed = line.refusals + 1, False
        line.until = self._policy.until(now, line.refusals, entry.pods)
        line.parked_at, line.stands = now, not woken
        if line.failed:
            line.place = Place.BACKOFF
        else:
            line.place = self._woken(line, now) if woken else Place.UNSCHEDULABLE
        self._tally.enter(line.place, amount_of(line), FAILURE)
        self.places.settle(line)

    def wake(self, line: Line, event: str, now: float) -> None:
        """What refused the line may no longer hold. If nobody was to blame it still waits for its time."""
        if line.place is Place.UNSCHEDULABLE:
            self._shift(line, self._woken(line, now), event)
        elif line.stands:
            line.stands = False
            self.places.settle(line)

    def activate(self, line: Line, event: str) -> None:
        self._shift(line, Place.ACTIVE, event)

    def postpone(self, line: Line, until: float) -> None:
        """Not to be tried before then, however idle we are. What refused it need not be what still does."""
        self.places.lift(line)
        self._tally.leave(line.place, amount_of(line))
        line.place, line.stands, line.failed, line.until = Place.BACKOFF, False, True, until
        self._tally.enter(Place.BACKOFF, amount_of(line), SLOW)
        self.places.settle(line)

    def inherit(self, line: Line, former: Line, now: float, *, woken: bool) -> None:
        """A job changed and is of another kind now. If nothing is known of that kind, what is known of the former one
        is the best guess; but it is no refusal that others of the new kind would share."""
        self.catch_up(line, now)
        if line.members or line.flying:
            if line.place is Place.UNSCHEDULABLE and not line.stands:
                self.places.blame(line, {*line.blamed, *former.blamed})
            return
        line.decision, line.blamed, line.failed = former.decision, former.blamed, former.failed
        line.refusals, line.until, line.parked_at = former.refusals, former.until, now
        line.place = self._woken(line, now) if woken and former.place is Place.UNSCHEDULABLE else former.place

    def moves(self, line: Line) -> None:
        """One of its jobs was placed: the next refusal is the first again."""
        line.refusals = 0
        self.places.settle(line)

    # --- who is alike changes -------------------------------------------------------------------------------------

    def sign_again(self) -> None:
        """Signatures mean something else now. A refusal is about all that were alike when it was made, so every line
        stays where it is; but no job joins it any more, and when its turn comes its jobs find new lines, one by one
        (`WaitingRoom.pop`). To sign all that wait would take 0.5 s for 10,000, and any tenant can bring this about."""
        self._by_kind = {}

    def continues(self, line: Line, former: Line) -> None:
        """The first job of a line of old signatures goes to this one. If it is the first there, its kind has been
        refused as often as before, and as long ago."""
        if not line.members and not line.flying:
            line.refusals, line.parked_at, line.flushed = former.refusals, former.parked_at, former.flushed

    # --- what happens in the cluster ------------------------------------------------------------------------------

    def happened(self, rules: Rules, event: Event) -> None:
        """Lines of this profile are to be asked whether it helps them: `ask`."""
        self.places.watching.happened(rules, event)

    def ask(self, allowance: Allowance, now: float) -> None:
        """Wake the lines that something helps which happened since they were last asked; some now, the others when
        the allowance is renewed."""
        while allowance:
            line = self.places.watching.next()
            if line is None:
                return
            allowance.spend(self.catch_up(line, now))

    def catch_up(self, line: Line, now: float) -> int:
        """Ask one line about all that happened, which has to be done before anything else befalls it: then it makes
        no difference to its jobs how late it is asked. Returns how many questions that took, at least one."""
        asked, specimens = 0, line.kind.specimens
        for plugin, event in self.places.watching.unheard(line):
            asked += len(specimens)
            if line.rules.helps((plugin,), event, specimens):
                self.wake(line, event.label, now)
                self.woken += 1
                break
        self.places.watching.heard(line)
        return max(asked, 1)

    @property
    def any_to_ask(self) -> bool:
        return self.places.watching.any_unheard

    # --- whose turn it is -----------------------------------------------------------------------------------------

    def next(self, now: float) -> Line | None:
        """The line whose first job is to be tried now."""
        line = self.shares.next(now)
        if line is None and self._policy.eager:
            line = self.places.backoff.first()
            if line is not None:
                self.activate(line, "PopFromBackoffQ")
        return line

    def _woken(self, line: Line, now: float) -> Place:
        at_once = line.decision is not None and line.decision.code.retry is Retry.ON_EVENT_AT_ONCE
        return Place.ACTIVE if at_once or line.until <= now else Place.BACKOFF

    def _shift(self, line: Line, place: Place, event: str) -> None:
        """The whole line goes there, and its refusal no longer stands."""
        self.places.lift(line)
        self._tally.leave(line.place, amount_of(line))
        line.place, line.stands, line.failed = place, False, False
        self._tally.enter(place, amount_of(line), event)
        self.places.settle(line)
