"""`Backoff`: seconds to wait after a failure. They double each time up to a limit, with jitter."""

import random


class Backoff:
    """Waits of between half and all of `least` seconds, twice that, and so on up to `most`."""

    def __init__(self, rng: random.Random, least: float, most: float) -> None:
        self._rng = rng
        self._least = least
        self._most = most
        self.failures = 0

    def next(self) -> float:
        """Counts one more failure and returns the seconds to wait."""
        wait = min(self._least * 2.0 ** min(self.failures, 60), self._most)
        self.failures += 1
        return self.spread(wait)

    def spread(self, seconds: float) -> float:
        """Returns a random time between half and all of `seconds`."""
        return seconds * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Forgets all failures."""
        self.failures = 0
