"""How forecasts of starts came out, and by how much the next ranges are stretched for that.

    a job that waits ── the times that were drawn for it, when it was first asked for
                     └─ its start ─▶ by how many times it waited longer than each of these times

Drawn are the times that one start of ten, every second one, and nine of ten should be before. If fewer or more of the
last starts were, the next ones are stretched to where the last starts of these parts were (conformal prediction). Jobs
that still wait count with the time that has passed, once it is longer than what was drawn.

Until there are enough starts, `PRIOR` of them are assumed. Ranges err less on some clusters than on others, so what is
assumed is wide, and is outweighed by as many starts.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_OPEN: Final = 256  # jobs that wait; more are not noted
LAST: Final = 100  # starts
PRIOR: Final = 20
PARTS: Final = (0.1, 0.5, 0.9)  # of all starts, that should be before each of the three times
USUAL: Final = (0.9, 1.0, 1.3)  # how many times each is stretched without any start, fitted on two traces
SPREAD: Final = 2.0  # the assumed starts are up to e^2 times shorter or longer
LEAST: Final = 60.0  # seconds: shorter times err by what a binding takes


class Forecast(NamedTuple):
    """When a job was asked for, and the seconds until the three times that were drawn."""

    asked: float
    seconds: tuple[float, float, float]


class Stretch(NamedTuple):
    """By how many times the seconds until the three times of a range are stretched, and on how many starts of jobs
    that is based."""

    times: tuple[float, float, float] = USUAL
    starts: int = 0

    def apply(self, drawn: Sequence[float], now: float) -> tuple[float, float, float]:
        """Returns the three times, in order."""
        early, likely, late = sorted(now + by * (time - now) for by, time in zip(self.times, drawn, strict=True))
        return early, likely, late


class StartOutcomes:
    """The last forecasts and starts of one scheduler, in memory."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Forecast] = OrderedDict()
        self._last: deque[tuple[float, float, float]] = deque(maxlen=LAST)

    @property
    def jobs(self) -> Sequence[str]:
        """The jobs whose start is not known yet."""
        return tuple(self._open)

    def expect(self, job: str, drawn: Sequence[float], now: float) -> None:
        """Notes what was drawn for a job when it was first asked for."""
        if job in self._open or len(self._open) >= MAX_OPEN or not max(drawn) < math.inf:
            return
        early, likely, late = (max(time - now, LEAST) for time in drawn)
        self._open[job] = Forecast(now, (early, likely, late))

    def started(self, job: str, at: float) -> None:
        """Notes the start of a job."""
        known = self._open.pop(job, None)
        if known is not None:
            self._last.append(_ratios(known, at))

    def forget(self, job: str) -> None:
        """Forgets a job that is gone."""
        self._open.pop(job, None)

    def stretch(self, now: float) -> Stretch:
        """Returns how ranges are stretched."""
        waiting = [_ratios(each, now) for each in self._open.values()]
        found = [
            _quantile([each[i] for each in self._last] + [each[i] for each in waiting if each[i] > 1.0], part, USUAL[i])
            for i, part in enumerate(PARTS)
        ]
        return Stretch((found[0], found[1], found[2]), len(self._last))


def _ratios(known: Forecast, at: float) -> tuple[float, float, float]:
    waited = max(at - known.asked, 1.0)
    early, likely, late = (waited / seconds for seconds in known.seconds)
    return early, likely, late


def _quantile(ratios: list[float], part: float, usual: float) -> float:
    """Returns the number that `part` of the next ratios are expected to stay below, by these and the assumed ones."""
    if not ratios:
        return usual
    middle = _place(part, PRIOR)
    assumed = [usual * math.exp(2 * SPREAD * (i - middle) / PRIOR) for i in range(PRIOR)]
    ordered = sorted(ratios + assumed)
    return ordered[_place(part, len(ordered))]


def _place(part: float, count: int) -> int:
    """Returns the place among `count` ordered ratios: of the parts below and above the middle outwards, since the next
    start is one more."""
    place = part * (count + 1)
    return (math.floor(place) if part < PARTS[1] else math.ceil(place)) - 1
