"""How many jobs and pods are where, and how many came in by which event: what kube-scheduler's metrics tell.

Counted as lines move, so that reading it costs nothing; bounded, since there are only so many places and events.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kubenexus.queue.entry import Entry, Place
from kubenexus.queue.line import Line
from kubenexus.queue.rules import NOBODY


class Amount(NamedTuple):
    """`gangs` are those of the jobs that are more than a pod by itself."""

    jobs: int
    pods: int
    gangs: int = 0


class Waiting(NamedTuple):
    jobs: int
    pods: int


class Incoming(NamedTuple):
    """So many jobs and pods came into a queue by an event: `queue_incoming_pods_total{queue, event}`."""

    queue: str
    event: str
    jobs: int
    pods: int
    gangs: int


class Tally:
    def __init__(self) -> None:
        self._jobs: Counter[Place] = Counter()
        self._pods: Counter[Place] = Counter()
        self._gangs: Counter[Place] = Counter()
        self._incoming: dict[tuple[Place, str], Amount] = {}

    def enter(self, place: Place, amount: Amount, event: str) -> None:
        if not amount.jobs:
            return
        self._jobs[place] += amount.jobs
        self._pods[place] += amount.pods
        self._gangs[place] += amount.gangs
        # A gated job counts as incoming to the unschedulable ones, as in kube-scheduler, which has no queue of its own
        # for it.
        queue = Place.UNSCHEDULABLE if place is Place.GATED else place
        jobs, pods, gangs = self._incoming.get((queue, event), Amount(0, 0))
        self._incoming[queue, event] = Amount(jobs + amount.jobs, pods + amount.pods, gangs + amount.gangs)

    def leave(self, place: Place, amount: Amount) -> None:
        self._jobs[place] -= amount.jobs
        self._pods[place] -= amount.pods
        self._gangs[place] -= amount.gangs

    def waiting(self, place: Place) -> Waiting:
        """How many wait there now: `pending_pods{queue}`."""
        return Waiting(self._jobs[place], self._pods[place])

    def gangs(self, place: Place) -> int:
        """How many of those jobs are gangs: `queued_entities{queue, type}`."""
        return self._gangs[place]

    def drain(self) -> list[Incoming]:
        """What came in since this was last asked."""
        found = [Incoming(place.value, event, *amount) for (place, event), amount in self._incoming.items()]
        self._incoming.clear()
        return found


def amount_of(line: Line) -> Amount:
    return Amount(len(line.members), line.pods, line.gangs)


def one(entry: Entry) -> Amount:
    return Amount(1, entry.pods, entry.job.gang)


class Refusal(NamedTuple):
    """So many pods were refused by these plugins. `short`: for how many members of gangs there is no room."""

    plugins: tuple[str, ...]
    profile: str
    pods: int
    short: int = 0


def refusals(lines: Iterable[Line], gated: Iterable[Entry]) -> Iterator[Refusal]:
    """Looks at every line, and at every job at a gate."""
    for line in lines:
        if line.refusals and line.decision is not None:
            certificate = line.decision.certificate
            short = 0 if certificate is None else certificate.missing * len(line.members)
            plugins = tuple(each for each in line.blamed if each != NOBODY)
            yield Refusal(plugins, line.kind.specimens[0].spec.scheduler_name, line.pods, short)
    for entry in gated:
        if entry.gate is not None:
            yield Refusal((entry.gate.plugin,), entry.job.pods[0].spec.scheduler_name, entry.pods)
