"""Leader election: of all replicas one writes. Which one is settled on a Lease, as with kube-scheduler.

`app.election.leader_thread` awaits `acquire`, then `hold`, in a thread with a loop of its own: when that raises
`LeadershipLost` the process ends with an error, since whatever it believes may be outdated. Each writer asks `fence`
first and gives up after `write_timeout`; these and `check` may be called from any thread, and read one reference.

Hand in a client that nobody else uses up: a renewal that waits for its turn behind binds comes too late.
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

JITTER: Final = 1.2  # client-go's: candidates ask at most this much later than the period, so that they do not march
LAST_CHANCE: Final = 0.1  # seconds; with less left no answer would come in time
TOLERANCE: Final = 20.0  # after the lease's end, before the process is reported sick

Report = Callable[[str], None]


class LeadershipLost(KubeNexusError):
    """The lease could not be renewed in time, or somebody else has it."""


class NotLeaderError(KubeNexusError):
    """A write that must not start: we do not lead, or cannot be sure that we do."""


class LeaderElector:
    """`on_problem` hears why the lease cannot be had, `on_leader` who has it, each when it changes.

    `clock` counts the seconds of the lease and must not be adjusted; `wall` is the time that is written down.
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
        """Who leads, as far as we have seen."""
        return self._candidate.leader

    @property
    def slow_jobs(self) -> str:
        """What the lease says about slow jobs: after `acquire`, what the leader before us noted."""
        return self._candidate.slow_jobs

    @property
    def write_timeout(self) -> float:
        """No write that is sent now may take longer than this many seconds: it has to end with the lease. A process
        that was stopped since it asked `may_write` has none left."""
        return min(self.terms.write_timeout, self._candidate.lease_left(self._clock.now()))

    def may_write(self, now: float | None = None) -> bool:
        """Whether a write may start now. Cheap; asked before each one."""
        return self._candidate.may_write(self._clock.now() if now is None else now)

    def require_leadership(self) -> None:
        """As `may_write`, for who would rather be stopped."""
        if not self.may_write():
            raise NotLeaderError("this process does not lead, or has not been able to renew its lease")

    def check(self) -> str | None:
        """For `/livez`: a leader that should have ended long ago, but has not."""
        renewed, now = self._candidate.renewed_at, self._clock.now()
        if renewed is not None and now > renewed + self.terms.lease + TOLERANCE:
            return f"failed election to renew leadership on lease {self.terms.name}"
        return None

    # --- what `app` awaits ----------------------------------------------------------------------------------------

    async def acquire(self) -> None:
        """Returns when we lead. Asks every two to four seconds until then, for as long as it takes."""
        while not await self._round(self.terms.renew / 3):
            await self._sleep(self.terms.retry * (1 + JITTER * self._rng.random()))

    async def hold(self) -> NoReturn:
        """Renews until that fails for too long; then raises LeadershipLost."""
        while True:
            await self._sleep(min(self.terms.retry, max(0.0, self._left() / 2)))  # sooner when there is little left
            if self._left() < LAST_CHANCE:
                raise LeadershipLost(f"lease {self.terms.name} could not be renewed: {self._problem or 'no time'}")
            await self._round(min(self.terms.renew / 3, self._left() / 2))
            if self._candidate.renewed_at is None:
                raise LeadershipLost(f"lease {self.terms.name} is held by {self.leader or 'nobody'}")

    async def release(self) -> bool:
        """Give the lease up, so that another need not wait for its end. Call it when the last write has ended; from
        here on none may start. Tries for a few seconds and says whether it worked; never raises."""
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
        """Try once to take or renew the lease. False: not this time."""
        done = await self._attempt(self._renew(timeout))
        if done is False:
            done = await self._attempt(self._read_and_take(timeout))
        self._report()
        return bool(done)

    async def _renew(self, timeout: float) -> bool:
        """False: there is nothing to renew, or somebody wrote meanwhile; read first."""
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

    async def _attempt(self, doing: Awaitable[bool]) -> bool | None:
        """None when it failed; `_failure` says why."""
        self._failure = ""
        try:
            return await doing
        except (ApiError, Unreachable, Uncertain, msgspec.MsgspecError) as error:
            if not (isinstance(error, ApiError) and error.code == 409):  # somebody was faster: no problem at all
                self._failure = str(error)
            return None

    def _report(self) -> None:
        """What changed since it was last told."""
        if self._failure != self._problem:
            self._problem = self._failure
            if self._problem:
                self._on_problem(self._problem)
        if self.leader != self._leader:
            self._leader = self.leader
            self._on_leader(self._leader)

    def _left(self) -> float:
        """Seconds until the fence closes."""
        return self._candidate.deadline - self._clock.now()
