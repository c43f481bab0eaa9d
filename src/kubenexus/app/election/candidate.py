"""State of one candidate for leadership, without I/O and without a clock. `app.election.leader` drives it.

The rules are those of client-go's elector. The age of another holder's lease is how long this process has seen it
unchanged: the clock of the machine that wrote it is never used. Each write carries the resourceVersion it replaces.

The write deadline counts from when a renewal was *sent*. The API server applied it later, other candidates saw it later
still, and they wait for the whole lease from there. So every write of this process has ended when another begins
(DESIGN, fault model).

Other threads read only `renewed_at`: one reference that is replaced as a whole, and read once in each method.
"""

from collections.abc import Callable

from kubenexus.app.election import lease as leases
from kubenexus.app.election.lease import Lease, LeaseConfig, LeaseSpec
from kubenexus.client.calls import Call

Note = Callable[[float], str | None]


class Candidate:
    """One candidate for leadership, and the last state of the lease it has seen.

    `identity` must be unique: two processes that share one would both lead. `note` is called for each write, with the
    time written to the lease, and returns the annotation about slow jobs; None leaves the annotation unchanged.
    """

    def __init__(self, identity: str, terms: LeaseConfig, note: Note = lambda _: None) -> None:
        self.identity = identity
        self.terms = terms
        self._note = note
        self.renewed_at: float | None = None  # when the last renewal that worked was sent
        self._lease: Lease | None = None
        self._seen_at = 0.0

    @property
    def leader(self) -> str:
        """Returns the holder of the lease as last seen, "" if there is none."""
        return "" if self._lease is None else self._lease.spec.holder

    def may_write(self, now: float) -> bool:
        """Returns whether a write may start: this candidate holds the lease and renewed it recently enough. For any
        thread."""
        renewed_at = self.renewed_at  # read once: the lease thread may set it to None in between
        return renewed_at is not None and now < renewed_at + self.terms.renew

    def lease_left(self, now: float) -> float:
        """Returns the seconds until another candidate may take the lease, at least 0. For any thread."""
        renewed_at = self.renewed_at
        return 0.0 if renewed_at is None else max(0.0, renewed_at + self.terms.lease - now)

    @property
    def deadline(self) -> float:
        """Returns the time after which no write may start, unless the lease is renewed before."""
        return 0.0 if self.renewed_at is None else self.renewed_at + self.terms.renew

    @property
    def slow_jobs(self) -> str:
        """Returns the annotation about slow jobs on the lease as last seen."""
        return "" if self._lease is None else self._lease.slow_jobs

    # --- one round: read, then perhaps write ----------------------------------------------------------------------
    # `now` is the time by which the age of the lease is judged, `wall` the time that is written to it.

    def renewal(self, wall: float) -> Call | None:
        """Returns the write that renews the lease without reading it first; None if this candidate does not hold it."""
        if self._lease is None or self.renewed_at is None or self.leader != self.identity:
            return None
        return leases.update_call(self.terms, self._lease, self._own_spec(wall), self._note(wall))

    def on_read(self, lease: Lease | None, now: float, wall: float | None = None) -> Call | None:
        """Takes in the lease as read (None: it does not exist). Returns the write that acquires it, None if another
        holds it."""
        wall = now if wall is None else wall
        if lease is None:
            return self._create(now, wall)
        if self._lease is None or self._lease.spec != lease.spec:
            self._seen_at = now
        self._lease = lease
        if self.leader != self.identity:
            self.renewed_at = None
            if self.leader and not self._expired(now):
                return None
        return leases.update_call(self.terms, lease, self._own_spec(wall), self._note(wall))

    def on_written(self, lease: Lease, sent_at: float, now: float) -> None:
        """Records that the API server accepted the write sent at `sent_at`: this candidate leads."""
        self._lease, self._seen_at, self.renewed_at = lease, now, sent_at

    # --- release --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Forbids all further writes. The first step of releasing the lease."""
        self.renewed_at = None

    def release(self, lease: Lease, wall: float) -> Call | None:
        """Returns the write that releases the lease as just read; None if another holds it. Call it only after `close`
        and when the last write has ended: another candidate may begin at once."""
        if lease.spec.holder != self.identity:
            return None
        return leases.update_call(self.terms, lease, leases.released_spec(wall, lease.spec), self._note(wall))

    # --- rules ----------------------------------------------------------------------------------------------------

    def _create(self, now: float, wall: float) -> Call | None:
        # A deleted lease was not released: its holder may still write until it would have expired. No replica with this
        # configuration writes for longer than its own lease lasts, so a longer duration on the deleted lease does not
        # count.
        until = self._seen_at + min(self._duration, self.terms.lease)
        if self._lease is not None and self.leader not in ("", self.identity) and now <= until:
            return None
        return leases.create_call(self.terms, self._own_spec(wall))

    @property
    def _duration(self) -> int:
        return 0 if self._lease is None else self._lease.spec.lease_duration_seconds or 0

    def _expired(self, now: float) -> bool:
        return now > self._seen_at + self._duration

    def _own_spec(self, wall: float) -> LeaseSpec:
        return leases.acquired_spec(self.identity, self.terms, wall, None if self._lease is None else self._lease.spec)
