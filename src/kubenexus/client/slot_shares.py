"""`SlotShares`: chooses the namespace that has the next free slot of a `FairQueue`.

Slots are shared among the groups of namespaces, then within each group: see `client.fair_queue`. Each group has a heap
of the namespaces that may send a call. Counters change with each call that begins or ends, so that no choice counts
calls or looks at all namespaces.
"""

import heapq
from itertools import count
from random import Random
from typing import Final, Generic, TypeVar

from kubenexus.client.namespace_calls import HELD_AVERAGE, NamespaceCalls, Speed, SpeedGroup

T = TypeVar("T")

_MIN_COST: Final = 0.005  # seconds by which a call moves its namespace back at least


class SlotShares(Generic[T]):
    """`limit`: slots of all groups. `stuck_limit`: those that STUCK namespaces may use. `trials`: whether calls of
    UNKNOWN namespaces have slots of their own, as many as `limit`, and the next of them is chosen at random.

    `held`: how many calls wait because their namespaces are stuck, or take longer than `HELD_AVERAGE`."""

    def __init__(self, limit: int, stuck_limit: int, *, trials: bool) -> None:
        self._limit, self._stuck_limit, self._trials, self._reserve = limit, stuck_limit, trials, limit // 8
        self.groups: dict[Speed, SpeedGroup[T]] = {speed: SpeedGroup(speed, 2 * limit) for speed in Speed}
        self.quick, self.unknown = self.groups[Speed.QUICK], self.groups[Speed.UNKNOWN]
        self.stuck = self.groups[Speed.STUCK]
        self.stuck.limit = stuck_limit
        if trials:
            self.unknown.limit, self.unknown.rng = limit, Random(limit)
        self.held = 0
        self._numbers = count(1)

    def share(self, calls: NamespaceCalls[T]) -> int:
        """How many slots a stuck namespace may hold: an equal part of those of its group, one if its calls fail."""
        if calls.failing:
            return 1
        others = self.stuck.active - calls.active
        return max(1, self._stuck_limit // (others + 1))

    def next_namespace(self, in_flight: int, late: int) -> NamespaceCalls[T] | None:
        """Returns the namespace of the next call, None if no call may be sent. So many calls are `in_flight`, and of
        these so many `late`."""
        groups = [group for group in self.groups.values() if group.turns]
        if len(groups) > 1:
            groups.sort(key=lambda group: group.flights / group.weight)
        for group in groups:
            chosen = self._take_turn(group) if self._has_slot(group, in_flight, late) else None
            if chosen is not None:
                return chosen
        return None

    def _has_slot(self, group: SpeedGroup[T], in_flight: int, late: int) -> bool:
        """Whether there is a slot that this group may use. Late calls beyond those of the stuck group and trials do not
        count against `limit`."""
        slots = 2 * self._limit - in_flight
        if not (self._trials and group is self.unknown):
            uncounted = self.unknown.flights if self._trials else 0
            if late > self._stuck_limit:
                uncounted += late - self._stuck_limit
            slots = min(slots, self._limit + uncounted - in_flight)
        if slots <= 0 or group.flights >= group.limit:
            return False
        return group is self.quick or slots + self.quick.flights > self._reserve

    def _take_turn(self, group: SpeedGroup[T]) -> NamespaceCalls[T] | None:
        """Takes the first entry of a group off its heap. Stuck namespaces that hold their share are passed over; there
        are no more of those than slots."""
        passed, chosen = [], None
        while chosen is None and (entry := group.pop()) is not None:
            tag, turn, calls = entry
            if calls.turn != turn:
                continue
            if not calls.waiting or calls.flights >= calls.window:
                calls.turn = 0
                continue
            if group is self.stuck and calls.flights >= self.share(calls):
                passed.append(entry)
                continue
            calls.turn = 0
            _move_back(calls, tag)
            chosen = calls
        for entry in passed:
            heapq.heappush(group.turns, entry)
        return chosen

    def take_slot(self, calls: NamespaceCalls[T], in_flight: int, late: int) -> bool:
        """Takes a slot for a call of this namespace, while no call of any namespace waits. Returns whether it could."""
        if calls.flights >= calls.window or not self._has_slot(calls.group, in_flight, late):
            return False
        if calls.group is self.stuck and calls.flights >= self.share(calls):
            return False
        _move_back(calls, calls.tag)
        return True

    def give_turn(self, calls: NamespaceCalls[T]) -> None:
        """Adds a namespace to the heap of its group, if it has a call that may be sent and is not there yet."""
        if not calls.turn and calls.waiting and calls.flights < calls.window:
            calls.turn = next(self._numbers)
            calls.group.push((max(calls.tag, calls.group.virtual), calls.turn, calls))

    def count_waiting(self, calls: NamespaceCalls[T], change: int) -> None:
        """Counts a call that begins (1) or ceases (-1) to wait."""
        calls.group.waiting += change
        if calls.held:
            self.held += change

    def regroup(self, calls: NamespaceCalls[T]) -> bool:
        """Moves a namespace to the group of its speed. Returns whether that is another one. Called after each change of
        how its calls are answered."""
        old, new = calls.group, self.groups[calls.speed]
        held = calls.slow and (new is self.stuck or calls.average > HELD_AVERAGE)
        if held is not calls.held:
            self.held += len(calls.waiting) if held else -len(calls.waiting)
            calls.held = held
        if new is not old:
            old.count(calls, -1)
            new.count(calls, 1)
            calls.group, calls.turn, calls.tag = new, 0, 0.0
        self.give_turn(calls)
        return new is not old


def _move_back(calls: NamespaceCalls[T], tag: float) -> None:
    """Moves a namespace back by the average time of its calls. `tag`: the virtual time at which this one begins."""
    group = calls.group
    group.virtual = max(group.virtual, tag)
    calls.tag = group.virtual + max(calls.average, _MIN_COST)
