"""Reserves capacity for the first job that lacks it: one for each profile, on the nodes that the planner chooses.

That is the first gang. Where the ends of other pods are known, it is the first job, a single pod as well, and it gets a
reservation at the earliest time when it is expected to start (`backfill`).

Reservations are not persisted: after a restart the first refusal makes them again. The first gang is the one with the
highest priority of its own, without aging. Among equals it is that of the namespace whose last turn is the longest ago,
or that never had one; then the oldest gang.

A reservation ends when:

- the gang is placed, gone or incomplete;
- the gang waits for something other than capacity that will become free;
- another gang comes before it;
- the gang has come no closer for `patience` seconds.

After a reservation in vain all reservations of the profile rest (`reservation_account`).
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from kubenexus.api.gangs.job_key import namespace_of
from kubenexus.app.gangs.backfill import Backfill
from kubenexus.app.gangs.reservation_account import STEPS, ReservationAccount
from kubenexus.base.clock import Clock
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.queue_limits import TIER_LIMIT
from kubenexus.observe import logs
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.placement_sums import total
from kubenexus.plan.gang.reservation import RESERVATION_ENDED, Reservation, is_capacity_shortage
from kubenexus.queue.gangs.job_assembler import JobAssembler
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.snapshot import Snapshot

_MAX_NAMESPACES = 1000  # namespaces of a profile whose turns are remembered
_EPSILON = 1e-9  # tolerance for rounding

log = logs.get("reservations")


class ActiveReservation(msgspec.Struct, gc=False):
    """A reservation and its progress. `best` is the largest fraction of the members that there was capacity for.
    `most_reserved` is the most of each resource that was reserved for this gang since it holds the reservation."""

    reservation: Reservation
    best: float
    most_reserved: Mapping[str, int]

    @property
    def gang(self) -> str:
        return self.reservation.gang


class GangReservations:
    """The reservations of all profiles. `patience` is by profile, in seconds; 0 turns reservations off there. Called
    only by the scheduling loop."""

    def __init__(
        self,
        queue: SchedulingQueue,
        assembler: JobAssembler,
        clock: Clock,
        patience: Mapping[str, float],
        backfill: Mapping[str, Backfill] = MappingProxyType({}),
    ) -> None:
        self._queue, self._assembler, self._clock = queue, assembler, clock
        self._accounts = {name: ReservationAccount(seconds) for name, seconds in patience.items() if seconds}
        self._backfill = {name: each for name, each in backfill.items() if name in self._accounts}
        self._held: dict[str, ActiveReservation] = {}
        self._goes_ahead = ""  # the job that is decided now, if it comes after one with an expected start
        self._turn_ended: dict[str, dict[str, float]] = {}  # by profile and namespace: when its last turn in vain ended

    def ahead_of(self, job: Job) -> Reservation | None:
        """Returns the reservation that this job has to leave free, if the job comes after that gang by its own priority
        and age. Missing members of a started gang are jobs like any other, except for the capacity that lost members
        left (`plan.gang.replacement`)."""
        held = self._held.get(job.profile) if self._held else None
        if held is None or held.gang == job.key:
            return None
        own, first = self._queue.rank(job.key), self._queue.rank(held.gang)
        if first is None or (own is not None and own < first):
            return None
        if held.reservation.is_timed:
            return self._ahead_by_time(job, held)
        return held.reservation

    def _ahead_by_time(self, job: Job, held: ActiveReservation) -> Reservation | None:
        """Returns the reservation with what is spare now, None if the job ends before the first one starts."""
        backfill, now = self._backfill[job.profile], self._clock.now()
        self._goes_ahead = job.key
        if backfill.goes_ahead(job, held.reservation, now):
            return None
        held.reservation = backfill.current(held.reservation, now)
        return held.reservation

    def held(self, profile: str) -> Reservation | None:
        """Returns the reservation of a profile."""
        held = self._held.get(profile)
        return None if held is None else held.reservation

    def ends_at(self, profile: str) -> float | None:
        """Returns when the reservation of a profile ends if the gang comes no closer, None if there is none."""
        return self._accounts[profile].due if profile in self._held else None

    def refused(self, job: Job, decision: Decision, planner: Planner, snapshot: Snapshot) -> None:
        """Takes in a refusal. If the job is the first gang that lacks capacity, it reserves what there is."""
        profile, now = job.profile, self._clock.now()
        account, held = self._accounts.get(profile), self._held.get(profile)
        if account is None:
            return
        if decision.diagnosis.held_back:
            if held is not None:
                account.block(now)
            return
        own = held if held is not None and held.gang == job.key else None
        if own is None and (
            account.is_resting(now) or (held is not None and self._comes_before(held.gang, job.key, profile))
        ):
            return
        reservation = self._planned(job, decision, own, planner, snapshot)
        if reservation is not None and not account.is_resting(now):
            self._keep(profile, reservation)
        elif own is not None and reservation is None:
            self._end(profile)  # it waits for something other than capacity now

    def _planned(
        self, job: Job, decision: Decision, own: ActiveReservation | None, planner: Planner, snapshot: Snapshot
    ) -> Reservation | None:
        """Returns what a refused job reserves: at its expected start if that is known, else what there is for a gang;
        None if it does not wait for capacity that will become free."""
        if TIER_LIMIT in decision.diagnosis.refused_by:
            return None  # other capacity would help, and none of it may be kept from others for that
        backfill, gang_diagnosis = self._backfill.get(job.profile), decision.gang_diagnosis
        shortage = job.is_gang and gang_diagnosis is not None and is_capacity_shortage(gang_diagnosis)
        timed = own.reservation if own is not None and own.reservation.is_timed else None
        if backfill is not None and (timed is not None or backfill.is_possible) and (shortage or not job.is_gang):
            found = backfill.plan(job, timed, planner, snapshot, self._clock.now())
            if found is not None:
                return found
        if gang_diagnosis is None or not shortage:
            return None
        return planner.reserve(job, gang_diagnosis, snapshot)

    def _keep(self, profile: str, reservation: Reservation) -> None:
        account, held, now = self._accounts[profile], self._held.get(profile), self._clock.now()
        best, most_reserved = reservation.ready, reservation.asks()
        if held is not None and held.gang == reservation.gang:
            step = max(1 / STEPS, 1 / reservation.needed)
            if best >= held.best + step - _EPSILON:
                account.came_closer(now)
            else:
                best = held.best
            most_reserved |= {
                name: max(amount, most_reserved.get(name, 0)) for name, amount in held.most_reserved.items()
            }
        elif held is None:
            account.begin(now)
        else:
            self._remember_turn(profile, held, now)
            account.hand_over(now)
        if reservation.is_timed:
            account.promise(reservation.starts_at + max(self._backfill[profile].settings.late, account.stall))
        self._held[profile] = ActiveReservation(reservation, best, most_reserved)
        if held is not None and held.reservation.covers() != reservation.covers():
            self._queue.on_event(RESERVATION_ENDED)  # part of the old reservation is free now

    def _comes_before(self, holder: str, gang: str, profile: str) -> bool:
        """Returns whether the gang that holds the reservation goes on holding it."""
        first, second = self._queue.rank(holder), self._queue.rank(gang)
        if holder == gang or first is None or second is None:
            return holder != gang and first is not None
        turns = self._turn_ended.get(profile, {})
        one, other = turns.get(namespace_of(holder), 0.0), turns.get(namespace_of(gang), 0.0)
        return (first[0], one, first[1]) < (second[0], other, second[1])

    def placed(self, job: Job, decision: Decision) -> bool:
        """Takes in a placement. Returns whether the job went ahead of one that waits for its expected start."""
        goes_ahead, self._goes_ahead = self._goes_ahead == job.key, ""
        self._end_turn(job, decision)
        return goes_ahead

    def _end_turn(self, job: Job, decision: Decision) -> None:
        """Ends the turn if the job holds the reservation. The turn was in vain if the gang
        took less than was reserved for it. Such a gang made others wait for capacity that it did not need, and without
        a rest the next one could do the same at once."""
        profile, held = job.profile, self._held.get(job.profile)
        if held is None or held.gang != job.key:
            return
        taken = total((each.footprint, 1) for each in decision.placements)
        if any(taken.get(name, 0) < amount for name, amount in held.most_reserved.items()):
            self._end(profile)
            return
        self._accounts[profile].placed(self._clock.now())
        self._turn_ended.get(profile, {}).pop(job.namespace, None)
        self._remove(profile)

    def expire(self) -> None:
        """Ends reservations that have no reason any more. Called before each burst of decisions."""
        if not self._held:
            return
        now = self._clock.now()
        for profile, held in list(self._held.items()):
            self._assembler.build_gang(held.gang)  # gates it if it has become incomplete
            due = self._accounts[profile].due
            if self._queue.state(held.gang) in (QueueState.GONE, QueueState.GATED):
                self._end(profile)
            elif due is not None and due <= now:
                log.v(1, "A gang has come no closer; others may take the room", gang=held.reservation.display_name)
                self._end(profile)

    @property
    def due(self) -> float | None:
        """Returns when `expire` will have a reservation to end."""
        times = (self._accounts[profile].due for profile in self._held)
        return min((time for time in times if time is not None), default=None)

    def _end(self, profile: str) -> None:
        """Ends a reservation whose gang was not placed, or no longer waits for capacity."""
        now = self._clock.now()
        self._remember_turn(profile, self._held[profile], now)
        self._accounts[profile].ended_in_vain(now)
        self._remove(profile)

    def _remove(self, profile: str) -> None:
        del self._held[profile]
        self._queue.on_event(RESERVATION_ENDED)

    def _remember_turn(self, profile: str, held: ActiveReservation, now: float) -> None:
        """Records that a namespace has had half a turn or more in vain: gangs of other namespaces come first now."""
        account, turns = self._accounts[profile], self._turn_ended.setdefault(profile, {})
        if account.blocked_seconds(now) < account.stall / 2:
            return
        turns.pop(held.reservation.namespace, None)
        turns[held.reservation.namespace] = now
        if len(turns) > _MAX_NAMESPACES:
            del turns[next(iter(turns))]
