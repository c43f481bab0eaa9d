"""Leader election in its own thread, so that a slow decision does not cost the lease (ADR 10).

The lease is acquired, renewed and released in this thread, by an event loop and an API client that nothing else uses.
So a main loop that is busy for seconds keeps its lease. When the main loop has shown no heartbeat for half a minute,
the thread ends this process. It releases the lease first, so that another process can begin at once.

The two threads share two things:

- `Candidate.renewed_at`: the lease thread writes it, `may_write` in the main loop reads it.
- `LoopActivity` and its slow jobs: the main loop writes them, the lease thread reads them.

Each is one reference that is replaced as a whole. All else crosses over as a coroutine handed from loop to loop.
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

STOP_SECONDS: Final = 10.0  # seconds to release the lease and write the last log line, then the process ends anyway
MAX_FRAMES: Final = 4  # frames of the main thread in the last log line

T = TypeVar("T")
log = logs.get("lease")


class LeaderElectionThread:
    """The lease thread, as seen from the main loop. `elector` and its API client are used only in the thread, except
    for the methods of `LeaderElector` that are for any thread.

        acquire ──▶ hold ──▶ release ──▶ close
                     │ no heartbeat of the main loop
                     └──▶ lease released, one log line, `exit(1)`
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
        # All writes of a stalled loop have to be over before another process may lead.
        self._patience = max(MAX_STALL_SECONDS, elector.terms.write_timeout + 5.0)
        self._main = threading.get_ident()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._holding: asyncio.Future[Any] | None = None
        self._watching: asyncio.Future[Any] | None = None

    # --- called in the main loop ----------------------------------------------------------------------------------

    async def acquire(self) -> str:
        """Returns the annotation about slow jobs as soon as this process leads. From then on the lease is renewed."""
        return await self._run_in_thread(self._acquire())

    async def hold(self) -> NoReturn:
        """Waits until the lease could not be renewed for too long, then raises LeadershipLost. Called after
        `acquire`."""
        await self._run_in_thread(self._hold())
        raise LeadershipLost("the lease is no longer renewed")

    async def release(self) -> bool:
        """Ends `hold` and releases the lease. Call it when the last write has ended. Returns whether it succeeded."""
        return await self._run_in_thread(self._release())

    async def close(self, client: ApiClient) -> None:
        """Closes the API client of the election and ends the thread, if it was started."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            await client.close()
            return
        await self._run_in_thread(self._end(client))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(self._grace)
        self._loop = self._thread = None

    async def _run_in_thread(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the lease thread, and starts the thread on first use. Cancelling the caller cancels the
        coroutine."""
        if self._loop is None:
            # The standard event loop: one call in two seconds needs no uvloop, and exec plugins may start programs.
            self._loop = loop = asyncio.SelectorEventLoop()
            self._thread = threading.Thread(target=_run, args=(loop,), name="lease", daemon=True)
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    # --- run in the thread ----------------------------------------------------------------------------------------

    async def _acquire(self) -> str:
        await self.elector.acquire()
        annotation = self.elector.slow_jobs
        self._watching = asyncio.ensure_future(self._watch())
        # At once: the main loop may call `hold` much later.
        self._holding = asyncio.ensure_future(self.elector.hold())
        return annotation

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
        """Checks the heartbeat of the main loop every second, from the acquisition of the lease to the end."""
        detector, stalled = StallDetector(self._activity, self._clock.now()), 0.0
        while stalled <= self._patience:
            await self._sleep(HEARTBEAT_SECONDS)
            stalled = detector.seconds_stalled(self._clock.now())
        await self._give_up(stalled)

    async def _give_up(self, stalled: float) -> None:
        """Releases the lease, logs where the main loop is stuck and ends the process. The main thread cannot be
        interrupted, so there is no cleanup. A timer ends the process if the log line cannot be written: the main thread
        may be stuck on a full pipe and hold the lock of the log."""
        guard = threading.Timer(self._grace, self._exit, (1,))
        guard.daemon = True
        guard.start()
        (job, where), released = self._busy_with(), False
        try:
            released = await self._release()
        finally:
            seconds = round(stalled, 1)
            log.error("Main loop stands still; ending", job=job, seconds=seconds, released=released, where=where)
            for handler in logging.getLogger().handlers:
                handler.flush()
            self._exit(1)
            guard.cancel()

    def _busy_with(self) -> tuple[str, str]:
        """Returns the key of the job being decided, "" for none, and the innermost frames of the main thread."""
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
