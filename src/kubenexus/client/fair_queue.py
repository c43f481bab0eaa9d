"""`FairQueue`: calls that wait to be sent, first in, first out for each namespace. Decides which is sent next.

    put ─▶ waiting ─▶ in flight ─▶ done
              ▲           │ postpone
              └─ resting ◀┘

At most `limit` calls are in flight, of one namespace or of many. An admission webhook of a tenant may delay, hang or
deny the calls of its namespaces. No tenant's webhook may delay another tenant's calls. Namespaces are therefore
grouped by how their calls are answered. Slots are shared first among these groups, then within each group:

| speed   | calls of the namespace                                 | slots of the group                             |
|---------|--------------------------------------------------------|------------------------------------------------|
| QUICK   | are answered within `SLOW_AVERAGE` on average          | all; an eighth of them is kept for this group  |
| UNKNOWN | have never been answered                               | as many as `limit`, beside all others          |
| SLOW    | take longer on average                                 | all but that eighth                            |
| STUCK   | fail, or were not answered within `LATE_SECONDS`       | `slow`, half unless the caller passes a number |

A free slot goes to the group that has the fewest calls in flight for its weight. Each group with waiting calls thus
has a part of the slots, and none stays idle that a group may use. Within a group slot-seconds are shared, not calls:
each call moves its namespace back by the average time of the namespace's calls (start-time fair queueing). Otherwise 63
namespaces whose webhooks take 0.24 s would leave a 64th one four calls a second.

An UNKNOWN namespace has one call in flight, its trial. A trial that is not answered within `TRIAL_SECONDS` makes its
namespace STUCK, and the caller ends it after `CallInFlight.timeout`. Trials do not count against `limit`. The next is
of a namespace chosen at random: in any order a tenant could add namespaces that hang before or behind another's. With
64 slots 256 namespaces that hang are detected in a second, with 8 slots 32.

After its trial a namespace may have `FIRST_CALLS` calls in flight, and one more for each call that is answered in time.
A webhook that answers has all slots after five rounds. Calls outside of all namespaces pass no webhook of a tenant;
they are QUICK and may use all slots from the beginning.

STUCK namespaces have equal shares of the slots of their group. A namespace of which many calls fail (`failed`,
`passed`) has one slot: a webhook that answers at once with an error causes four binds and four GETs of each pod. Calls
that were sent before their namespace was known to hang and exceed `slow` no longer count against `limit`. Calls in
flight never exceed twice the limit.

A namespace stops being SLOW when its average is short again. It stops being STUCK when all its calls are answered, as
many as `limit` in a row in time (`FIRST_CALLS` after a trial), and no failures are left. Both end after a minute
without late, slow or failed calls.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import chain
from typing import Final, Generic, TypeVar

from kubenexus.client.namespace_calls import (
    FAILING_CALLS,
    FIRST_CALLS,
    SLOW_AVERAGE,
    SLOW_SECONDS,
    NamespaceCalls,
    Speed,
)
from kubenexus.client.slot_shares import SlotShares

__all__ = [
    "FAILING_CALLS",
    "FIRST_CALLS",
    "LATE_SECONDS",
    "SLOW_AVERAGE",
    "SLOW_SECONDS",
    "STALLED_SECONDS",
    "TRIAL_SECONDS",
    "TRIAL_TIMEOUT",
    "CallInFlight",
    "FairQueue",
]

T = TypeVar("T")

LATE_SECONDS: Final = 1.0  # seconds without an answer that make a namespace stuck; binds are answered within 0.1 s
STALLED_SECONDS: Final = 30.0  # seconds without a call of a namespace going through, before that is reported
TRIAL_SECONDS: Final = 0.25  # seconds without an answer to its first call that make a namespace stuck
TRIAL_TIMEOUT: Final = 0.3  # seconds after which the caller ends that call; more: its namespace is stuck by then
REMEMBERED: Final = 4096  # quick namespaces without calls whose averages are kept: they need not begin as UNKNOWN
_EARLY: Final = 1e-3  # seconds by which a timer may run before its time
_PAUSED: Final = 0.2  # seconds by which the timer is late when the event loop was blocked, so that answers lie unread
_UNREAD: Final = 0.25  # seconds that the event loop then has to read these answers


class CallInFlight(Generic[T]):
    """A call that was begun. `late` is True once the call has not been answered in time. `trial`: its namespace was
    never answered. `begun`: when the client's rate limit lets it pass; `delay`: seconds until then."""

    __slots__ = ("begun", "delay", "due", "item", "key", "late", "namespace", "trial")

    def __init__(self, namespace: str, key: Hashable, item: T, now: float, delay: float, trial: bool) -> None:
        self.namespace, self.key, self.item, self.late, self.trial = namespace, key, item, False, trial
        self.begun, self.delay = now + delay, delay
        self.due = self.begun + (TRIAL_SECONDS if trial else LATE_SECONDS)

    def timeout(self, seconds: float) -> float:
        """Returns how long the caller lets the call take: `seconds`, less for a trial."""
        return min(seconds, TRIAL_TIMEOUT + self.delay) if self.trial else seconds


