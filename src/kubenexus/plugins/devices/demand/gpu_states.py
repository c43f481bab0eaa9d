"""GPU states: what is left of each GPU of a row, and where pods lead from there.

Rows whose GPUs have equally much left are in the same state, and each state has a number. Clusters pass through few of
them: 737 in a whole replay of openb, on 1,213 nodes with 6,212 GPUs. So what follows from a state is computed once for
each kind of request, and looked up by number for any rows. The score by demand of 40 rows takes 35 instead of 80 µs for
a part of a GPU and 31 instead of 43 for whole ones, that of 1,213 rows 76 instead of 271 and 68 instead of 83.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.base.arrays import grow
from kubenexus.plugins.devices.demand.fill_table import CPUS, MAX_WHOLE, PAIR_OF, PAIRS, UNIT

MIN_SLOTS: Final = 3  # so that every state has two GPUs in use, and one more that a part begins
MAX_TABLE_BYTES: Final = 16 << 20  # of the tables of all kinds of requests
_FIRST: Final = 64  # states for which tables have space at first
_FEW: Final = 8  # states up to which plain numbers are faster


class GpuRequest(NamedTuple):
    """A number of GPUs, and thousandths of each."""

    gpus: int
    milli: int


class CoarseState(NamedTuple):
    """The GPUs that are whole, where the values of the state begin in a table of `fill_table`, and thousandths of a GPU
    that the table does not contain."""

    whole: int
    place: int
    lost: int


class GpuStates:
    """The states that occurred so far, by number. A state may have two numbers: with more slots it has more zeros."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        self._left: list[tuple[int, ...]] = []
        self._left_table: Any = np.zeros((MIN_SLOTS, 0), np.int64)  # the same as a table, of the first states
        self._tables: dict[GpuRequest, _Table] = {}

    def __len__(self) -> int:
        """Returns the number of states."""
        return len(self._left)

    def number_of(self, left: Sequence[int]) -> int:
        """Returns the number of a state. `left` is what is left of each GPU in thousandths, most first."""
        key = tuple(left)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._left)
            self._left.append(key)
        return number

    def left(self, numbers: Any, slots: int) -> Any:
        """Returns `left[i, n]`: what is left of each GPU in the states with these numbers."""
        known = self._left_table
        if known.shape[1] != len(self._left):
            more = _as_table(self._left[known.shape[1] :], len(known))
            known = self._left_table = np.concatenate([grow(known, len(more), axis=0), more], axis=1)
        if len(known) < slots:
            known = self._left_table = grow(known, slots, axis=0)
        return known[:slots].take(numbers, axis=1)

    def left_in(self, number: int) -> list[int]:
        """Returns what is left of each GPU in one state."""
        return [*self._left[number]]

    def table(self, request: GpuRequest) -> Any:
        """Returns `[field, when, number]`: the fields of CoarseState before and after a pod with this request. A state
        that cannot take it has anything after it. The caller must not write into it."""
        table = self._tables.get(request)
        if table is None:
            if (len(self._tables) + 1) * 2 * len(CoarseState._fields) * 8 * len(self._left) > MAX_TABLE_BYTES:
                self._tables.clear()
            table = self._tables[request] = _Table(request)
        if table.count != len(self._left):
            table.catch_up(self._left)
        return table.fields


class _Table:
    """Where one kind of request leads from each state. `count` states are computed."""

    __slots__ = ("_request", "count", "fields")

    def __init__(self, request: GpuRequest) -> None:
        self._request = request
        self.count = 0
        self.fields: Any = np.zeros((len(CoarseState._fields), 2, _FIRST), np.int64)

    def catch_up(self, states: list[tuple[int, ...]]) -> None:
        first, last = self.count, len(states)
        if last > self.fields.shape[-1]:
            self.fields = grow(self.fields, 2 * last)
        if last - first <= _FEW:
            for number in range(first, last):
                left = [*states[number]]
                self.fields[:, :, number] = [*zip(state_of(left), self._after(left), strict=True)]
        else:
            left = _as_table(states[first:last])
            self.fields[:, 0, first:last] = before = states_of(left)
            self.fields[:, 1, first:last] = self._all_after(left, before)
        self.count = last

    def _after(self, left: list[int]) -> CoarseState:
        gpus, milli = self._request
        if gpus and milli < WHOLE:
            return state_of(after_part_on_row(milli, left))
        return state_of(left[min(gpus, left.count(WHOLE)) :])

    def _all_after(self, left: Any, before: Any) -> Any:
        gpus, milli = self._request
        if gpus and milli < WHOLE:
            return states_of(after_part(milli, left))
        return after_whole(gpus, before)


def _as_table(states: list[tuple[int, ...]], least_slots: int = MIN_SLOTS) -> Any:
    """Returns `[i, n]`: what is left of each GPU in these states, with zeros for GPUs that a state does not have."""
    slots = max([least_slots, *[len(left) for left in states]])
    return np.array([left + (0,) * (slots - len(left)) for left in states], np.int64).T


def states_of(left: Any) -> Any:
    """Returns a table of three rows, the fields of CoarseState, from what is left of each GPU, most first."""
    whole, rows, last = (left == WHOLE).sum(axis=0), np.arange(left.shape[1]), len(left) - 1
    most = np.where(whole <= last, left[np.minimum(whole, last), rows], 0)
    second = np.where(whole < last, left[np.minimum(whole + 1, last), rows], 0)
    counted = np.minimum(whole, MAX_WHOLE)
    lost = left.sum(axis=0) - counted * WHOLE - most // UNIT * UNIT - second // UNIT * UNIT
    return np.stack([whole, (counted * PAIRS + PAIR_OF[most // UNIT, second // UNIT]) * CPUS, lost])


def state_of(left: list[int]) -> CoarseState:
    """The same for one state."""
    whole = left.count(WHOLE)
    most = left[whole] if whole < len(left) else 0
    second = left[whole + 1] if whole + 1 < len(left) else 0
    counted = min(whole, MAX_WHOLE)
    lost = sum(left) - counted * WHOLE - most // UNIT * UNIT - second // UNIT * UNIT
    return CoarseState(whole, (counted * PAIRS + PAIR_OF.item(most // UNIT, second // UNIT)) * CPUS, lost)


def after_whole(gpus: int, states: Any) -> Any:
    """Returns a table as `states_of` does, from that before a pod takes whole GPUs. GPUs in use stay as they are, also
    where too few are whole: a kubelet may have more than are known."""
    whole, place, lost = states
    left = np.maximum(whole - gpus, 0)
    fewer = np.minimum(whole, MAX_WHOLE) - np.minimum(left, MAX_WHOLE)  # of those that a table contains
    return np.stack([left, place - fewer * (PAIRS * CPUS), lost - (whole - left - fewer) * WHOLE])


def after_part(milli: int, left: Any) -> Any:
    """Returns what is left of the GPUs of states after a part of one, most first. It goes to the GPU that it fills up
    most."""
    tightest = np.maximum((left >= milli).sum(axis=0) - 1, 0)
    after = left.copy()
    after[tightest, np.arange(left.shape[1])] -= milli
    return -np.sort(-np.maximum(after, 0), axis=0)


def after_part_on_row(milli: int, left: list[int]) -> list[int]:
    """The same for one state."""
    tightest = max(sum([each >= milli for each in left]) - 1, 0)
    after = left.copy()
    after[tightest] = max(after[tightest] - milli, 0)
    after.sort(reverse=True)
    return after
