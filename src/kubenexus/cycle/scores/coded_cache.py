"""Results about coded scores that all classes with the same `CodedScores` object share.

Classes with equal preferences for nodes (NodeAffinity) and different requests share their codes. Mostly they share the
largest value on a feasible row, too, and so the points of all values. A decision of a new class with such preferences
takes 206 instead of 230 µs at 5,000 nodes.
"""

from collections.abc import Callable, Hashable
from typing import Any

from kubenexus.base.arrays import BoolColumn
from kubenexus.framework.extension_points import CodedScores

_MAX_RESULTS = 16  # results, two for each largest value, of which there are seldom two


class CodedScoreCache:
    """Results that depend on codes and values alone. These never change, so that a result holds for all classes."""

    __slots__ = ("_codes", "_noted", "_order", "_values", "_witnesses")

    def __init__(self, codes: Any, values: Any) -> None:
        self._codes = codes
        self._values: list[int] = values.tolist()
        self._order: list[int] = values.argsort()[::-1].tolist()
        self._witnesses: dict[int, int] = {}  # by code: a row that has it, and was feasible for some class
        self._noted: dict[Hashable, Any] = {}

    def max_feasible(self, ok: BoolColumn) -> int:
        """Returns the largest value of a feasible row, at least 0.

        Mostly the row that had it for the last class is feasible for this class, too.
        """
        for code in self._order:
            row = self._witnesses.get(code, -1)
            if row >= 0 and ok.item(row):
                return max(self._values[code], 0)
            there = (self._codes == code) & ok
            if there.size and there.item(there.argmax()):
                self._witnesses[code] = int(there.argmax())
                return max(self._values[code], 0)
        return 0

    def memo(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Returns an array that depends on codes, values and `key`; `make` computes it once. It is read-only."""
        known = self._noted.get(key)
        if known is None:
            if len(self._noted) >= _MAX_RESULTS:
                self._noted.clear()
            known = self._noted[key] = make()
            known.flags.writeable = False
        return known


def cache_of(coded: CodedScores) -> CodedScoreCache:
    """Returns the cache of these codes and values, which is held with them."""
    if coded.cache is None:
        coded.cache = CodedScoreCache(coded.codes, coded.values)
    found: CodedScoreCache = coded.cache
    return found
