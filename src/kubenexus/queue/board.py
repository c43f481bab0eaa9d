"""What can be read off the waiting room: for metrics, for `explain`, and to tell all that are alike why they wait."""

from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.entry import Entry, Place
from kubenexus.queue.tally import Incoming, Tally, Waiting


class Board:
    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._tally = Tally()

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
