"""Leader election on a Lease, as in kube-scheduler: of all replicas only the leader writes.

`app.election.leader_thread` awaits `acquire`, then `hold`, in a thread with its own event loop. When `hold` raises
`LeadershipLost` the process ends with an error, because its state may be outdated.

Each writer calls `may_write` first and gives up after `write_timeout`. These two and `check` may be called from any
thread: they read one reference.

The elector needs an API client of its own. A renewal that waits behind binds for a connection comes too late.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, NoReturn

import msgspec

from kubenexus.app.election.candidate import Candidate
from kubenexus.app.election.lease import Lease, LeaseConfig, get_call
from kubenexus.base.clock import Clock, Sleep
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import Api, ApiError, Call, Uncertain, Unreachable

JITTER: Final = 1.2  # periods of jitter, as client-go: so that candidates do not retry in step
LAST_CHANCE: Final = 0.1  # seconds; with less than this left no answer would come in time
TOLERANCE: Final = 20.0  # seconds after the end of the lease until the process is reported as unhealthy

Report = Callable[[str], None]


class LeadershipLost(KubeNexusError):
    """The lease could not be renewed in time, or another candidate holds it."""


class LeaderElector:
    """Acquires, renews and releases the lease for one candidate.

    `clock` measures the lease and must not be adjusted; `wall` is the time written to the lease. `on_problem` is called
    with the reason why the lease cannot be acquired or renewed, `on_leader` with the holder, each when it changes.
    """

    def __init__(
        self,
        api: Api,
        clock: Clock,
        candidate: Candidate,
        rng: Random,
        *,
        sleep: Sleep = asyncio.sleep,
        wall: Clock | None = None,
        on_problem: Report = lambda _: None,
        on_leader: Report = lambda _: None,
    ) -> None:
        self._api = api
        self._clock = clock
        self._candidate = candidate
        self._rng = rng
        self._sleep = sleep
        self._wall = wall or clock
        self._on_problem, self._problem, self._failure = on_problem, "", ""
        self._on_leader, self._leader = on_leader, ""

    @property
    def terms(self) -> LeaseConfig:
        return self._candidate.terms

    @property
    def leader(self) -> str:
        """Returns the holder of the lease as last seen."""
        return self._candidate.leader

    @property
    def slow_jobs(self) -> str:
        """Returns the annotation about slow jobs. After `acquire` it is that of the previous leader."""
        return self._candidate.slow_jobs

    @property
    def write_timeout(self) -> float:
        """Returns the seconds that a write sent now may take: it has to end with the lease. 0.0 in a process that was
        paused for longer than the lease after it called `may_write`."""
        return min(self.terms.write_timeout, self._candidate.lease_left(self._clock.now()))

    def may_write(self, now: float | None = None) -> bool:
        """Returns whether a write may start now. Cheap; called before each write."""
        return self._candidate.may_write(self._clock.now() if now is None else now)

    def check(self) -> str | None:
        """Returns the problem for `/livez`, or None. A leader is unhealthy if it still runs long after its lease has
        ended."""
        renewed, now = self._candidate.renewed_at, self._clock.now()
        if renewed is not None and now > renewed + self.terms.lease + TOLERANCE:
            return f"failed election to renew leadership on lease {self.terms.name}"
        return None

    # --- awaited by the lease thread ------------------------------------------------------------------------------

    async def acquire(self) -> None:
        """Returns when this process leads. Tries every two to four seconds, without an end."""
        while not await self._round(self.terms.renew / 3):
            await self._sleep(self.terms.retry * (1 + JITTER * self._rng.random()))

    async def hold(self) -> NoReturn:
        """Renews the lease until that fails for too long, then raises LeadershipLost."""
        while True:
            await self._sleep(min(self.terms.retry, max(0.0, self._left() / 2)))  # sooner when there is little left
            if self._left() < LAST_CHANCE:
                raise LeadershipLost(f"lease {self.terms.name} could not be renewed: {self._problem or 'no time'}")
            await self._round(min(self.terms.renew / 3, self._left() / 2))
            if self._candidate.renewed_at is None:
                raise LeadershipLost(f"lease {self.terms.name} is held by {self.leader or 'nobody'}")

    async def release(self) -> bool:
        """Releases the lease, so that another candidate need not wait for its end. No write may start from here on, so
        call it when the last write has ended. Tries for a few seconds and returns whether it succeeded; never
        raises."""
        self._candidate.close()
        end = self._clock.now() + self.terms.renew / 2
        while (left := end - self._clock.now()) > 0:
            answer = await self._attempt(self._give_up(left))
            if answer is not None:
                return answer
            await self._sleep(min(0.2, left))
        return False

    # --- one round ------------------------------------------------------------------------------------------------

    async def _round(self, timeout: float) -> bool:
        """Tries once to acquire or renew the lease, and returns whether this process leads."""
        done = await self._attempt(self._renew(timeout))
        if done is False:
            done = await self._attempt(self._read_and_take(timeout))
        self._report()
        return bool(done)

    async def _renew(self, timeout: float) -> bool:
        """Renews the lease without reading it. Returns False if there is nothing to renew, or another write came
        between."""
        now = self._clock.now()
        call = self._candidate.renewal(self._wall.now())
        try:
            return call is not None and await self._write(call, now, timeout)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
            return False

    async def _read_and_take(self, timeout: float) -> bool:
        lease = await self._read(timeout)
        now = self._clock.now()
        call = self._candidate.on_read(lease, now, self._wall.now())
        return call is not None and await self._write(call, now, timeout)

    async def _give_up(self, timeout: float) -> bool:
        lease = await self._read(timeout)
        call = None if lease is None else self._candidate.release(lease, self._wall.now())
        if call is not None:
            await self._api.send(call, timeout=timeout)
        return True

    async def _read(self, timeout: float) -> Lease | None:
        try:
            return Lease.read(await self._api.send(get_call(self.terms), timeout=timeout))
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    async def _write(self, call: Call, sent_at: float, timeout: float) -> bool:
        answer = Lease.read(await self._api.send(call, timeout=timeout))
        self._candidate.on_written(answer, sent_at, self._clock.now())
        return True

    async def _attempt(self, attempt: Awaitable[bool]) -> bool | None:
        """Awaits one attempt. Returns None if it failed, with the reason in `_failure`."""
        self._failure = ""
        try:
            return await attempt
        except (ApiError, Unreachable, Uncertain, msgspec.MsgspecError) as error:
            if not (isinstance(error, ApiError) and error.code == 409):  # another candidate was faster: no failure
                self._failure = str(error)
            return None

    def _report(self) -> None:
        """Calls `on_problem` and `on_leader` for what has changed since their last call."""
        if self._failure != self._problem:
            self._problem = self._failure
            if self._problem:
                self._on_problem(self._problem)
        if self.leader != self._leader:
            self._leader = self.leader
            self._on_leader(self._leader)

    def _left(self) -> float:
        """Returns the seconds until the write deadline."""
        return self._candidate.deadline - self._clock.now()
