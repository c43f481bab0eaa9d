"""How a job comes in, and what becomes of one that changes while it waits.

A newcomer is asked about at the gates and then joins the line of its kind. A job that changes may have to change its
line: whether that also means trying it again, the hints of those who refused it say, as in kube-scheduler.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubenexus.framework.events import Action, Event, Resource
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.allowance import Allowance
from kubenexus.queue.changes import pod_changed
from kubenexus.queue.entry import Entry, Place
from kubenexus.queue.formation import PLUGIN
from kubenexus.queue.gates import Gates
from kubenexus.queue.kind import Kind
from kubenexus.queue.late import LateJobs
from kubenexus.queue.line import Line
from kubenexus.queue.lines import Lines
from kubenexus.queue.rules import Rules
from kubenexus.queue.tally import Amount, Tally, one

FORCED = "ForceActivate"
OTHERS = ""  # the key of the rules for jobs whose profile has none of its own
UPDATED = Resource.TARGET_POD.value + Action.UPDATE.label
# A gang has other members, or needs them otherwise: whoever refused it refused another job.
REGROUPED = Event(Resource.ANYTHING, Action.ALL, name="PodGroupUpdate")

Hold = Callable[[Job], Verdict | None]


def _nobody(job: Job) -> Verdict | None:
    """Keeps no job back."""
    return None


class Reception:
    """`hold` says why a whole job may not be tried yet, before its pods are asked about at the gates."""

    def __init__(self, rules: Mapping[str, Rules], lines: Lines, tally: Tally, late: LateJobs) -> None:
        self._rules = rules
        self._lines = lines
        self._tally = tally
        self._late = late
        self.gates = Gates()
        self._to_ask: dict[Entry, str] = {}
        self.hold: Hold = _nobody

    def profiles(self) -> list[Rules]:
        return list(dict.fromkeys(self._rules.values()))

    def rules(self, job: Job) -> Rules:
        found = self._rules.get(job.pods[0].spec.scheduler_name)
        return self._rules[OTHERS] if found is None else found

    def enter(self, entry: Entry, event: str, now: float) -> Place:
        """A job that stands nowhere: to a gate, or into the line of its kind."""
        job = entry.job
        rules, priority = self.rules(job), priority_of(job)
        entry.changed = entry.recalled = False
        entry.order = (*rules.order(priority, entry.since), entry.number)
        verdict = self.gate(job)
        if verdict is not None:
            self.shut_out(entry, verdict, event, now)
            return Place.GATED
        line = self._lines.home(self._kind(entry, job), rules, priority)
        self._lines.join(entry, line, event)
        return line.place

    def sign_again(self, entry: Entry, now: float) -> None:
        """The first of an active line of old signatures goes to the line of its kind, by what they mean now."""
        verdict = self.gate(entry.job)
        if verdict is not None:
            self._lines.leave(entry)
            self.shut_out(entry, verdict, FORCED, now)
            return
        line = self.home(entry)
        self._lines.continues(line, entry.standing)
        self._lines.leave(entry)
        self._lines.join(entry, line, FORCED)

    def gate(self, job: Job) -> Verdict | None:
        """What keeps the job out, if anything does."""
        return self.hold(job) or self.rules(job).gate(job)

    def home(self, entry: Entry) -> Line:
        """The line of the job's kind."""
        return self._lines.home(self._kind(entry, entry.job), self.rules(entry.job), priority_of(entry.job))

    def stands_with_others(self, entry: Entry, line: Line) -> bool:
        """Whether the job is late and stands in a line that is not for those alone: it moves when its turn comes."""
        return not line.alone and self._late.kind(line.kind, entry).signature != line.kind.signature

    def _kind(self, entry: Entry, job: Job) -> Kind:
        """What the job is like, in this form of it."""
        return self._late.kind(self.rules(job).kind(job), entry)

    def at_home(self, entry: Entry, line: Line) -> bool:
        """Whether the job is still of the line's kind."""
        return self._lines.is_home(line) and self._kind(entry, entry.job).signature == line.kind.signature

    def shut_out(self, entry: Entry, verdict: Verdict, event: str, now: float) -> None:
        entry.line = None
        self.gates.shut(entry, self.rules(entry.job), verdict, now)
        self._tally.enter(Place.GATED, one(entry), event)

    def let_go(self, entry: Entry) -> None:
        """The job stands nowhere any longer."""
        if entry.gate is not None:
            self.gates.open(entry)
            self._tally.leave(Place.GATED, one(entry))
        elif entry.line is not None:  # else it failed on its way in
            self._lines.leave(entry)

    def ask_again(self, entry: Entry, event: str, now: float) -> None:
        """Whether a gated job may come in now. It stays where it is if not, with the gate's latest reason."""
        verdict = self.gate(entry.job)
        if verdict is None:
            # The timestamps of its members tell from when a gang was complete, after a restart, too; no gate's do.
            if entry.gate is not None and entry.gate.plugin != PLUGIN:
                entry.may_be_tried_from(math.inf, now)
            self.let_go(entry)
            self.enter(entry, event, now)
        else:
            self.gates.shut(entry, self.rules(entry.job), verdict, now)

    def happened(self, rules: Rules, event: Event) -> None:
        """An event may open gates: those that it may are to be asked again."""
        if event.for_all:
            behind = [(entry, "") for entry in self.gates if self.rules(entry.job) is rules]
        else:
            behind = self.gates.behind(rules, rules.concerned(event))
        for entry, plugin in behind:
            if rules.helps((plugin,), event, entry.job.pods):
                self._to_ask.setdefault(entry, event.label)

    def ask(self, allowance: Allowance, now: float) -> None:
        """Ask gates again that an event may have opened; some now, the others when the allowance is renewed."""
        while allowance and self._to_ask:
            entry = next(iter(self._to_ask))
            event = self._to_ask.pop(entry)
            if entry.gate is not None:
                allowance.spend(entry.pods)
                self.ask_again(entry, event, now)

    @property
    def any_to_ask(self) -> bool:
        return bool(self._to_ask)

    # --- a job changes --------------------------------------------------------------------------------------------

    def change(self, entry: Entry, job: Job, now: float) -> Place:
        if entry.turn:
            entry.job, entry.changed = job, True
        elif entry.gate is not None:
            event = next((each.label for each in _events(entry.job, job)), UPDATED)
            self._tally.leave(Place.GATED, Amount(0, entry.pods - len(job.pods)))
            entry.job = job
            self.ask_again(entry, event, now)
        else:
            self._change_in_line(entry, job, now)
        return entry.place

    def _change_in_line(self, entry: Entry, job: Job, now: float) -> None:
        line, verdict = entry.standing, self.gate(job)
        self._lines.catch_up(line, now)
        helpful = next((e for e in _events(entry.job, job) if line.rules.helps(line.blamed, e, job.pods)), None)
        kind = self._kind(entry, job)
        if verdict is not None:
            self._lines.leave(entry)
            entry.job = job
            self.shut_out(entry, verdict, UPDATED, now)
        elif not line.alone and (kind.signature != line.kind.signature or not self._lines.is_home(line)):
            self._move(entry, job, kind, helpful, now)
        else:
            self._lines.swap(entry, job, self.order(entry, job))
            if helpful is not None and line.place is Place.UNSCHEDULABLE:
                self._lines.leave(entry)
                place = Place.BACKOFF if now < line.until else Place.ACTIVE
                self._lines.isolate(entry, line, place, line.until, helpful.label, line.parked_at)

    def _move(self, entry: Entry, job: Job, kind: Kind, helpful: Event | None, now: float) -> None:
        """To the line of another kind, with what is known of the former one."""
        former, line = entry.standing, self._lines.home(kind, self.rules(job), priority_of(job))
        self._lines.inherit(line, former, now, woken=helpful is not None)
        line.flying += 1  # not to be tidied away before the job stands in it
        active = former.place is Place.ACTIVE or (helpful is not None and line.place is Place.UNSCHEDULABLE)
        self._lines.leave(entry)
        line.flying -= 1
        entry.job, entry.order = job, self.order(entry, job)
        event = UPDATED if helpful is None else helpful.label
        if active:
            self._lines.join(entry, line, event)
        else:
            self._lines.stand(entry, line, event)

    def order(self, entry: Entry, job: Job) -> tuple[Any, ...]:
        """By the profile's rule; ties by the order we heard of them."""
        return (*self.rules(job).order(priority_of(job), entry.since), entry.number)


def priority_of(job: Job) -> int:
    """That of its most urgent member."""
    pods = job.pods
    return pods[0].spec.priority if len(pods) == 1 else max(pod.spec.priority for pod in pods)


def _events(old: Job, new: Job) -> Iterator[Event]:
    """What happened to the job, told of its pods: some changed, some are new, some are gone."""
    if (old.minimum, old.topology, old.anchors) != (new.minimum, new.topology, new.anchors):
        yield REGROUPED
    before = {pod.metadata.uid: pod for pod in old.pods}
    for pod in new.pods:
        known = before.pop(pod.metadata.uid, None)
        if known is pod:
            continue
        if known is None:
            yield REGROUPED
            yield Event(Resource.UNSCHEDULED_POD, Action.ADD, new=pod)
        elif known != pod:
            yield from pod_changed(known, pod, target=True)
    for pod in before.values():
        yield Event(Resource.UNSCHEDULED_POD, Action.DELETE, old=pod)
