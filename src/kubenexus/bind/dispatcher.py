"""The dispatcher: commitments go in, calls go out, outcomes come back. Nothing is lost on the way.

    submit ──▶ PreBind (volumes) ──▶ wait for a slot ──▶ Bind ──▶ PostBind ──▶ land
                                                          │ ▲
                                                    TAKEN │ │ UNSURE: the same bind again
                                                          ▼ │
                                                        a look

`submit` never waits. At most `limit` binds are in flight; binds of one job stand next to each other in the line for
them. A job goes out whole, however large: `full` holds back the next one. Each write asks the guard first and ends
within its timeout, so that it has ended when another process may lead.

A bind without an answer may have happened. It is settled by a look, and if the pod still has no node by sending *the
same* bind again: whichever of the two lands, the pod gets the node on which it is counted.
"""

import asyncio
import contextlib
from collections.abc import Callable
from random import Random

from kubenexus.base.clock import Sleep
from kubenexus.bind.commitment import NO_POINTS, Bind, Commitment, Guard, Landing, Points
from kubenexus.bind.outcome import BOUND, Fate, Outcome, found, outcome_of
from kubenexus.client.backoff import Backoff
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.client.kinds import PODS
from kubenexus.client.verbs import get

LIMIT = 64  # binds in flight
AHEAD = 2  # times as many may be decided and not yet answered
OPEN = 64  # times as many commitments may wait for volumes or for a look
TRIES = 4  # binds without an answer before we believe a look that says "no node"
REST = 1.0  # seconds without decisions after the server could not be reached: they would only pile up

Still = Callable[[Bind], str]


def _wanted(bind: Bind) -> str:
    return ""


