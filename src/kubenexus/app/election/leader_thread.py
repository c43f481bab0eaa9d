"""Leader election in a thread of its own: leadership does not hang on a decision (ADR 10).

The lease is acquired, renewed and given up in this thread, by an event loop and a client that nothing else uses, so a
main loop that is busy for seconds keeps its lease. Without a main loop the lease is worth nothing: when that has shown
no life for half a minute the thread gives the lease up, so that another process can begin at once, and ends this one.

What the two threads share: `Candidate.renewed_at`, which the lease thread writes and the fence of the main loop reads;
`LoopActivity` and its slow jobs, which the main loop writes and the lease thread reads. Each is one reference that is
replaced as a whole. Everything else crosses over as a coroutine that one loop hands to the other.
"""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn, TypeVar

from kubenexus.app.election.leader import LeaderElector, LeadershipLost
from kubenexus.app.election.loop_activity import HEARTBEAT_SECONDS, MAX_STALL_SECONDS, LoopActivity, StallDetector
from kubenexus.base.clock import Clock, Sleep
from kubenexus.client.transport import ApiClient
from kubenexus.observe import logs

STOP_SECONDS: Final = (
    10.0  # seconds to give the lease up and to write the last line; then the process ends without them
)
MAX_FRAMES: Final = 4  # of the main thread's stack that the last line names

T = TypeVar("T")
log = logs.get("lease")


class LeaderElectionThread:
    """Made and called in the main loop; `elector` and the client behind it are used in the thread alone, but for what
    `LeaderElector` offers to every thread.

        acquire ──▶ hold ──▶ release ──▶ close
                     │ the main loop stands still
                     └──▶ lease given up, one line, `exit(1)`
    """

    def __init__(
        self,
        elector: LeaderElector,
        activity: LoopActivity,
        clock: Clock,
        *,
        sleep: Sleep = asyncio.sleep,
        exit: Callable[[int], object] = os._exit,
        grace: float = STOP_SECONDS,
    ) -> None:
        self.elector = elector
        self._activity, self._clock, self._sleep = activity, clock, sleep
        self._exit, self._grace = exit, grace
        # Each write of a loop that stands still has to be over before another may lead.
        self._patience = max(MAX_STALL_SECONDS, elector.terms.write_timeout + 5.0)
        self._main = threading.get_ident()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._holding: asyncio.Future[Any] | None = None
        self._watching: asyncio.Future[Any] | None = None

    # --- called in the main loop ----------------------------------------------------------------------------------

    async def acquire(self) -> str:
        """Returns when we lead, with what the lease says about slow jobs. From here on the lease is renewed."""
        return await self._there(self._acquire())

    async def hold(self) -> NoReturn:
        """Waits until the lease could not be renewed for too long; then raises LeadershipLost. After `acquire`."""
        await self._there(self._hold())
        raise LeadershipLost("the lease is no longer renewed")

    async def release(self) -> bool:
        """Ends `hold` and gives the lease up. Call it when the last write has ended. Says whether it worked."""
        return await self._there(self._release())

    async def close(self, client: ApiClient) -> None:
        """Closes the client that the election uses, and ends the thread; it may never have begun."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            await client.close()
            return
        await self._there(self._end(client))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(self._grace)
        self._loop = self._thread = None

    async def _there(self, doing: Coroutine[Any, Any, T]) -> T:
        """Run this in the thread. Cancelling here cancels it there."""
        if self._loop is None:
            # The standard one: a call in two seconds needs no uvloop, and login programs (exec plugins) may be run.
            self._loop = loop = asyncio.SelectorEventLoop()
            self._thread = threading.Thread(target=_run, args=(loop,), name="lease", daemon=True)
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(doing, self._loop))

    # --- run in the thread ----------------------------------------------------------------------------------------

    async def _acquire(self) -> str:
        await self.elector.acquire()
        noted = self.elector.slow_jobs
        self._watching = asyncio.ensure_future(self._watch())
        # At once: the main loop may be long in calling `hold`.
        self._holding = asyncio.ensure_future(self.elector.hold())
        return noted

    async def _hold(self) -> None:
        running = [each for each in (self._holding, self._watching) if each is not None]
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            if not each.cancelled():
                each.result()
        raise LeadershipLost(f"lease {self.elector.terms.name} was given up: the main loop stands still")

    async def _release(self) -> bool:
        await self._stop(self._holding)
        return await self.elector.release()

    async def _end(self, client: ApiClient) -> None:
        await self._stop(self._holding)
        await self._stop(self._watching)
        await client.close()

    async def _stop(self, task: "asyncio.Future[Any] | None") -> None:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self) -> None:
        """Looks every second whether the main loop shows life, from when we lead to the end."""
        stillness, still = StallDetector(self._activity, self._clock.now()), 0.0
        while still <= self._patience:
            await self._sleep(HEARTBEAT_SECONDS)
            still = stillness.seconds_stalled(self._clock.now())
        await self._give_up(still)

    async def _give_up(self, still: float) -> None:
        """The last thing that the process does: the main thread cannot be interrupted, so nothing is left to tidy up.
        If the log cannot be written (the main thread may stand still because its pipe is full, and hold the log's lock)
        the process ends all the same."""
        guard = threading.Timer(self._grace, self._exit, (1,))
        guard.daemon = True
        guard.start()
        (job, where), released = self._busy_with(), False
        try:
            released = await self._release()
        finally:
            seconds = round(still, 1)
            log.error("Main loop stands still; ending", job=job, seconds=seconds, released=released, where=where)
            for handler in logging.getLogger().handlers:
                handler.flush()
            self._exit(1)
            guard.cancel()

    def _busy_with(self) -> tuple[str, str]:
        """The job under way, "" if there is none, and where in the code the main thread is, the innermost first."""
        deciding = self._activity.deciding
        frame, found = sys._current_frames().get(self._main), list[str]()
        while frame is not None and len(found) < MAX_FRAMES:
            code = frame.f_code
            found.append(f"{os.path.basename(code.co_filename)}:{frame.f_lineno} {code.co_name}")
            frame = frame.f_back
        return "" if deciding is None else deciding[0], " < ".join(found)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
