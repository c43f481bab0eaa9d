"""`WatchBackoff`: how long a reflector waits after a failure, and what ends the wait early."""

import asyncio
import math
import random

from kubenexus.base.clock import Clock, Sleep
from kubenexus.client.backoff import Backoff
from kubenexus.client.calls import ApiError
from kubenexus.client.watch_protocols import WatchTiming


class WatchBackoff:
    """The failures in a row of one reflector. Its methods return seconds; `pause` waits that long."""

    def __init__(self, rng: random.Random, timing: WatchTiming, clock: Clock, sleep: Sleep) -> None:
        self._timing, self._clock, self._sleep = timing, clock, sleep
        self._backoff = Backoff(rng, timing.backoff, timing.longest_backoff)
        self._forbidden_backoff = Backoff(rng, timing.backoff, timing.longest_backoff)
        self._forbidden_since: float | None = None  # None: the last answer was not a 403
        self._expired_before = False  # since the last reset
        self._interrupted = asyncio.Event()
        self._may_retry = False  # a pause is under way that may end when the server answers other reflectors
        self._retried_at = -math.inf

    @property
    def failures(self) -> int:
        """How many calls failed in a row."""
        return self._backoff.failures

    def failed(self) -> float:
        return self._backoff.next()

    def forbidden(self, *, was_listed: bool) -> float:
        """After a 403. A kube-apiserver that starts answers 403 to service accounts until it has read the RBAC rules,
        for about a second. So a kind that was listed before is tried again soon, with a backoff of its own: an outage
        has raised the other one to ten seconds."""
        now = self._clock.now()
        if self._forbidden_since is None:
            self._forbidden_since = now
            self._forbidden_backoff.reset()
        if was_listed and now - self._forbidden_since < self._timing.forbidden_doubted:
            return self._forbidden_backoff.next()
        return self._backoff.spread(self._timing.forbidden)

    def expired(self) -> float:
        """After a version that is too old or too new for the server. Normal once, after an outage too: the watch cache
        of a server that starts is empty. In a row it is a failure like any other."""
        first, self._expired_before = not self._expired_before, True
        wait = self._backoff.next()
        return 0.0 if first else wait

    def not_served(self) -> float:
        return self._backoff.spread(self._timing.absent)

    def not_forbidden(self) -> None:
        """Ends a series of 403: the last call ended otherwise."""
        self._forbidden_since = None

    def reset(self) -> None:
        """Ends the count of failures, since the watch works."""
        self._backoff.reset()
        self._expired_before = False
        self._forbidden_since = None

    async def pause(self, seconds: float, *, may_retry: bool) -> None:
        """Waits, but no longer once `interrupt` is called. `may_retry`: nor once the server answers other reflectors
        (`retry`)."""
        self._interrupted.clear()
        self._may_retry = may_retry
        tasks = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._interrupted.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._may_retry = False
            for task in tasks:
                task.cancel()

    def interrupt(self) -> None:
        """Ends a pause."""
        self._interrupted.set()

    def retry(self) -> None:
        """Ends a pause that may end when the server answers other reflectors. Not twice within seconds: a server that
        answers now and then must not get calls without pause from all reflectors in turn."""
        now = self._clock.now()
        if self._may_retry and now - self._retried_at >= self._timing.retried:
            self._retried_at = now
            self._interrupted.set()


def may_retry(error: ApiError) -> bool:
    """Whether the call may succeed as soon as the server answers other reflectors. A server that starts answers 5xx,
    and 401 or 403 until it has read the RBAC rules."""
    return error.code in (401, 403) or (error.code >= 500 and not error.retry_after)
