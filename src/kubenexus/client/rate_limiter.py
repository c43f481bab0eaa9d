"""`RateLimiter`: a token bucket for calls to the API server.

The API server protects itself (priority and fairness, 429). This is a limit on the client's side, so that a bug here
cannot flood the server. Tokens are reserved in the order of calls, so no call overtakes another.
"""

import asyncio

from kubenexus.base.clock import Clock, Sleep

# A scheduler binds in bursts, as fast as pods come; each bind is one small call.
QPS = 1000.0
BURST = 2000


class RateLimiter:
    """`qps` calls a second on average, `burst` at once; `qps` below zero: no limit. Every call takes a token."""

    def __init__(
        self,
        clock: Clock,
        *,
        qps: float = QPS,
        burst: int = BURST,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._qps = qps
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)  # below zero: reserved by calls that wait
        self._filled = clock.now()

    @property
    def delay(self) -> float:
        """Seconds that a call waits for its token from now."""
        if self._qps <= 0 or self._tokens >= 1.0:
            return 0.0
        self._fill()
        return max(0.0, (1.0 - self._tokens) / self._qps)

    def try_acquire(self) -> bool:
        """Takes a token, if there is one without waiting. Returns whether it did."""
        if self._qps < 0:
            return True
        self._fill()
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    async def acquire(self, within: float) -> bool:
        """Waits for a token, in the order of calls. Returns False at once, without a token, if the wait would be longer
        than `within` seconds.

        A call that is cancelled while it waits takes no token.
        """
        if self.try_acquire():
            return True
        wait = (1.0 - self._tokens) / self._qps if self._qps else within + 1.0
        if wait > within:
            return False
        self._tokens -= 1.0
        try:
            await self._sleep(wait)
        except BaseException:
            self._tokens += 1.0
            raise
        return True

    def _fill(self) -> None:
        now = self._clock.now()
        if now > self._filled:
            self._tokens = min(self._tokens + (now - self._filled) * self._qps, float(self._burst))
            self._filled = now
