"""A job's turn: from the moment it is taken out of its line until it is placed, or stands somewhere again.

While it is in flight it belongs to its line (`line.flying`), which is not forgotten, but it is not in it: what befalls
the line meanwhile does not move it.
"""

import msgspec

from kubenexus.framework.decision import Decision
from kubenexus.framework.events import Event
from kubenexus.framework.job import Job
from kubenexus.queue.entry import Entry, Place
from kubenexus.queue.flight import Flight
from kubenexus.queue.line import Line
from kubenexus.queue.lines import FAILURE, Lines
from kubenexus.queue.policy import Policy
from kubenexus.queue.reception import Reception
from kubenexus.queue.rules import NOBODY


class Turns:
    def __init__(self, lines: Lines, reception: Reception, policy: Policy) -> None:
        self.flight = Flight()
        self._lines = lines
        self._reception = reception
        self._policy = policy

    def begin(self, entry: Entry, line: Line, now: float) -> bool:
        """Whether the head of a line takes off. If not it stands elsewhere afterwards, so looking for one that does
        comes to an end."""
        home = self._reception.home(entry) if line.alone else line
        home.flying += 1
        self._lines.leave(entry)
        verdict = self._reception.gate(entry.job)
        if verdict is not None:  # it was let in, but its gate was shut behind it
            home.flying -= 1
            self._lines.tidy(home)
            self._reception.shut_out(entry, verdict, FAILURE, now)
            return False
        entry.line, entry.turn = home, self.flight.depart()
        entry.attempts += 1
        return True

    def end(self, entry: Entry, *, returns: bool = False) -> Line:
        """It has landed, and stands nowhere yet. Returns the line it took off from; unless the job returns there, the
        line may be forgotten."""
        self.flight.land(entry.turn)
        line, entry.line, entry.turn = entry.standing, None, 0
        line.flying -= 1
        if not returns and not line.members:
            self._lines.tidy(line)
        return line

    def placed(self, entry: Entry, decision: Decision | None, now: float) -> Place:
        """The job leaves; members that found no place wait on, as a job."""
        rest = _rest(entry.job, decision)
        line = self.end(entry)
        if decision is not None and decision.placed:
            self._lines.moves(line)
        if rest is None:
            return Place.GONE
        entry.job = rest
        return self._reception.enter(entry, FAILURE, now)

    def refused(self, entry: Entry, decision: Decision, now: float) -> Place:
        """The job goes back, and its line is refused with it, unless something happened that may help."""
        line, events = entry.standing, self.flight.missed(entry.turn)
        if (entry.changed or not self._lines.is_home(line)) and not self._reception.at_home(entry, line):
            self.end(entry)
            return self._reception.enter(entry, FAILURE, now)  # of another kind by now: the decision is not about it
        woken = entry.recalled or events is None or _helped(line, decision, events)
        entry.failures, entry.changed, entry.recalled = 0, False, False
        self._lines.refuse(self.end(entry, returns=True), entry, decision, now, woken=woken)
        return entry.place

    def failed(self, entry: Entry, now: float) -> Place:
        """The job is tried again after a backoff of its own; those like it have nothing to do with it."""
        entry.failures += 1
        if entry.attempts > 1:
            self._lines.shares.in_vain(entry.standing)
        entry.order = self._reception.order(entry, entry.job)
        entry.changed = entry.recalled = False
        until = self._policy.until(now, entry.failures, entry.pods)
        self._lines.isolate(entry, self.end(entry), Place.BACKOFF, until, FAILURE, now)
        return entry.place


def _helped(line: Line, decision: Decision, events: list[Event]) -> bool:
    """Whether anything that happened meanwhile may change the decision."""
    blamed = line.rules.known(decision.diagnosis.refused_by)
    return blamed != (NOBODY,) and any(line.rules.helps(blamed, event, line.kind.specimens) for event in events)


def _rest(job: Job, decision: Decision | None) -> Job | None:
    """The members that a placed job left behind. Its minimum is reached, so any of them may follow."""
    if decision is None or not decision.placed:
        return None
    seated = {placement.uid for placement in decision.placements}
    left = tuple(pod for pod in job.pods if pod.metadata.uid not in seated)
    return msgspec.structs.replace(job, pods=left, minimum=1) if left else None
