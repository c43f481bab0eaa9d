"""What is found out about coded scores once, for all classes that were given the same object.

Classes that want the same of nodes (NodeAffinity's preferences, say) and differ in what they ask for share their codes.
So they mostly share the best value in sight, too, and what it makes of the others.
"""

from collections.abc import Callable, Hashable
from typing import Any

from kubenexus.base.arrays import BoolColumn
from kubenexus.framework.extension_points import CodedScores

_MOST = 16  # things that are remembered, two for each best value: of these there are seldom two


class CodedScoreCache:
    """Stands on codes and values, which never change: whatever one class adds to it holds for all."""

    __slots__ = ("_codes", "_noted", "_order", "_values", "_witnesses")

    def __init__(self, codes: Any, values: Any) -> None:
        self._codes = codes
        self._values: list[int] = values.tolist()
        self._order: list[int] = values.argsort()[::-1].tolist()
        self._witnesses: dict[int, int] = {}  # by code: a row that has it, and was feasible for some class
        self._noted: dict[Hashable, Any] = {}

    def max_feasible(self, ok: BoolColumn) -> int:
        """The largest value that some feasible row has, at least 0. Mostly the row that showed it to the class before
        shows it to this one."""
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
        """A column or some values that follow from these and from `key`. Nobody may write into them."""
        known = self._noted.get(key)
        if known is None:
            if len(self._noted) >= _MOST:
                self._noted.clear()
            known = self._noted[key] = make()
            known.flags.writeable = False
        return known


def cache_of(coded: CodedScores) -> CodedScoreCache:
    """Into these codes and values; kept with them."""
    if coded.cache is None:
        coded.cache = CodedScoreCache(coded.codes, coded.values)
    found: CodedScoreCache = coded.cache
    return found