class FairQueue(Generic[T]):
    """`first`: how many calls of a namespace may be in flight once one was answered. `trials`: whether it has only one
    until then. `delay`: seconds for which the client's rate limit holds back a call that begins now; they do not count
    as waiting for an answer.

    `changed` is called when `next` may have a call; `speed_changed` with a namespace whose speed has changed; `stalled`
    for each namespace of which no call has gone through for `STALLED_SECONDS`, again and again, with the number of its
    calls."""

    def __init__(
        self,
        limit: int,
        *,
        slow: int = 0,
        first: int = FIRST_CALLS,
        trials: bool = True,
        delay: Callable[[], float] = lambda: 0.0,
        changed: Callable[[], None] = lambda: None,
        speed_changed: Callable[[str], None] = lambda namespace: None,
        stalled: Callable[[str, int], None] = lambda namespace, count: None,
    ) -> None:
        self._limit, self._slow_limit, self._first = limit, slow or max(1, limit // 2), min(first, limit)
        self._trials = trials
        self._delay, self._stalled = delay, stalled
        self._changed = changed
        self._speed_changed = speed_changed
        self._lines: dict[str, NamespaceCalls[T]] = {}
        self._shares: SlotShares[T] = SlotShares(limit, self._slow_limit, trials=trials)
        self._groups = self._shares.groups
        self._averages: OrderedDict[str, float] = OrderedDict()  # of quick namespaces without calls
        self._calls: set[CallInFlight[T]] = set()
        self._count = 0  # waiting or resting
        self._late = 0
        self._timer: asyncio.Handle | None = None
        self._timer_due = 0.0  # uvloop returns a handle without `when` if the time is less than a millisecond away
        self._swept_at = float("-inf")

    def __len__(self) -> int:
        """How many calls wait or rest."""
        return self._count

    @property
    def in_flight(self) -> int:
        return len(self._calls)

    @property
    def waiting(self) -> bool:
        """Whether any call waits, for a slot or for an answer to another one."""
        return any(group.waiting for group in self._groups.values())

    @property
    def late(self) -> int:
        """Calls in flight that were not answered in time."""
        return self._late

    @property
    def held(self) -> int:
        """How many calls wait because their namespaces are stuck, or take longer than `HELD_AVERAGE`."""
        return self._shares.held

    def share(self, namespace: str) -> int:
        """How many slots a stuck namespace may hold: an equal part of those of its group, one if its calls fail."""
        calls = self._lines.get(namespace)
        if calls is None or calls.group is not self._shares.stuck:
            return self._slow_limit
        return self._shares.share(calls)

    def speed(self, namespace: str) -> Speed:
        calls = self._lines.get(namespace)
        if calls is not None:
            return calls.group.speed
        return Speed.QUICK if not namespace or namespace in self._averages else Speed.UNKNOWN

    def slow(self, namespace: str) -> bool:
        calls = self._lines.get(namespace)
        return calls is not None and calls.slow

    def stuck(self, namespace: str) -> bool:
        """Whether its calls fail, or some were lately not answered in time: the next may take long to go through."""
        return self.speed(namespace) is Speed.STUCK

    def waits(self, namespace: str) -> int:
        """How many of its calls wait for a slot."""
        calls = self._lines.get(namespace)
        return 0 if calls is None else len(calls.waiting)

    def failing(self, namespace: str) -> str:
        """The last failure of a namespace of which many calls fail; "" for all others."""
        calls = self._lines.get(namespace)
        return calls.why if calls is not None and calls.failing else ""

    # --- in and out -----------------------------------------------------------------------------------------------

    def put(self, namespace: str, key: Hashable, item: T) -> None:
        """Adds a call behind those of its namespace. A call with the same key that waits there is replaced in place."""
        calls = self._line(namespace)
        if calls.resting:
            self._end_rest(calls, key)
        if key not in calls.waiting:
            self._count += 1
            if not calls.active:
                calls.group.active += 1
            self._shares.count_waiting(calls, 1)
        calls.waiting[key] = item
        self._shares.give_turn(calls)
        self._changed()

    def remove(self, namespace: str, key: Hashable) -> T | None:
        """Removes and returns the call that waits or rests under this key, if there is one."""
        calls = self._lines.get(namespace)
        if calls is None:
            return None
        found = self._end_rest(calls, key)
        if found is None:
            found = calls.waiting.pop(key, None)
            if found is None:
                return None
            self._count -= 1
            self._shares.count_waiting(calls, -1)
            if not calls.active:
                calls.group.active -= 1
        self._tidy(calls)
        return found

    def _end_rest(self, calls: NamespaceCalls[T], key: Hashable) -> T | None:
        """Removes and returns the call that rests under this key, if there is one."""
        timer, found = calls.resting.pop(key, (None, None))
        if timer is not None:
            timer.cancel()
            self._count -= 1
        return found

    def drop(self) -> T | None:
        """Removes and returns the oldest call of the namespace that has the most."""
        namespace = max(self._lines, key=lambda each: len(self._lines[each]), default="")
        calls = self._lines.get(namespace)
        key = None if calls is None else next(chain(calls.waiting, calls.resting), None)
        return None if key is None else self.remove(namespace, key)

    def put_first(self) -> None:
        """Ends the rest of all calls that rest: they wait again."""
        for namespace, calls in list(self._lines.items()):
            for key, (_, item) in list(calls.resting.items()):
                self.put(namespace, key, item)

    # --- calls ----------------------------------------------------------------------------------------------------

    def next(self) -> CallInFlight[T] | None:
        """Returns the next call that may be sent now, if any. From then on the call is in flight."""
        calls = self._shares.next_namespace(len(self._calls), self._late) if self._count else None
        if calls is None:
            return None
        key, item = calls.waiting.popitem(last=False)
        self._count -= 1
        self._shares.count_waiting(calls, -1)
        return self._fly(calls, key, item)

    def begin(self, namespace: str, item: T) -> CallInFlight[T] | None:
        """Begins a call without a key, if no call waits and there is a slot for it: as `put` and `next` would, in half
        the time. None: it has to wait."""
        if self._count:
            return None
        calls = self._line(namespace)
        if not self._shares.take_slot(calls, len(self._calls), self._late):
            return None
        if not calls.active:
            calls.group.active += 1
        return self._fly(calls, None, item)

    def _fly(self, calls: NamespaceCalls[T], key: Hashable, item: T) -> CallInFlight[T]:
        calls.flights += 1
        calls.group.flights += 1
        self._shares.give_turn(calls)
        trial = self._trials and calls.group is self._shares.unknown
        now = asyncio.get_running_loop().time()
        call = CallInFlight(calls.namespace, key, item, now, self._delay(), trial)
        self._calls.add(call)
        if self._timer is None or self._timer_due > call.due:
            self._look_at(call.due)
        return call

    def done(self, call: CallInFlight[T], *, through: bool = True, sent: bool = True) -> None:
        """Ends a call. `through`: it needs not be sent again. `sent`: it was answered, and its time counts for the
        average."""
        calls = self._lines[call.namespace]
        self._calls.remove(call)
        calls.flights -= 1
        calls.group.flights -= 1
        if not calls.active:
            calls.group.active -= 1
        if through:
            calls.stalled_since = None
        self._answered(call, calls, asyncio.get_running_loop().time(), sent=sent)
        self._regroup(calls)
        if not calls.active:
            self._tidy(calls)
        self._changed()

    def postpone(self, call: CallInFlight[T], seconds: float, *, sent: bool = True) -> None:
        """Ends a call that has to be sent again, but not before so many seconds. It holds no slot meanwhile."""
        calls, loop = self._lines[call.namespace], asyncio.get_running_loop()
        timer = loop.call_later(seconds, self.put, call.namespace, call.key, call.item)
        calls.resting[call.key] = timer, call.item
        self._count += 1
        self.done(call, through=False, sent=sent)

    def failed(self, namespace: str, why: str) -> None:
        """Records that a call of this namespace was answered with an error, or came to nothing."""
        calls, loop = self._line(namespace), asyncio.get_running_loop()
        calls.record_failure(why, loop.time())
        if self._timer is None:
            self._look_at(loop.time() + LATE_SECONDS)
        if calls.failing:
            self._regroup(calls)
            self._changed()

    def passed(self, namespace: str) -> None:
        """Records that a call of this namespace did what it was sent for."""
        calls = self._lines.get(namespace)
        if calls is not None and calls.failures:
            calls.record_success()
            self._regroup(calls)

    # --- namespaces -----------------------------------------------------------------------------------------------

    def _line(self, namespace: str) -> NamespaceCalls[T]:
        calls = self._lines.get(namespace)
        if calls is None:
            average = self._averages.pop(namespace, None) if namespace else 0.0
            group = self._shares.unknown if average is None else self._shares.quick
            window = self._limit if not namespace else 1 if self._trials and average is None else self._first
            calls = self._lines[namespace] = NamespaceCalls(namespace, group, window, average)
        return calls

    def _answered(self, call: CallInFlight[T], calls: NamespaceCalls[T], now: float, *, sent: bool) -> None:
        if call.late:
            self._late -= 1
            calls.record_late_end(now)
        elif sent:  # after `due` the event loop was blocked, and the time says nothing about the server's
            calls.record_answer(now - call.begun if now <= call.due else None, now, self._first, self._limit)

    def _regroup(self, calls: NamespaceCalls[T]) -> None:
        if self._shares.regroup(calls):
            self._speed_changed(calls.namespace)

    def _tidy(self, calls: NamespaceCalls[T]) -> None:
        """Forgets a namespace that has no calls and is not slow, except for the average of a quick one."""
        over = not calls and not calls.flights and not calls.failures and not calls.slow
        if over and self._lines.pop(calls.namespace, None) is not None and calls.answered and calls.namespace:
            self._averages[calls.namespace] = calls.average
            if len(self._averages) > REMEMBERED:
                self._averages.popitem(last=False)
        if not self._lines and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- late calls -----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Runs when a call is due, and once a second while a namespace has calls or is slow. No call is late as long as
        this timer itself is: answers may lie unread since the event loop was blocked."""
        now = asyncio.get_running_loop().time()
        blocked = self._timer is not None and now > self._timer_due + _PAUSED
        self._timer = None
        for call in () if blocked else self._calls:
            if not call.late and call.due <= now + _EARLY:
                self._is_late(call, now)
        if now >= self._swept_at + LATE_SECONDS - _EARLY:  # not for each trial: there may be thousands of namespaces
            self._swept_at = now
            self._forgive(now)
            self._report(now)
        due = min((call.due for call in self._calls if not call.late), default=now + LATE_SECONDS)
        at = now + _UNREAD if blocked else min(due, now + LATE_SECONDS)
        if self._lines:
            self._look_at(at)
        self._changed()

    def _look_at(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_due = asyncio.get_running_loop().call_at(due, self._look), due

    def _is_late(self, call: CallInFlight[T], now: float) -> None:
        calls = self._lines[call.namespace]
        call.late = True
        self._late += 1
        calls.record_late(now, min(FIRST_CALLS, self._limit) if call.trial else self._limit, self._limit)
        self._regroup(calls)

    def _forgive(self, now: float) -> None:
        for calls in list(self._lines.values()):
            if not calls.late and calls.slow_until <= now and (calls.failures or calls.slow):
                calls.forgive(1 if self._trials and calls.namespace else calls.window)
                self._regroup(calls)
                self._tidy(calls)

    def _report(self, now: float) -> None:
        for namespace, calls in self._lines.items():
            if calls.stalled_since is None:
                calls.stalled_since = now if calls or calls.flights else None
            elif now - calls.stalled_since >= STALLED_SECONDS:
                self._stalled(namespace, len(calls) + calls.flights)
