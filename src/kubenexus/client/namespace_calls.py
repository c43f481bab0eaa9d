"""The state of a `FairQueue`: the calls of each namespace with its speed, and the groups of namespaces of one speed.

`NamespaceCalls` judges a namespace by how its calls are answered; `FairQueue` records the answers. The table of speeds,
and when a namespace changes from one to another, are in `client.fair_queue`.
"""

import asyncio
import enum
import heapq
from collections import OrderedDict
from collections.abc import Hashable
from random import Random
from typing import Final, Generic, TypeVar

T = TypeVar("T")

FIRST_CALLS: Final = 4  # calls of a namespace in flight after the first was answered
SLOW_SECONDS: Final = 60.0  # seconds after its last late call for which a namespace stays slow without answers in time
SLOW_AVERAGE: Final = 0.05  # seconds that the calls of a quick namespace may take on average
HELD_AVERAGE: Final = 0.25  # seconds on average from which on a namespace waits for its webhooks, not for the server
FAILING_CALLS: Final = (
    16  # failures less successes that make a namespace fail; a failure counts twice, for it costs more
)
_AVERAGED: Final = 16  # calls, about
_WORDS: Final = 300  # characters of an error that are kept
TURNS: Final = 64  # entries in the heap of a group that are not worth a clean-up
LARGE: Final = 1024  # waiting calls of a namespace that take others with them: see `SpeedGroup`
_LOOKED_AT: Final = 64  # entries among which `pop` looks for a large namespace: 4 us


class Speed(enum.Enum):
    """How the calls of a namespace are answered: see the table in `client.fair_queue`. The value is the weight of
    the group."""

    QUICK = 4.0
    UNKNOWN = 2.0
    SLOW = 2.5
    STUCK = 1.0

    __hash__ = object.__hash__


class NamespaceCalls(Generic[T]):
    """The calls of one namespace.

    `doubt`: how many answers in time the namespace needs until it is no longer slow. `average`: seconds that its calls
    take, as a moving average. `window`: how many may be in flight. `why`: the last failure. `tag`: the virtual time at
    which its next call may begin. `turn`: the number of its entry in the heap of its group, 0 if there is none.
    `group`: the group that counts it. `held`: whether `FairQueue.held` counts its calls that wait."""

    __slots__ = (
        "answered",
        "average",
        "doubt",
        "failing",
        "failures",
        "flights",
        "group",
        "held",
        "late",
        "namespace",
        "resting",
        "slow",
        "slow_until",
        "stalled_since",
        "tag",
        "turn",
        "waiting",
        "why",
        "window",
    )

    def __init__(self, namespace: str, group: "SpeedGroup[T]", window: int, average: float | None) -> None:
        self.namespace, self.group = namespace, group
        self.waiting: OrderedDict[Hashable, T] = OrderedDict()  # a dict would be slow: the first is taken repeatedly
        self.resting: dict[Hashable, tuple[asyncio.TimerHandle, T]] = {}
        self.flights = self.late = self.doubt = self.failures = self.turn = 0
        self.failing = self.slow = self.held = False
        self.why, self.window = "", window
        self.slow_until = self.tag = 0.0
        self.answered, self.average = average is not None, average or 0.0
        self.stalled_since: float | None = None

    def __len__(self) -> int:
        return len(self.waiting) + len(self.resting)

    @property
    def active(self) -> bool:
        """Whether any of its calls is in flight or waits."""
        return self.flights > 0 or len(self.waiting) > 0

    @property
    def stuck(self) -> bool:
        """Whether its calls fail, or a call was not answered in time and too few were since."""
        return self.failing or self.late > 0 or self.doubt > 0

    @property
    def speed(self) -> Speed:
        if self.slow:
            return Speed.STUCK if self.stuck else Speed.SLOW
        return Speed.QUICK if self.answered else Speed.UNKNOWN

    def record_answer(self, seconds: float | None, now: float, first: int, limit: int) -> None:
        """Records that a call was answered in time. `seconds`: how long the server took, None if that is not known.
        `first`: the window after the first answer; `limit`: the largest."""
        if not self.answered:
            self.answered, self.window = True, max(self.window, first)
        elif self.window < limit:
            self.window += 1
        if self.doubt:
            self.doubt -= 1
        if seconds is not None:
            self.average += (max(seconds, 0.0) - self.average) / _AVERAGED
        if self.average > SLOW_AVERAGE:
            self.slow, self.slow_until = True, now + SLOW_SECONDS
        elif self.slow:
            self.slow = self.stuck

    def record_late(self, now: float, doubt: int, limit: int) -> None:
        """Records that a call in flight was not answered in time. `doubt`: how many answers in time are needed then."""
        self.late += 1
        self.doubt = max(self.doubt, doubt)
        self.window = limit  # from now on its share is the bound
        self.slow, self.slow_until = True, now + SLOW_SECONDS

    def record_late_end(self, now: float) -> None:
        """Records that a call that was late has ended."""
        self.late -= 1
        self.slow_until = now + SLOW_SECONDS

    def record_failure(self, why: str, now: float) -> None:
        self.failures, self.why = min(self.failures + 2, FAILING_CALLS), why[:_WORDS] or "without a reason"
        self.failing = self.failing or self.failures == FAILING_CALLS
        self.slow = self.slow or self.failing
        self.slow_until = now + SLOW_SECONDS

    def record_success(self) -> None:
        """Records that a call did what it was sent for. Called while there are failures."""
        self.failures = self.failures // 2 if self.failing else self.failures - 1
        self.failing = self.failing and self.failures > 0

    def forgive(self, window: int) -> None:
        """Forgets failures and late calls. A slow namespace begins as UNKNOWN again, with this window; a quick one
        stays QUICK, since its few failures say nothing about its webhooks."""
        if self.slow:
            self.average, self.doubt, self.answered, self.window = 0.0, 0, not self.namespace, window
        self.slow = self.failing = False
        self.failures = 0


