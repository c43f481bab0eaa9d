"""The waiting room: every job that is to be placed is in exactly one place here, from the first we hear of it until it
is placed or gone.

                    ┌───────────── GATED ◀──────────────┐
                    │ the gate opens                    │ a gate is shut
         add        ▼               pop                 │
       ─────────▶ in a line ──────────────────────▶ IN FLIGHT ── done: placed ──▶ GONE
                   ▲     ▲                           │     │
                   │     └────── done: refused ──────┘     │ failed: could not be bound
                   │                                       ▼
                   └────────── backoff over ───── a line of its own

A line is ACTIVE, in BACKOFF or UNSCHEDULABLE with all the jobs that stand in it: `queue.lines` has that part. `delete`
leads to GONE from everywhere.

Single-threaded, without I/O and without a clock of its own. The loop begins each of its turns with `tick`, at
`next_time` at the latest, calls `pop`, decides, and calls `done`; the watches call `add`, `delete` and
`on_event`. Whatever changes the ledger in anybody's favour (a bind that failed, too) has to be told as an event
(`queue.changes`), or those it helps wait for the flush.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping

from kubenexus.base.clock import Clock
from kubenexus.framework.decision import Decision
from kubenexus.framework.events import Action, Event, Resource
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Retry, Verdict
from kubenexus.queue.allowance import Allowance
from kubenexus.queue.changes import EVERYTHING
from kubenexus.queue.entry import Entry, Place, Turn
from kubenexus.queue.late import LateJobs
from kubenexus.queue.line import Line
from kubenexus.queue.lines import Lines
from kubenexus.queue.policy import Policy
from kubenexus.queue.reception import FORCED, Hold, Reception
from kubenexus.queue.rules import Rules
from kubenexus.queue.tally import Incoming, Refusal, Tally, Waiting, refusals
from kubenexus.queue.turns import Turns

ADDED = Event(Resource.UNSCHEDULED_POD, Action.ADD).label
FLUSHED = "UnschedulableTimeout"


def _full() -> None:
    """Nobody has more jobs to bring in."""


def _any(job: Job) -> bool:
    """Every job is admitted."""
    return True


def _never() -> float | None:
    """No more jobs will come without news."""
    return None


class WaitingRoom:
    """`rules` by the name of the profile (`spec.schedulerName`), those under "" for all other names.

    `refill` is called before a job is popped: what has yet to be brought in comes in first (`queue.assembly`);
    `refill_at` says when it will have something to do although nothing happens.
    """

    def __init__(self, rules: Mapping[str, Rules], clock: Clock, policy: Policy | None = None) -> None:
        self._entries: dict[str, Entry] = {}
        self._tally = Tally()
        self.policy = policy or Policy()
        self._clock = clock
        self._lines = Lines(self.policy, self._tally, clock)
        self._late = LateJobs()
        self._reception = Reception(rules, self._lines, self._tally, self._late)
        self._turns = Turns(self._lines, self._reception, self.policy)
        self._profiles = self._reception.profiles()
        self._allowance = Allowance(self.policy.portion)
        self._numbers = 0
        self._contexts = [rules.context for rules in self._profiles if rules.context is not None]
        self._context = [context() for context in self._contexts]
        self._selectors = self._selected()
        self.refill: Callable[[], None] = _full
        self.refill_at: Callable[[], float | None] = _never

    def hold_back(self, hold: Hold) -> None:
        """`hold` is asked about each job before its gates: why it may not be tried, or None."""
        self._reception.hold = hold

    def now(self) -> float:
        """By its clock."""
        return self._clock.now()

    # --- what the API server says ---------------------------------------------------------------------------------

    def add(self, job: Job, since: float | None = None, ready: float | None = None) -> Place:
        """A job we did not know, or know in another form. `since`: how old it is, by the API server's timestamp;
        `ready`: from when it may be tried, if that is later (`math.inf`: a gate has just opened). Should it fail,
        nothing of the job is left behind."""
        try:
            return self._add(job, since, ready)
        except BaseException:
            self.delete(job.key)
            raise

    def _add(self, job: Job, since: float | None, ready: float | None) -> Place:
        self._look_around()
        now, entry = self._clock.now(), self._entries.get(job.key)
        if not job.pods:
            self.delete(job.key)  # its last member is gone
            return Place.GONE
        if entry is not None and _related(entry.job, job):
            if since is not None and not entry.turn:
                entry.since = since  # a gang is as old as the oldest of the members it has now, whoever comes first
            if ready is not None:
                entry.may_be_tried_from(ready, now)
            return self._reception.change(entry, job, now)
        if entry is not None:
            self.delete(job.key)  # made again under the same name, and nobody told us of the delete
        self._numbers += 1
        entry = self._entries[job.key] = Entry(job, now if since is None else since, self._numbers)
        if ready is not None:
            entry.may_be_tried_from(ready, now)
        place = self._reception.enter(entry, ADDED, now)
        self._late.mark(entry)
        return place

    def delete(self, key: str) -> bool:
        """A job is gone: deleted, or bound by somebody else. Says whether it was here."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        if entry.turn:
            self._turns.end(entry)
        else:
            self._reception.let_go(entry)
        return True

    def on_event(self, event: Event) -> int:
        """Something happened in the cluster. Returns how many lines were woken at once; asks once a line, not once a
        job. Those for which the allowance of this turn is not enough are asked in the next ones (`tick`)."""
        flight, before = self._turns.flight, self._lines.woken
        if self._lines.places.watching or self._reception.gates:  # else no job waits for an event
            self._look_around()
            for rules in self._profiles:
                self._lines.happened(rules, event)
                self._reception.happened(rules, event)
            self._ask()
        if flight and (event.for_all or any(rules.concerned(event) for rules in self._profiles)):
            flight.note(event)
        return self._lines.woken - before

    # --- what the loop does ---------------------------------------------------------------------------------------

    def pop(self, admits: Callable[[Job], bool] = _any) -> Turn | None:
        """The job whose turn it is; it is in flight until `done`, `failed` or `delete`. None: none is ready, or more
        jobs had to be looked at than one call may (then `ready` still says yes). A job that is not admitted is set
        aside, with all of its kind in its namespace, until `release`."""
        self.refill()
        self._do_what_is_due()
        now, signed = self._clock.now(), 0
        for _ in range(self.policy.batch):
            line = self._lines.next(now)
            entry = None if line is None else line.head
            if line is None or entry is None:
                break
            admitted = admits(entry.job)
            if not admitted:
                self._late.set_apart(entry.job.pods[0].metadata.namespace)
            moves = self._reception.stands_with_others(entry, line)
            if not admitted and not moves:
                signed += 1
                self._lines.places.set_aside(line, entry.job.pods[0].metadata.namespace)
                if signed == self.policy.portion:
                    break
                continue
            if not moves and self._late and self._rests(line, entry, now):
                continue
            if moves or self._lines.is_outdated(line):
                if signed >= self.policy.portion:
                    break
                signed += 1
                self._reception.sign_again(entry, now)
                continue
            flushed = line.flushed
            if self._turns.begin(entry, line, now):
                return Turn(entry.turn, entry.job, entry.attempts, entry.since, flushed)
        return None

    def release(self, namespace: str, kinds: int) -> bool:
        """So many kinds of jobs of this namespace that were set aside may be tried now. Returns whether some are left
        aside."""
        self._lines.places.release(namespace, kinds)
        return namespace in self._lines.places.aside

    def done(self, turn: Turn, decision: Decision | None = None) -> Place:
        """The end of a turn. Without a decision there was nothing to decide (the pod is being deleted, or has a node):
        the job leaves. So it does when it was placed, but for members that were not: they wait on, as a job."""
        entry, now = self._flying(turn), self._clock.now()
        if entry is None:
            return Place.GONE
        self._look_around()
        if decision is not None and decision.code.retry is not Retry.NEVER:
            return self._turns.refused(entry, decision, now)
        place = self._turns.placed(entry, decision, now)
        if place is Place.GONE:
            del self._entries[entry.job.key]
        return place

    def failed(self, turn: Turn) -> Place:
        """The job was placed, but that could not be carried out (the API server refused the bind, say). Nobody is to
        blame and its kind is not concerned: this job alone is tried again, after a backoff of its own."""
        entry = self._flying(turn)
        return Place.GONE if entry is None else self._turns.failed(entry, self._clock.now())

    def postpone(self, key: str, until: float) -> None:
        """A decision about this job took too long, here or in a process before this one. Neither it nor those like it
        in its namespace are tried before `until`, and then after all others. The job need not be here yet."""
        self._late.add(key, until, self._clock.now())
        entry = self._entries.get(key)
        if entry is not None:
            self._late.mark(entry)

    def in_time(self, key: str) -> None:
        """A decision about this job took no longer than it should: it is one like all others again."""
        self._late.forget(key, self._entries.get(key))

    @property
    def any_late(self) -> bool:
        """Whether some job was postponed, and has not been decided in time since."""
        return bool(self._late)

    def precedes(self, one: str, other: str) -> bool:
        """Whether a job comes before another one now, both in flight or in a line; who is not here comes last."""
        first, second, now = self._entries.get(one), self._entries.get(other), self._clock.now()
        if first is None or second is None or first.line is None or second.line is None:
            return first is not None and first.line is not None
        return first.line.order_of(first, now) < second.line.order_of(second, now)

    def rank(self, key: str) -> tuple[int, tuple[float, ...]] | None:
        """Its place by its own priority, then by age, however long it has waited: less comes first. Who may keep room
        from whom is asked of this. None: it is not here, or at a gate."""
        entry = self._entries.get(key)
        return None if entry is None or entry.line is None else (-entry.line.priority, entry.order)

    def activate(self, key: str) -> Place:
        """Have this very job tried now, whatever it waits for: its siblings are placed, say, or its victims gone."""
        entry = self._entries.get(key)
        if entry is None:
            return Place.GONE
        if entry.turn:
            entry.recalled = True
        elif entry.gate is not None:
            self._reception.ask_again(entry, FORCED, self._clock.now())
        elif entry.standing.place is not Place.ACTIVE:
            line = entry.standing
            self._lines.leave(entry)
            self._lines.isolate(entry, line, Place.ACTIVE, 0.0, FORCED, 0.0)  # the first of the retries
        return entry.place

    # --- time -----------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due: end backoffs, flush, see who has waited longer, ask those that an event may have helped. To
        be called once in each turn of the event loop, however often `pop` is: all calls between two ticks share one
        allowance. What is left over is due at once (`next_time`)."""
        self._allowance.renew()
        self._do_what_is_due()

    def _do_what_is_due(self) -> None:
        """What has its time comes first: events that never end must not keep backoffs from ending."""
        self._look_around()
        self._lines.places.ripen(self._allowance)
        now = self._clock.now()
        for heap in (self._lines.places.backoff, self._lines.places.failing):
            while self._allowance:
                line = heap.first()
                if line is None or line.until > now:
                    break
                self._allowance.spend()
                self._lines.activate(line, "BackoffComplete")
        self.flush()
        self._ask()

    def _ask(self) -> None:
        """Whether what happened helps those that wait."""
        now = self._clock.now()
        self._lines.ask(self._allowance, now)
        self._reception.ask(self._allowance, now)

    def flush(self) -> None:
        """Wake what has been parked for five minutes, in case some hint was wrong; ask gates again that often."""
        now = self._clock.now()
        while self._allowance:
            line = self._lines.places.first_parked
            if line is None or line.parked_at + self.policy.flush_after > now:
                break
            self._allowance.spend(self._lines.catch_up(line, now))
            if line.place is Place.UNSCHEDULABLE:
                self._lines.wake(line, FLUSHED, now)
                line.flushed = True
        while self._allowance:
            entry = self._reception.gates.first
            if entry is None or entry.asked_at + self.policy.flush_after > now:
                break
            self._allowance.spend(entry.pods)
            self._reception.ask_again(entry, FLUSHED, now)

    def next_time(self) -> float | None:
        """When `tick` will have something to do; None if nothing but an event can change anything."""
        places, flush = self._lines.places, self.policy.flush_after
        times = [line.until for line in (places.backoff.first(), places.failing.first()) if line is not None]
        times += [line.parked_at + flush for line in (places.first_parked,) if line is not None]
        times += [entry.asked_at + flush for entry in (self._reception.gates.first,) if entry is not None]
        times += [at for at in (self.refill_at(),) if at is not None]
        times += [self._clock.now()] if self._lines.any_to_ask or self._reception.any_to_ask else []
        return min(times, default=None)

    @property
    def ready(self) -> bool:
        """Whether it is worth calling `pop` now."""
        places, due = self._lines.places, self.next_time()
        waits = bool(places.active) or (self.policy.eager and bool(places.backoff))
        return waits or (due is not None and due <= self._clock.now())

    # --- what can be read off it -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """All jobs, those in flight included."""
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def place(self, key: str) -> Place:
        entry = self._entries.get(key)
        return Place.GONE if entry is None else entry.place

    def job(self, key: str) -> Job | None:
        """The job as it is now; a turn has it as it was when it was popped."""
        entry = self._entries.get(key)
        return None if entry is None else entry.job

    def attempts(self, key: str) -> int:
        entry = self._entries.get(key)
        return 0 if entry is None else entry.attempts

    def gate(self, key: str) -> Verdict | None:
        """Why the job may not be tried, if it is at a gate."""
        entry = self._entries.get(key)
        return None if entry is None else entry.gate

    def verdict(self, key: str) -> Decision | None:
        """The last refusal of this job or of one like it: why it waits. It names the job that was tried."""
        entry = self._entries.get(key)
        return None if entry is None or entry.line is None else entry.line.decision

    def alike(self, key: str) -> list[str]:
        """All that wait in the same line, this one included: what is decided for one has to be told to all."""
        entry = self._entries.get(key)
        return [] if entry is None or entry.line is None else [each.job.key for each in entry.line.members]

    def waiting(self, place: Place) -> Waiting:
        """How many jobs and pods are there: `pending_pods{queue}`."""
        return self._tally.waiting(place)

    def gangs(self, place: Place) -> int:
        """How many of those jobs are gangs."""
        return self._tally.gangs(place)

    def incoming(self) -> list[Incoming]:
        """How many came into each place by which event, since this was last asked: `queue_incoming_pods_total`."""
        return self._tally.drain()

    def refusals(self) -> Iterator[Refusal]:
        """Why jobs wait, line by line: `unschedulable_pods`."""
        return refusals(self._lines.places, self._reception.gates)

    def events_kept(self) -> Counter[str]:
        """What happened since the oldest job in flight took off: `inflight_events`."""
        return self._turns.flight.by_label()

    # --- how it is kept -------------------------------------------------------------------------------------------

    def _rests(self, line: Line, entry: Entry, now: float) -> bool:
        """Whether the line whose turn it is has to wait, since its jobs take too long to decide."""
        until = self._late.rests(line, entry, now, alone=len(self._lines.places.active) == 1)
        if until is not None:
            self._lines.postpone(line, until)
        return until is not None

    def _flying(self, turn: Turn) -> Entry | None:
        """The job whose turn it is, if it still is."""
        entry = self._entries.get(turn.job.key)
        return entry if entry is not None and entry.turn == turn.number else None

    def _look_around(self) -> None:
        """If signatures mean something else now, who is alike has to be found out again; if refusals rest on something
        else, who is still refused."""
        context = [context() for context in self._contexts]
        if context != self._context:
            self._context = context
            self._lines.sign_again()
        selectors = self._selected()
        if selectors != self._selectors:
            self._selectors = selectors
            for rules in self._profiles:
                self._lines.happened(rules, EVERYTHING)

    def _selected(self) -> list[Hashable]:
        return [rules.selectors() for rules in self._profiles if rules.selectors is not None]


def _related(old: Job, new: Job) -> bool:
    """Whether it is still the same job: a pod made again under its old name is another one."""
    before = {pod.metadata.uid for pod in old.pods}
    return any(pod.metadata.uid in before for pod in new.pods)
