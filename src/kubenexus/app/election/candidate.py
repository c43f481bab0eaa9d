"""One candidate for leadership: what it saw, what it may do. No I/O and no clock; `app.election.leader` drives it.

As client-go's elector: another's lease is judged by how long *we* have seen it unchanged, never by the clock of the
machine that wrote it, and a write carries the version it replaces.

The fence counts from when a renewal was *sent*. The server applied it later than that, others saw it later still, and
they wait for the whole lease from there: so when they begin, every write of ours has ended (DESIGN, fault model).

`renewed_at` is all that other threads look at: one reference, replaced as a whole, and read once for each question.
"""

from collections.abc import Callable

from kubenexus.app.election import lease as leases
from kubenexus.app.election.lease import Lease, LeaseConfig, LeaseSpec
from kubenexus.client.calls import Call

Note = Callable[[float], str | None]


class Candidate:
    """`identity` is this process's alone: two that share one would both lead. `note` is asked with each write what the
    lease is to say about slow jobs, with the time that is written down; None leaves what is there."""

    def __init__(self, identity: str, terms: LeaseConfig, note: Note = lambda _: None) -> None:
        self.identity = identity
        self.terms = terms
        self._note = note
        self.renewed_at: float | None = None  # when the last renewal that worked was sent
        self._lease: Lease | None = None
        self._seen_at = 0.0

    @property
    def leader(self) -> str:
        """Who holds the lease, as far as we have seen; "" if nobody does."""
        return "" if self._lease is None else self._lease.spec.holder

    def may_write(self, now: float) -> bool:
        """Whether a write may start: we hold the lease, and renewed it recently enough. For any thread."""
        renewed_at = self.renewed_at  # read once: the lease thread may set it to None in between
        return renewed_at is not None and now < renewed_at + self.terms.renew

    def lease_left(self, now: float) -> float:
        """Seconds until another may take the lease from us, at least 0. For any thread."""
        renewed_at = self.renewed_at
        return 0.0 if renewed_at is None else max(0.0, renewed_at + self.terms.lease - now)

    @property
    def deadline(self) -> float:
        """When the fence closes, unless the lease is renewed before."""
        return 0.0 if self.renewed_at is None else self.renewed_at + self.terms.renew

    @property
    def slow_jobs(self) -> str:
        """What stands on the lease about slow jobs, as far as we have seen."""
        return "" if self._lease is None else self._lease.slow_jobs

    # --- one round: read, then perhaps write ----------------------------------------------------------------------
    # `wall` is the time that is written down, where it is not `now`, by which the lease is judged.

    def renewal(self, wall: float) -> Call | None:
        """For who leads: renew without reading first, trusting that nobody else wrote."""
        if self._lease is None or self.renewed_at is None or self.leader != self.identity:
            return None
        return leases.update_call(self.terms, self._lease, self._mine(wall), self._note(wall))

    def on_read(self, lease: Lease | None, now: float, wall: float | None = None) -> Call | None:
        """The lease as it is (None: there is none). Returns what to write, or None: it is somebody else's."""
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
        return leases.update_call(self.terms, lease, self._mine(wall), self._note(wall))

    def on_written(self, lease: Lease, sent_at: float, now: float) -> None:
        """The server took what we sent at `sent_at`: we lead."""
        self._lease, self._seen_at, self.renewed_at = lease, now, sent_at

    # --- the end --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """No write starts from now on. The first step of giving up the lease."""
        self.renewed_at = None

    def release(self, lease: Lease, wall: float) -> Call | None:
        """Give the lease up, as it was read just now; None if it is not ours. Only after `close`, and when the last
        write has ended: another may begin at once."""
        if lease.spec.holder != self.identity:
            return None
        return leases.update_call(self.terms, lease, leases.released_spec(wall, lease.spec), self._note(wall))

    # --- how it judges --------------------------------------------------------------------------------------------

    def _create(self, now: float, wall: float) -> Call | None:
        # A deleted lease was not given up: its holder may still write until it would have expired. No replica of this
        # configuration writes for longer than our own lease lasts, whatever duration stood on the deleted one.
        until = self._seen_at + min(self._lasts, self.terms.lease)
        if self._lease is not None and self.leader not in ("", self.identity) and now <= until:
            return None
        return leases.create_call(self.terms, self._mine(wall))

    @property
    def _lasts(self) -> int:
        return 0 if self._lease is None else self._lease.spec.lease_duration_seconds or 0

    def _expired(self, now: float) -> bool:
        return now > self._seen_at + self._lasts

    def _mine(self, wall: float) -> LeaseSpec:
        return leases.acquired_spec(self.identity, self.terms, wall, None if self._lease is None else self._lease.spec)
