"""Backfill by time, for one profile: which reservation the first job gets, and which jobs go ahead of it.

A plan is kept until the job is placed, or until an earlier start is found. If pods outlive their estimates, the job is
late, and its nodes stay reserved: pods that were expected to end there still end some day, and no others come. So the
job is late by at most as long as those pods outlive their estimates. A plan is made again if other pods took its nodes,
such as those of a higher priority, or if a node is gone.
"""

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from kubenexus.config.gang_settings import BackfillSettings, GangSettings
from kubenexus.framework.job import Job
from kubenexus.plan.backfill.expected_start import with_spare
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.state.ledger import Ledger
from kubenexus.state.snapshot import Snapshot

SWEEP_SECONDS: Final = 1.0  # between two sweeps for jobs that have no expected start


class Backfill:
    """The backfill of one profile. Called only by `GangReservations`."""

    def __init__(self, ledger: Ledger, settings: BackfillSettings) -> None:
        self._ledger, self.settings = ledger, settings
        self._ends = ledger.nodes.pods.expected_ends
        self._swept_in_vain = -math.inf
        self.sweeps = 0

    @property
    def is_possible(self) -> bool:
        """Whether the end of any pod is known."""
        return self.settings.ahead > 0 and bool(self._ends.known)

    def plan(
        self,
        job: Job,
        held: Reservation | None,
        planner: Planner,
        snapshot: Snapshot,
        now: float,
        *,
        pause: float = SWEEP_SECONDS,
    ) -> Reservation | None:
        """Returns the reservation of a job that was just refused. `held` is what it has so far. After a sweep that
        found nothing there is none for `pause` seconds."""
        if not self.settings.ahead or (not self._ends.known and held is None):
            return None
        known = self._refreshed(held, now) if held is not None and held.is_timed else None
        if known is None and now < self._swept_in_vain + pause:
            return None
        self._ends.look_again(now)
        self.sweeps += 1
        found = planner.reserve_at_start(job, snapshot, now, self.settings.ahead)
        if known is not None and (found is None or found.starts_at >= known.starts_at):
            ready = known.ready if found is None else found.ready
            return known if ready == known.ready else msgspec.structs.replace(known, ready=ready)
        if found is None:
            self._swept_in_vain = now
        return found

    def _refreshed(self, held: Reservation, now: float) -> Reservation | None:
        """Returns the reservation as of now; None if it does not hold any more."""
        if any(node not in self._ledger.nodes.row_of for node in held.nodes):
            return None
        found = with_spare(held, self._ledger.nodes, now)
        return None if any(amount < 0 for left in found.spare.values() for amount in left.values()) else found

    def goes_ahead(self, job: Job, reservation: Reservation, now: float) -> bool:
        """Whether the job is expected to end before the first job starts: a comparison of two numbers."""
        seconds = self.expected_seconds(job, reservation.starts_at - now)
        return now + seconds <= reservation.starts_at

    def expected_seconds(self, job: Job, most: float = math.inf) -> float:
        """Returns how long the job runs: as long as its longest member; infinite if that is not known, or more than
        `most`."""
        longest = 0.0
        for pod in job.pods:
            estimate = self._ends.estimate(pod)
            if estimate is None or estimate.high > min(most, self.settings.longest):
                return math.inf
            longest = max(longest, estimate.high)
        return longest

    def current(self, reservation: Reservation, now: float) -> Reservation:
        """Returns the reservation with what is spare on its nodes now."""
        return with_spare(reservation, self._ledger.nodes, now)


def make_backfill(ledger: Ledger, gangs: Mapping[str, GangSettings]) -> dict[str, Backfill]:
    """Returns the backfill of each profile."""
    return {name: Backfill(ledger, settings.backfill) for name, settings in gangs.items()}
