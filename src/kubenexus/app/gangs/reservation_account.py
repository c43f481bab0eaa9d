"""Limits for how long the reservations of a profile may make other jobs wait, and how long they rest after that.

              a gang reserves               a job has to wait
     OPEN ───────────────────────▶ TURN ───────────────────────▶ BLOCKING
       ▲                            │                               │
       ├──── no job had to wait ────┘                               ├──── the gang is placed ────▶ OPEN
       └───────────── its time is over ──────────── RESTING ◀───────┘ no closer, or gone

The account belongs to the profile, not to a gang. Gangs that come under new names, in new sizes or one after the other
share it. So a stream of gangs gets no more of it than one gang.

A turn ends when the gang has come no closer for `stall` seconds. Then all reservations rest, `k` times as long as the
turn made jobs wait, and twice as long after each further turn in vain. The time of a gang that was placed in the end
does not count, if it took no less than was reserved for it. Otherwise a tenant could shrink its gang just in time,
again and again. The time of gangs that held the reservation before it does count.

With k = 2700 / (900 - stall), reservations that come no closer make jobs wait for at most 900 seconds of any hour. All
turns in an hour but the last one have their rest within it. So their sum H has
3600 >= H + k (H - stall), which is H <= 900.

A job with an expected start (`plan.backfill`) keeps its turn until then, and for some time after it. While it waits,
jobs that end before it starts go ahead. If it is not placed, all reservations rest `k` times as long as jobs had to
wait. So in the long run less than a fifth of the time is spent on promises that are not kept.

"Closer" is a sixteenth of the members. A turn has at most sixteen such steps, even if a tenant deletes and creates its
own pods. All of the turn counts if the gang is not placed. See docs/adr/0011.
"""

from typing import Final

HOUR: Final = 3600.0
SHARE: Final = 0.25  # part of any hour that jobs may wait for reservations that come no closer
MAX_STALL: Final = 600.0  # seconds; k grows without bound as `stall` nears 900
MAX_REST: Final = 3600.0  # seconds; the limit of the doubling
STEPS: Final = 16


class ReservationAccount:
    """The account of one profile. `patience` is the seconds that a gang may hold a reservation without coming closer.
    Called only by `GangReservations`, which passes the time."""

    def __init__(self, patience: float) -> None:
        self.stall = min(patience, MAX_STALL)
        budget = SHARE * HOUR
        self._factor = (HOUR - budget) / (budget - self.stall)
        self._turns_in_vain = 0
        self._rests_until = 0.0
        self._closer_at: float | None = None  # when the turn began, or the gang last came closer
        self._promised_until = 0.0  # until when the turn lasts at least: a job has an expected start
        self._blocks_since: float | None = None  # since when the holder has made jobs wait
        self._earlier_seconds = 0.0  # seconds of this turn that earlier holders made jobs wait
        self._steps = 0

    def is_resting(self, now: float) -> bool:
        """Returns whether no gang may reserve capacity now."""
        return now < self._rests_until

    @property
    def due(self) -> float | None:
        """Returns when the turn ends if the gang comes no closer, None if there is no turn."""
        return None if self._closer_at is None else max(self._closer_at + self.stall, self._promised_until)

    def blocked_seconds(self, now: float) -> float:
        """Returns for how many seconds the gang that holds the reservation has made other jobs wait."""
        return 0.0 if self._blocks_since is None else now - self._blocks_since

    # --- events ---------------------------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Begins a turn: a gang reserves capacity, and none did before."""
        self._closer_at = now

    def promise(self, until: float) -> None:
        """Lets the turn last until then, however close the job comes: it is expected to start before. All of the turn
        counts if it is not placed."""
        self._promised_until = until

    def block(self, now: float) -> None:
        """Records that a job has to wait for the reservation."""
        if self._blocks_since is None:
            self._blocks_since = now

    def came_closer(self, now: float) -> None:
        """Records that there is capacity for another sixteenth of the members."""
        if self._steps < STEPS:
            self._steps += 1
            self._closer_at = now

    def hand_over(self, now: float) -> None:
        """Records that another gang holds the reservation from now on. The turn goes on: it belongs to the profile."""
        if self._blocks_since is not None:
            self._earlier_seconds += self.blocked_seconds(now)
            self._blocks_since = now

    def placed(self, now: float) -> None:
        """Ends the turn: the gang was placed, no smaller than it was. Its own time does not count, and the next turn in
        vain counts as the first again."""
        self._turns_in_vain = 0
        self._rest(self._earlier_seconds, now)

    def ended_in_vain(self, now: float) -> None:
        """Ends the turn: the gang was not placed, or only after it shrank."""
        seconds = self._earlier_seconds + self.blocked_seconds(now)
        self._rest(seconds, now)
        if seconds >= self.stall / 2:
            self._turns_in_vain += 1

    def _rest(self, seconds: float, now: float) -> None:
        least = self._factor * seconds
        doubled = min(least * 2.0 ** min(self._turns_in_vain, 16), MAX_REST)
        self._rests_until = now + max(least, doubled)
        self._closer_at = self._blocks_since = None
        self._promised_until = 0.0
        self._earlier_seconds, self._steps = 0.0, 0