Turn = tuple[float, int, NamespaceCalls[T]]


class SpeedGroup(Generic[T]):
    """All namespaces of one speed. `limit`: how many of their calls may be in flight. `active`: how many of them have
    calls in flight or waiting. `virtual`: the virtual time, in slot-seconds. `turns`: a heap of tag, turn and
    namespace, at most one valid entry of each namespace; entries with another turn than the namespace's are of no
    effect. `rng`: chooses the next entry at random.

    Of a group with `rng` every second entry is that of a namespace with `LARGE` calls waiting, if there is one. With
    65,536 binds of namespaces that were never answered no job is decided (`bind.backlog`). A single namespace may have
    nearly all of them, and among thousands of others it would be tried after ten seconds."""

    __slots__ = (
        "_looked_at",
        "_took_large",
        "active",
        "flights",
        "limit",
        "rng",
        "speed",
        "turns",
        "virtual",
        "waiting",
        "weight",
    )

    def __init__(self, speed: Speed, limit: int) -> None:
        self.speed, self.weight, self.limit, self.virtual = speed, speed.value, limit, 0.0
        self.active = self.flights = self.waiting = 0
        self.turns: list[Turn[T]] = []
        self.rng: Random | None = None
        self._looked_at, self._took_large = 0, False

    def count(self, calls: NamespaceCalls[T], sign: int) -> None:
        """Counts a namespace that joins the group (1) or leaves it (-1)."""
        self.active += sign * calls.active
        self.flights += sign * calls.flights
        self.waiting += sign * len(calls.waiting)

    def push(self, entry: "Turn[T]") -> None:
        """Adds a turn."""
        if len(self.turns) > 2 * self.active + TURNS:  # namespaces that go to and fro leave entries behind
            valid = [each for each in self.turns if each[2].turn == each[1]]
            self.turns = [each for each in valid if each[2].waiting]
            for each in valid:
                each[2].turn = each[1] if each[2].waiting else 0
            heapq.heapify(self.turns)
        if self.rng is None:
            heapq.heappush(self.turns, entry)
        else:
            self.turns.append(entry)

    def pop(self) -> "Turn[T] | None":
        """Removes and returns the next entry, valid or not; None if there is none."""
        if not self.turns:
            return None
        if self.rng is None:
            return heapq.heappop(self.turns)
        at = self._large()
        self._took_large = at is not None
        if at is None:
            at = self.rng.randrange(len(self.turns))
        self.turns[at], self.turns[-1] = self.turns[-1], self.turns[at]
        return self.turns.pop()

    def _large(self) -> int | None:
        """Returns where the entry of a large namespace is. Looks at the next few entries, and at the ones behind them
        in the next call. Returns None after a call that found one, so that others have their turn."""
        if self.waiting < LARGE or self._took_large:
            return None
        if self._looked_at >= len(self.turns):
            self._looked_at = 0
        begin, self._looked_at = self._looked_at, self._looked_at + _LOOKED_AT
        for at, (_, _, calls) in enumerate(self.turns[begin : self._looked_at], begin):
            if len(calls.waiting) >= LARGE:
                return at
        return None
