"""For how long reservations of a profile may make other jobs wait, and for how long they rest after that.

              a gang keeps room             a job has to wait
     OPEN ───────────────────────▶ TURN ───────────────────────▶ BLOCKING
       ▲                            │                               │
       ├──── nobody had to wait ────┘                               ├──── the gang is placed ────▶ OPEN
       └───────────── its time is over ──────────── RESTING ◀───────┘ no closer, or gone

The account is the profile's, not a gang's: gangs that come under new names, in new sizes or one after the other share
it, and so no stream of gangs gets more of it than one gang. A turn ends when the gang has come no closer for `stall`
seconds. Then all reservations rest, `k` times as long as the turn made jobs wait, and twice as long after each further
turn in vain. The time of a gang that was placed in the end does not count, if it took no less than was kept for it (a
tenant could else shrink its gang just in time, again and again); that of gangs which held before it does.

With k = 2700 / (900 - stall), reservations that come no closer make jobs wait for at most 900 seconds of any hour: all
turns in an hour but the last one have their rest within it, so that 3600 >= H + k (H - stall) for their sum H, which is
H <= 900. "Closer" is a sixteenth of the members: a turn has at most sixteen such steps, whatever a tenant does to its
own pods, and all of it counts if the gang is not placed. See docs/adr/0011.
"""

from typing import Final

HOUR: Final = 3600.0
SHARE: Final = 0.25  # of any hour that jobs may wait for reservations that came no closer
MAX_STALL: Final = 600.0  # seconds; the closer it comes to a quarter of an hour, the longer the rest
MAX_REST: Final = 3600.0  # what doubling leads to
STEPS: Final = 16


class ReservationAccount:
    """Called by `GangReservations` alone, which passes the time. `patience`: seconds without coming closer."""

    def __init__(self, patience: float) -> None:
        self.stall = min(patience, MAX_STALL)
        budget = SHARE * HOUR
        self._factor = (HOUR - budget) / (budget - self.stall)
        self._turns_in_vain = 0
        self._rests_until = 0.0
        self._closer_at: float | None = None  # when the turn began, or the gang last came closer
        self._blocks_since: float | None = None  # from when the gang that holds has made jobs wait
        self._others = 0.0  # seconds of this turn that gangs had which no longer hold
        self._steps = 0

    def is_resting(self, now: float) -> bool:
        """Whether nothing may be kept now."""
        return now < self._rests_until

    @property
    def due(self) -> float | None:
        """When the turn ends, if the gang comes no closer; None: it is nobody's turn."""
        return None if self._closer_at is None else self._closer_at + self.stall

    def held_for(self, now: float) -> float:
        """For how many seconds the gang that holds now has made others wait."""
        return 0.0 if self._blocks_since is None else now - self._blocks_since

    # --- what happens ---------------------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """A gang keeps room, and none did before."""
        self._closer_at = now

    def block(self, now: float) -> None:
        """A job has to wait for it."""
        if self._blocks_since is None:
            self._blocks_since = now

    def came_closer(self, now: float) -> None:
        """Room for another sixteenth of the members has appeared."""
        if self._steps < STEPS:
            self._steps += 1
            self._closer_at = now

    def hand_over(self, now: float) -> None:
        """Another gang holds from now on. The turn goes on: it is the profile's."""
        if self._blocks_since is not None:
            self._others += self.held_for(now)
            self._blocks_since = now

    def placed(self, now: float) -> None:
        """The gang that holds was placed, no smaller than it was: its time was well spent, and the next turn in vain is
        the first again."""
        self._turns_in_vain = 0
        self._rest(self._others, now)

    def ended_in_vain(self, now: float) -> None:
        """The reservation ends, and the gang was not placed, or only what it had shrunk to."""
        seconds = self._others + self.held_for(now)
        self._rest(seconds, now)
        if seconds >= self.stall / 2:
            self._turns_in_vain += 1

    def _rest(self, seconds: float, now: float) -> None:
        least = self._factor * seconds
        doubled = min(least * 2.0 ** min(self._turns_in_vain, 16), MAX_REST)
        self._rests_until = now + max(least, doubled)
        self._closer_at = self._blocks_since = None
        self._others, self._steps = 0.0, 0
