"""A number for each state of a NUMA node, computed for one pod class when it is first needed."""

from array import array
from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kubenexus.base.arrays import any_true
from kubenexus.state.numa.zone_states import NO_ZONE, ZoneState, ZoneStates

_UNKNOWN: Final = -(1 << 15)
_NOT_YET: Final = (1 << 15) - 1
_FEW: Final = 4  # states up to which plain numbers are faster than columns
_CHUNK: Final = 4096  # states whose columns stay in the cache of a core: all at once take twice as long


class Rule(Protocol):
    """The number of a state: as columns for many, and as a plain number for one. Both have to be equal. `nothing` is
    the number of a NUMA node that a row does not have."""

    nothing: int

    def many(self, states: ZoneStates, codes: Any) -> Any:  # codes, or a slice of all codes
        ...

    def one(self, state: ZoneState, states: ZoneStates) -> int: ...


class BestMemo:
    """Numbers of states of which a row has the largest: for rows that changed. They are from 0 to 2 ** 14.

    `known` returns those that follow from what other memos have, by code, and a negative number where they do not.
    """

    __slots__ = ("_epoch", "_known", "_one", "_values")

    def __init__(self, known: Callable[[ZoneStates], Any], one: Callable[[ZoneState, ZoneStates], int]) -> None:
        self._known, self._one = known, one
        self._epoch = -1
        self._values = array("h")  # not of NumPy: an item takes a third of the time

    def best(self, states: ZoneStates, codes: list[int]) -> int:
        """Returns the largest number of the NUMA nodes of one row."""
        values = self._values
        if self._epoch != states.epoch or len(values) < len(states.states):
            values = self._stretch(states)
        best = max([values[code] for code in codes])
        if best == _NOT_YET:
            for code in codes:
                if values[code] == _NOT_YET:
                    values[code] = self._one(states.states[code], states)
            best = max([values[code] for code in codes])
        return best

    def _stretch(self, states: ZoneStates) -> "array[int]":
        if self._epoch != states.epoch:
            known = self._known(states)
            found = np.where(known < 0, _NOT_YET, known).astype(np.int16)
            self._epoch, self._values = states.epoch, array("h", found.tobytes())
        more = len(states.states) + len(states.states) // 2 + 64 - len(self._values)
        self._values.extend(array("h", [_NOT_YET]) * more)
        return self._values


class StateMemo:
    """The numbers of a rule by code, small integers. It forgets them when codes get another meaning."""

    __slots__ = ("_epoch", "_rule", "_values")

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._epoch = -1
        self._values: NDArray[np.int16] = np.zeros(0, np.int16)

    def known(self, states: ZoneStates) -> tuple[Any, Any]:
        """Returns the numbers by code, and for which of them one is known."""
        values = self._up_to_date(states)[: len(states)]
        return values, values != _UNKNOWN

    def row(self, states: ZoneStates, codes: list[int]) -> list[int]:
        """Returns the numbers of the NUMA nodes of one row."""
        item = self._up_to_date(states).item
        found = [item(code) for code in codes]
        if _UNKNOWN in found:
            for position, code in enumerate(codes):
                if found[position] == _UNKNOWN:
                    found[position] = self._rule.one(states.states[code], states)
                    self._values[code] = found[position]
        return found

    def many(self, states: ZoneStates, codes: Any) -> Any:
        """Returns the numbers of some states, in the shape of `codes`."""
        values = self._up_to_date(states)
        if codes.size >= len(states):
            self._compute(states, np.flatnonzero(values[: len(states)] == _UNKNOWN))
            return values.take(codes)
        found = values.take(codes)
        unknown = found == _UNKNOWN
        if not any_true(unknown.ravel()):
            return found
        self._compute(states, np.unique(codes[unknown]))
        return values.take(codes)

    def _compute(self, states: ZoneStates, codes: Any) -> None:
        if len(codes) <= _FEW:
            for code in codes.tolist():
                self._values[code] = self._rule.one(states.states[code], states)
            return
        for first in range(0, len(codes), _CHUNK):
            part = codes[first : first + _CHUNK]
            begin, end = int(part[0]), int(part[-1]) + 1
            which = slice(begin, end) if end - begin == len(part) else part  # without a copy of each column
            self._values[which] = self._rule.many(states, which)

    def _up_to_date(self, states: ZoneStates) -> NDArray[np.int16]:
        if self._epoch != states.epoch:
            self._epoch = states.epoch
            self._values = np.full(len(states) + 64, _UNKNOWN, np.int16)
            self._values[NO_ZONE] = self._rule.nothing
        elif len(states) > len(self._values):
            grown = np.full(len(states) + len(states) // 2, _UNKNOWN, np.int16)
            grown[: len(self._values)] = self._values
            self._values = grown
        return self._values
