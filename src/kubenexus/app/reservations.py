"""Who is first in line and waits for room keeps what it has come to: one gang a profile, by the word of the planner.

Nothing is written anywhere and no pod stands for it: a scheduler that starts anew knows as much after its first
refusal. A reservation ends when the gang is placed, gone or incomplete, when another one comes before it, or when it
has come no closer for `patience` seconds; then it is somebody else's turn for as long.
"""

from collections.abc import Mapping

import msgspec

from kubenexus.base.clock import Clock
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.observe import logs
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.stake import ENDED, Reservation, lacks_room
from kubenexus.queue.entry import Place
from kubenexus.queue.room import WaitingRoom
from kubenexus.state.snapshot import Snapshot

log = logs.get("reservations")


class Held(msgspec.Struct, gc=False):
    reservation: Reservation
    fit: int
    until: float

    @property
    def gang(self) -> str:
        return self.reservation.gang


class Reservations:
    """`patience` by profile, in seconds; 0: nothing is reserved there. Called by the loop alone."""

    def __init__(self, room: WaitingRoom, clock: Clock, patience: Mapping[str, float]) -> None:
        self._room, self._clock, self._patience = room, clock, patience
        self._held: dict[str, Held] = {}
        self._resting: dict[str, float] = {}  # gangs that had their time, and until when it is others' turn

    def before(self, job: Job) -> Reservation | None:
        """What this job has to respect: it comes after the gang. The rest of a gang that has begun does not have to:
        those who have their nodes would hold them for nothing, and the first one may wait for just these."""
        held = self._held.get(_profile(job)) if self._held else None
        if held is None or held.gang == job.key or job.anchors or self._room.precedes(job.key, held.gang):
            return None
        return held.reservation

    def held(self, profile: str) -> Reservation | None:
        """What is kept there now, for whoever looks on."""
        held = self._held.get(profile)
        return None if held is None else held.reservation

    def refused(self, job: Job, decision: Decision, planner: Planner, snapshot: Snapshot) -> None:
        """A job was refused; if it is the first gang in line that lacks room, it keeps what there is from now on."""
        profile, certificate = _profile(job), decision.certificate
        if certificate is None or not lacks_room(certificate) or not self._may_hold(job):
            return
        held = self._held.get(profile)
        if held is not None and held.gang != job.key and self._room.precedes(held.gang, job.key):
            return
        reservation = planner.reserve(job, certificate, snapshot)
        if held is not None and held.gang == job.key and certificate.fit <= held.fit:
            self._held[profile] = Held(reservation, held.fit, held.until)
        else:
            self._held[profile] = Held(reservation, certificate.fit, self._clock.now() + self._patience[profile])
        if held is not None and _site(held.reservation) != _site(reservation):
            self._room.on_event(ENDED)  # what was kept until now is not any more

    def _may_hold(self, job: Job) -> bool:
        return job.gang and bool(self._patience.get(_profile(job))) and job.key not in self._resting

    def placed(self, job: Job) -> None:
        held = self._held.get(_profile(job))
        if held is not None and held.gang == job.key:
            self._end(_profile(job))

    def review(self) -> None:
        """End what has no reason any more. Called before anybody is decided about."""
        now = self._clock.now()
        if self._held:
            self._room.refill()  # a gang that is incomplete by now is held back first
        if self._resting:
            self._resting = {key: until for key, until in self._resting.items() if until > now and key in self._room}
        for profile, held in list(self._held.items()):
            if self._room.place(held.gang) in (Place.GONE, Place.GATED):
                self._end(profile)
            elif held.until <= now:
                log.v(1, "A gang has come no closer; others may take the room", gang=held.reservation.title)
                self._resting[held.gang] = now + self._patience[profile]
                self._end(profile)

    @property
    def due(self) -> float | None:
        """When `review` will have something to end."""
        return min((held.until for held in self._held.values()), default=None)

    def _end(self, profile: str) -> None:
        del self._held[profile]
        self._room.on_event(ENDED)


def _profile(job: Job) -> str:
    return job.pods[0].spec.scheduler_name


def _site(reservation: Reservation) -> tuple[str, str, str]:
    return reservation.gang, reservation.level, reservation.domain
