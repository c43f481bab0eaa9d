"""What waits to be sent, in one line for each namespace. Namespaces take turns, and each line is first in, first out.

    put ─▶ waiting ─▶ in flight ─▶ done
              ▲           │ rest
              └─ resting ◀┘

At most `limit` calls are in flight, of one namespace or of many. A call that is not answered within a second makes its
namespace slow: an admission webhook may hold it, and one tenant's webhook is no reason for another's pod to wait. All
slow namespaces together hold at most `slow` slots, each an equal part of them, so that the other slots stay free for
namespaces that are answered. Calls that were sent before that was known and exceed this part no longer count; those in
flight never exceed twice the limit.

A namespace begins with `FIRST_CALLS` calls in flight and may have one more for each that is answered in time: a webhook
that hangs holds a few slots until that is known, and one that answers has them all after four rounds. Calls that
concern no namespace pass no webhook of a tenant's; they have all slots from the beginning.

A namespace whose calls take a quarter of a second on average is slow, too: 64 slots that are held for so long carry a
quarter of what the server can do. These share three eighths of the slots, apart from those that may never be answered.
One of which many calls fail (`failed`, `passed`) has one slot, whatever its share is: a webhook that answers at once
with an error makes four binds and four looks of each pod.

A namespace stops being slow when all its calls are answered, as many as `limit` in a row were answered in time, its
average is short again and it has no failures left; or when a minute has passed without any of that.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import chain
from typing import Final, Generic, TypeVar

T = TypeVar("T")

LATE_SECONDS: Final = 1.0  # seconds without an answer that make a namespace slow; binds are answered within 0.1 s
SLOW_SECONDS: Final = 60.0  # seconds after its last late call for which a namespace stays slow without answers in time
STALLED_SECONDS: Final = 30.0  # seconds without a call of a namespace going through, before that is reported
FIRST_CALLS: Final = 4  # calls of a namespace in flight before the first was answered
SLOW_AVERAGE: Final = 0.25  # seconds that the calls of a namespace may take on average
FAILING_CALLS: Final = (
    16  # failures less successes that make a namespace fail; a failure counts twice, for it costs more
)
_AVERAGED: Final = 16  # calls, about
_WORDS: Final = 300  # characters of an error that are kept
_EARLY: Final = 1e-3  # seconds by which a timer may run before its time
_PAUSED: Final = 0.2  # seconds by which the timer is late when the loop itself stood still, so that answers lie unread
_UNREAD: Final = 0.25  # seconds that these answers have then


class CallInFlight(Generic[T]):
    """A call that was begun. `late` once it has not been answered in time."""

    __slots__ = ("due", "item", "key", "late", "namespace")

    def __init__(self, namespace: str, key: Hashable, item: T, due: float) -> None:
        self.namespace, self.key, self.item, self.due, self.late = namespace, key, item, due, False


class _NamespaceCalls(Generic[T]):
    """One namespace. `doubt`: how many answers in time it takes until it is not slow any more. `pace`: seconds that its
    calls take, as a moving average. `window`: how many may be in flight. `why`: what the last failure was."""

    __slots__ = (
        "doubt",
        "failing",
        "failures",
        "flights",
        "late",
        "pace",
        "resting",
        "slow_until",
        "stands_since",
        "waiting",
        "why",
        "window",
    )

    def __init__(self, window: int) -> None:
        self.waiting: OrderedDict[Hashable, T] = OrderedDict()  # of thousands, the first is taken again and again
        self.resting: dict[Hashable, tuple[asyncio.TimerHandle, T]] = {}
        self.flights = self.late = self.doubt = self.failures = 0
        self.failing, self.why, self.window = False, "", window
        self.slow_until = self.pace = 0.0
        self.stands_since: float | None = None

    def __len__(self) -> int:
        return len(self.waiting) + len(self.resting)

    @property
    def stuck(self) -> bool:
        """Whether its calls fail, or one was not answered in time and too few were since."""
        return self.failing or self.late > 0 or self.doubt > 0


class FairQueue(Generic[T]):
    """`first`: how many calls of a namespace may be in flight before one was answered. `delay`: seconds for which a
    call that begins now is held back on our side, by the client's rate limit; they do not count as waiting for an
    answer. `changed` is called when `next` may have something. `stalled` hears of each namespace of which nothing has
    gone through for `STALLED_SECONDS` seconds, again and again, with how much of it waits."""

    def __init__(
        self,
        limit: int,
        *,
        slow: int = 0,
        first: int = FIRST_CALLS,
        delay: Callable[[], float] = lambda: 0.0,
        changed: Callable[[], None] = lambda: None,
        stalled: Callable[[str, int], None] = lambda namespace, count: None,
    ) -> None:
        self._limit, self._slow_limit, self._first = limit, slow or max(1, limit // 2), min(first, limit)
        self._delay, self._stalled = delay, stalled
        self.changed = changed
        self._lines: dict[str, _NamespaceCalls[T]] = {}
        self._turns: dict[
            str, _NamespaceCalls[T]
        ] = {}  # those with calls that may be sent, in the order of their turns
        self._slow: dict[str, _NamespaceCalls[T]] = {}
        self._calls: set[CallInFlight[T]] = set()
        self._count = 0  # waiting or resting
        self._late = 0
        self._timer: asyncio.TimerHandle | None = None
        self._excused = False

    def __len__(self) -> int:
        """How much waits or rests."""
        return self._count

    @property
    def in_flight(self) -> int:
        return len(self._calls)

    @property
    def waiting(self) -> bool:
        """Whether anything waits, now or once something was answered."""
        return any(calls.waiting for calls in self._lines.values())

    @property
    def late(self) -> int:
        """Calls in flight that were not answered in time."""
        return self._late

    @property
    def held(self) -> int:
        """How much waits because its namespace is slow."""
        return sum(len(calls.waiting) for calls in self._slow.values())

    def share(self, namespace: str) -> int:
        """How many slots a slow namespace may hold: an equal part of those for its sort, one if its calls fail."""
        calls = self._slow.get(namespace)
        return self._slow_limit if calls is None else self._share(calls, self._pool(stuck=calls.stuck))

    def _share(self, calls: _NamespaceCalls[T], pool: list[_NamespaceCalls[T]]) -> int:
        if calls.failing:
            return 1
        others = len(pool) - (calls in pool)
        return max(1, self._pool_limit(stuck=calls.stuck) // (others + 1))

    def _pool(self, *, stuck: bool) -> list[_NamespaceCalls[T]]:
        """The slow namespaces of one sort that have calls: those that may never be answered, or the others."""
        return [calls for calls in self._slow.values() if calls.stuck is stuck and (calls.flights or calls.waiting)]

    def _pool_limit(self, *, stuck: bool) -> int:
        return self._slow_limit if stuck else max(1, self._slow_limit * 3 // 4)

    def slow(self, namespace: str) -> bool:
        return namespace in self._slow

    def stuck(self, namespace: str) -> bool:
        """Whether its calls fail, or some were lately not answered in time: it may take long until one goes through."""
        calls = self._slow.get(namespace)
        return calls is not None and calls.stuck

    def waits(self, namespace: str) -> int:
        """How many of its calls wait for a slot."""
        calls = self._lines.get(namespace)
        return 0 if calls is None else len(calls.waiting)

    @property
    def stuck_namespaces(self) -> list[str]:
        return [namespace for namespace, calls in self._slow.items() if calls.stuck]

    def failing(self, namespace: str) -> str:
        """What the last failure was of a namespace of which many calls fail; "" for all others."""
        calls = self._slow.get(namespace)
        return calls.why if calls is not None and calls.failing else ""

    # --- in and out -----------------------------------------------------------------------------------------------

    def put(self, namespace: str, key: Hashable, item: T) -> None:
        """At the end of its namespace's line; what waits there under the same key is replaced and keeps its place."""
        calls = self._line(namespace)
        rested = calls.resting.pop(key, None)
        if rested is not None:
            rested[0].cancel()
            self._count -= 1
        if key not in calls.waiting:
            self._count += 1
        calls.waiting[key] = item
        self._line_up(namespace, calls)
        self.changed()

    def remove(self, namespace: str, key: Hashable) -> T | None:
        """What waited or rested under this key, if anything did."""
        calls = self._lines.get(namespace)
        if calls is None:
            return None
        rested = calls.resting.pop(key, None)
        if rested is not None:
            rested[0].cancel()
        found = rested[1] if rested is not None else calls.waiting.pop(key, None)
        if found is not None:
            self._count -= 1
            self._tidy(namespace, calls)
        return found

    def drop(self) -> T | None:
        """The oldest of the namespace that has the most."""
        namespace = max(self._lines, key=lambda each: len(self._lines[each]), default="")
        calls = self._lines.get(namespace)
        key = None if calls is None else next(chain(calls.waiting, calls.resting), None)
        return None if key is None else self.remove(namespace, key)

    def put_first(self) -> None:
        """What rests stands in line again."""
        for namespace, calls in list(self._lines.items()):
            for key, (_, item) in list(calls.resting.items()):
                self.put(namespace, key, item)

    # --- calls ----------------------------------------------------------------------------------------------------

    def next(self) -> CallInFlight[T] | None:
        """The next that may be sent now, if any; from then on it is in flight."""
        counted = len(self._calls) - max(0, self._late - self._slow_limit)
        if counted >= self._limit or len(self._calls) >= 2 * self._limit:
            return None
        namespace = self._whose_turn()
        if namespace is None:
            return None
        calls = self._turns.pop(namespace)
        key, item = calls.waiting.popitem(last=False)
        self._count -= 1
        loop = asyncio.get_running_loop()
        call = CallInFlight(namespace, key, item, loop.time() + LATE_SECONDS + self._delay())
        calls.flights += 1
        self._calls.add(call)
        self._line_up(namespace, calls)
        if self._timer is None:
            self._timer = loop.call_at(call.due, self._look)
        return call

    def done(self, call: CallInFlight[T], *, through: bool = True, sent: bool = True) -> None:
        """The call has ended. `through`: it needs not be sent again. `sent`: its end says something about answers."""
        self._ended(call, through=through, sent=sent)
        self._tidy(call.namespace, self._lines[call.namespace])
        self.changed()

    def postpone(self, call: CallInFlight[T], seconds: float) -> None:
        """It has ended and has to be sent again, but not before so many seconds: others are served meanwhile."""
        calls, loop = self._lines[call.namespace], asyncio.get_running_loop()
        timer = loop.call_later(seconds, self.put, call.namespace, call.key, call.item)
        calls.resting[call.key] = timer, call.item
        self._count += 1
        self.done(call, through=False)

    def failed(self, namespace: str, why: str) -> None:
        """A call of this namespace was answered with an error, or came to nothing."""
        calls, loop = self._line(namespace), asyncio.get_running_loop()
        calls.failures, calls.why = min(calls.failures + 2, FAILING_CALLS), why[:_WORDS] or "without a reason"
        calls.failing = calls.failing or calls.failures == FAILING_CALLS
        calls.slow_until = loop.time() + SLOW_SECONDS
        if self._timer is None:
            self._timer = loop.call_later(LATE_SECONDS, self._look)
        if calls.failing:
            self._slow[namespace] = calls
            self.changed()

    def passed(self, namespace: str) -> None:
        """A call of this namespace did what it was sent for."""
        calls = self._lines.get(namespace)
        if calls is not None and calls.failures:
            calls.failures = calls.failures // 2 if calls.failing else calls.failures - 1
            calls.failing = calls.failing and calls.failures > 0

    def _whose_turn(self) -> str | None:
        if not self._slow:
            return next(iter(self._turns), None)
        pools = {stuck: self._pool(stuck=stuck) for stuck in (False, True)}
        full = {
            stuck: sum(calls.flights for calls in pool) >= self._pool_limit(stuck=stuck)
            for stuck, pool in pools.items()
        }
        for namespace, calls in self._turns.items():
            if namespace not in self._slow:
                return namespace
            if not full[calls.stuck] and calls.flights < self._share(calls, pools[calls.stuck]):
                return namespace
        return None

    def _line(self, namespace: str) -> _NamespaceCalls[T]:
        calls = self._lines.get(namespace)
        if calls is None:
            calls = self._lines[namespace] = _NamespaceCalls(self._first if namespace else self._limit)
        return calls

    def _line_up(self, namespace: str, calls: _NamespaceCalls[T]) -> None:
        if calls.waiting and calls.flights < calls.window:
            self._turns.setdefault(namespace, calls)

    def _ended(self, call: CallInFlight[T], *, through: bool, sent: bool) -> None:
        calls, now = self._lines[call.namespace], asyncio.get_running_loop().time()
        self._calls.remove(call)
        calls.flights -= 1
        self._answered(call, calls, now, sent=sent)
        self._line_up(call.namespace, calls)
        if through:
            calls.stands_since = None

    def _answered(self, call: CallInFlight[T], calls: _NamespaceCalls[T], now: float, *, sent: bool) -> None:
        if call.late:
            self._late -= 1
            calls.late -= 1
            calls.slow_until = now + SLOW_SECONDS
            return
        if not sent:
            return
        calls.window = min(calls.window + 1, self._limit)
        calls.pace += (min(max(now - call.due + LATE_SECONDS, 0.0), LATE_SECONDS) - calls.pace) / _AVERAGED
        if calls.pace > SLOW_AVERAGE:
            self._slow_down(call.namespace, calls, now)
        elif call.namespace in self._slow:
            calls.doubt -= 1
            if calls.doubt <= 0 and not calls.late and not calls.failing:
                del self._slow[call.namespace]

    def _tidy(self, namespace: str, calls: _NamespaceCalls[T]) -> None:
        if not calls.waiting:
            self._turns.pop(namespace, None)
        if not calls and not calls.flights and not calls.failures and namespace not in self._slow:
            self._lines.pop(namespace, None)
        if not self._lines and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- who is late ----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Once a second while something is in flight, or a namespace is slow."""
        loop, timer = asyncio.get_running_loop(), self._timer
        now = loop.time()
        if timer is not None and now > timer.when() + _PAUSED and not self._excused:
            self._excused = True
            self._timer = loop.call_at(now + _UNREAD, self._look)
            return
        self._excused = False
        for call in self._calls:
            if not call.late and call.due <= now + _EARLY:
                self._is_late(call, now)
        self._forgive(now)
        self._report(now)
        due = min((call.due for call in self._calls if not call.late), default=now + LATE_SECONDS)
        self._timer = loop.call_at(min(due, now + LATE_SECONDS), self._look) if self._lines else None
        self.changed()

    def _is_late(self, call: CallInFlight[T], now: float) -> None:
        calls = self._lines[call.namespace]
        call.late = True
        self._late += 1
        calls.late += 1
        calls.doubt = calls.window = self._limit  # from now on its share is the bound
        self._slow_down(call.namespace, calls, now)

    def _slow_down(self, namespace: str, calls: _NamespaceCalls[T], now: float) -> None:
        calls.slow_until = now + SLOW_SECONDS
        self._slow[namespace] = calls

    def _forgive(self, now: float) -> None:
        for namespace, calls in list(self._lines.items()):
            if not calls.late and calls.slow_until <= now and (calls.failures or namespace in self._slow):
                self._slow.pop(namespace, None)
                calls.failures, calls.failing, calls.pace, calls.doubt = 0, False, 0.0, 0
                self._tidy(namespace, calls)

    def _report(self, now: float) -> None:
        for namespace, calls in self._lines.items():
            if calls.stands_since is None:
                calls.stands_since = now if calls or calls.flights else None
            elif now - calls.stands_since >= STALLED_SECONDS:
                self._stalled(namespace, len(calls) + calls.flights)
