"""How long to wait after a failure: twice as long each time, up to a limit, and never all at the same moment."""

import random


class Backoff:
    """Between half and the whole of `least`, twice that, and so on up to `most` seconds. The generator is handed in."""

    def __init__(self, rng: random.Random, least: float, most: float) -> None:
        self._rng = rng
        self._least = least
        self._most = most
        self.failures = 0

    def next(self) -> float:
        """One more failure: the seconds to wait."""
        wait = min(self._least * 2.0 ** min(self.failures, 60), self._most)
        self.failures += 1
        return self.spread(wait)

    def spread(self, seconds: float) -> float:
        """About so long: somewhere between half and the whole."""
        return seconds * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It went well."""
        self.failures = 0
