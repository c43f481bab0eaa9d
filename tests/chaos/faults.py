"""What the proxy may do to a request or a watch, and the seeded plan that says to which.

A fault is drawn from the seed, the sort of request and its number among its sort: the third bind of seed 17 meets the
same fault in each replay, whatever was sent meanwhile.
"""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Final, NamedTuple

REQUEST_FAULTS: Final = {
    "delay": "passed on late; who asked may have given up by then",
    "drop": "hung up on, nothing was passed on",
    "deaf": "passed on, and hung up on before the answer",
    "cut": "passed on, and half of the answer comes back",
    "429": "refused: too many requests, come again in a second",
    "500": "refused: internal error",
    "500-done": "passed on and done, but answered with 500, as when the store is slow",
    "409": "refused: conflict",
    "410": "refused: gone",
    "401": "refused: unauthorized",
}
WATCH_FAULTS: Final = {
    "watch-cut": "ends in the middle of a line",
    "watch-freeze": "stays open and says nothing for a while, then all at once",
    "watch-gone": "an ERROR event with code 410",
    "watch-replay": "old events once more, up to the present",
    "watch-slow": "every event comes late",
    "watch-410": "refused at its beginning: gone",
    "watch-500": "refused at its beginning: internal error",
    "watch-401": "refused at its beginning: unauthorized",
}
FAULTS: Final = {**REQUEST_FAULTS, **WATCH_FAULTS}

# Less than the time in which a write has to end (lease minus renew deadline): later than that is no delay, but a
# machine that lies about time, and no scheduler with a lease can live with it.
LONGEST_DELAY: Final = 1.5
Rates = Mapping[str, Mapping[str, float]]


class Fault(NamedTuple):
    """`seconds` for delay, freeze and slow; `after` so many lines of a watch; `lines` to replay, or to slow down."""

    kind: str
    seconds: float = 0.0
    after: int = 0
    lines: int = 0


class Plan:
    """`rates`: by the sort of request, the probability of each fault. What is not named is left alone.

    A fault of a watch strikes after some lines; if the watch ends before, it never does.
    """

    def __init__(self, seed: int, rates: Rates) -> None:
        self._seed, self._rates = seed, rates
        self._numbers: Counter[str] = Counter()

    def next(self, sort: str) -> Fault | None:
        """For the next request of this sort."""
        self._numbers[sort] += 1
        rng = Random(f"{self._seed}/{sort}/{self._numbers[sort]}")
        chance = rng.random()
        for kind, rate in self._rates.get(sort, {}).items():
            chance -= rate
            if chance < 0:
                return _drawn(kind, rng)
        return None


def _drawn(kind: str, rng: Random) -> Fault:
    if kind == "watch-freeze":
        return Fault(kind, rng.uniform(0.5, 4.0), after=rng.randrange(1, 15))
    if kind == "watch-slow":
        return Fault(kind, rng.uniform(0.01, 0.1), after=1, lines=rng.randrange(5, 30))
    return Fault(kind, rng.uniform(0.05, LONGEST_DELAY), after=rng.randrange(1, 15), lines=rng.randrange(1, 20))