class Dispatcher:
    """`still` is asked right before a bind is sent: why it is no longer wanted (the pod or its node is gone), or ""."""

    def __init__(
        self,
        api: Api,
        guard: Guard,
        land: Landing,
        rng: Random,
        *,
        limit: int = LIMIT,
        points: Points = NO_POINTS,
        still: Still = _wanted,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._api, self._guard, self._land, self._rng, self._sleep = api, guard, land, rng, sleep
        self._limit, self._still = limit, still
        self._points = points
        self._slots = asyncio.Semaphore(limit)
        self._open: set[asyncio.Task[None]] = set()
        self._handed = 0  # binds of commitments that nobody has begun to carry out
        self._binding = 0  # in flight, or waiting for a slot
        self._calm = asyncio.Event()  # nobody waits for a slot
        self._calm.set()
        self._closing = self._resting = False
        self._pause: asyncio.Task[None] | None = None
        self.rest = REST
        self.rested: Callable[[], None] = lambda: None

    @property
    def full(self) -> bool:
        """Whether the loop should wait before it decides more: it is far enough ahead of the API server, or that is
        away. `rested` is called when it may go on, or `land` where too many commitments were open. A commitment counts
        from when it is handed over, for a burst hands over many before the first is begun."""
        ahead = self._handed + self._binding >= AHEAD * self._limit or len(self._open) >= OPEN * self._limit
        return ahead or self._resting

    @property
    def open(self) -> int:
        """Commitments that have not landed."""
        return len(self._open)

    @property
    def calm(self) -> bool:
        """Whether no bind waits for its turn."""
        return self._calm.is_set()

    async def room(self, patience: float = 5.0) -> None:
        """For less urgent calls: returns when no bind waits for its turn, or after `patience` seconds."""
        if not self._calm.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._calm.wait()

    def submit(self, commitment: Commitment) -> None:
        """Carry this out, beginning soon. Its end is told to `land`."""
        self._handed += len(commitment.binds)
        task = asyncio.get_running_loop().create_task(self._carry_out(commitment))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def close(self, patience: float) -> int:
        """No bind starts from now on; wait for those in flight. Returns how many were given up."""
        self._closing = True
        if not self._open:
            return 0
        _, left = await asyncio.wait(self._open, timeout=patience)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return len(left)

    # --- one commitment -------------------------------------------------------------------------------------------

    async def _carry_out(self, commitment: Commitment) -> None:
        self._handed -= len(commitment.binds)
        try:
            outcomes = await self._outcomes(commitment.binds)
        except Exception as error:  # a mistake of ours, or of a plugin's, must not cost anybody a pod
            outcomes = [Outcome(Fate.REFUSED, f"{type(error).__name__}: {error}")] * len(commitment.binds)
        self._land(commitment, outcomes)

    async def _outcomes(self, binds: tuple[Bind, ...]) -> list[Outcome]:
        problem = await self._prepare(binds) if self._points.pre_binds else ""
        if problem:
            return [Outcome(Fate.REFUSED, problem)] * len(binds)
        self._begin(len(binds))
        if len(binds) == 1:
            return [await self._bind(binds[0])]
        return await asyncio.gather(*(self._bind(each) for each in binds))

    async def _prepare(self, binds: tuple[Bind, ...]) -> str:
        for point in self._points.pre_binds:
            concerned = [each for each in binds if point.concerns(each)]
            if not concerned:
                continue
            problems = await asyncio.gather(*(point.pre_bind(each) for each in concerned))
            for said in problems:
                if said:
                    return f'running PreBind plugin "{point.name}": {said}'
        return ""

    async def _bind(self, bind: Bind) -> Outcome:
        outcome = await self._in_turn(bind)
        if outcome.fate.open:
            outcome = await self._settle(bind, outcome)
        if outcome.fate is Fate.BOUND:
            for point in self._points.post_binds:
                point.post_bind(bind)
        return outcome

    async def _in_turn(self, bind: Bind) -> Outcome:
        try:
            async with self._slots:
                return await self._send(bind)
        finally:
            self._answered()

    def _begin(self, binds: int) -> None:
        """All of a job's binds at once, before their tasks run."""
        self._binding += binds
        if self._binding > self._limit:
            self._calm.clear()

    def _answered(self) -> None:
        """The last of a large job may be long in coming: the loop is not to wait for that."""
        self._binding -= 1
        if self._binding <= self._limit:
            self._calm.set()
        if self._binding == AHEAD * self._limit - 1:
            self.rested()

    async def _send(self, bind: Bind) -> Outcome:
        if self._closing:
            return Outcome(Fate.NEVER, "this process is ending")
        if not self._guard.may_write():
            return Outcome(Fate.NEVER, "this process does not lead any more")
        problem = self._still(bind)
        if problem:
            return Outcome(Fate.NEVER, problem)
        try:
            await self._api.send(bind.call, timeout=self._guard.write_timeout)
        except (ApiError, Unreachable, Uncertain) as error:
            if isinstance(error, Unreachable):
                self._take_a_rest()
            return _said(outcome_of(error))
        return BOUND

    def _take_a_rest(self) -> None:
        if self.rest and not self._resting:
            self._resting = True
            self._pause = asyncio.get_running_loop().create_task(self._go_on_later())

    async def _go_on_later(self) -> None:
        await self._sleep(self.rest)
        self._resting = False
        self.rested()

    # --- what is not known yet ------------------------------------------------------------------------------------

    async def _settle(self, bind: Bind, outcome: Outcome) -> Outcome:
        """Find out, for as long as it takes: until then the pod keeps its room."""
        backoff, tries = Backoff(self._rng, 0.1, 5.0), 1
        while True:
            seen = await self._look(bind)
            if seen is not None and not seen.fate.open:
                return seen
            if seen is None:
                if outcome.fate is Fate.TAKEN:
                    return Outcome(Fate.REFUSED, outcome.message)
                if tries >= TRIES:
                    return Outcome(Fate.BUSY, outcome.message)
                tries += 1
                again = await self._send(bind)
                if again.fate in (Fate.BOUND, Fate.GONE, Fate.REFUSED):
                    return again
                outcome = again if again.fate is Fate.TAKEN else outcome
            await self._sleep(backoff.next())

    async def _look(self, bind: Bind) -> Outcome | None:
        """None: the pod has no node, or we may not look. UNSURE: the server does not say."""
        meta = bind.pod.metadata
        try:
            body = await self._api.send(get(PODS, meta.namespace, meta.name), timeout=self._guard.write_timeout)
        except ApiError as error:
            if error.code == 403:
                return None
            return Outcome(Fate.GONE if error.code == 404 else Fate.UNSURE, str(error))
        except (Unreachable, Uncertain) as error:
            return Outcome(Fate.UNSURE, str(error))
        return found(body, bind.uid, bind.node)


def _said(outcome: Outcome) -> Outcome:
    """In kube-scheduler's words."""
    said = f'running Bind plugin "DefaultBinder": {outcome.message}'
    return Outcome(outcome.fate, said, outcome.pod, outcome.dropped)
