"""Which codes of a coded score are to be seen on feasible rows, and on how many of them.

After a placement one row has another code, or one domain other points. While feasible rows show few codes, what that
means is a matter of a handful of plain numbers, several times cheaper than NumPy's overhead; and mostly it means that
no row but this one has another rank.
"""

from collections.abc import Hashable, Set
from typing import Any

import numpy as np

from kubenexus.base.arrays import BoolColumn
from kubenexus.framework.extension_points import CodedScores

FEW = 8  # if no more than one row in so many is not feasible, it is quicker to name these than to go through all
_MOST = 16  # codes that are few
_NOWHERE: frozenset[int] = frozenset()


class CodeCounts:
    """Of one score of one class. `version` names the feasible rows, and the codes' key the codes."""

    __slots__ = ("_closed", "_codes", "_counts", "_of")

    def __init__(self) -> None:
        self._of: tuple[Hashable, int] = (None, -1)  # the codes and the feasible rows that were counted
        self._codes: dict[int, int] | None = None  # those on feasible rows, with how many these are, if they are few
        self._counts: Any = None  # feasible rows by code, unless few codes were followed since
        self._closed: tuple[int, Any] = (-1, None)  # rows that are not feasible, as of a version

    def few(self, coded: CodedScores, ok: BoolColumn, version: int) -> dict[int, int] | None:
        """The codes that feasible rows have, with how many have each; None if these are many codes."""
        if self._of != (coded.key, version):
            if self._codes is not None and self._of == (coded.previous_key, version):
                self._follow(self._codes, coded, ok)
            else:
                self._recount(coded, ok, version)
        return self._codes

    def present(self, coded: CodedScores, ok: BoolColumn, version: int) -> Any:
        """Whether any feasible row has it, for each code."""
        if self._of != (coded.key, version) or self._counts is None:
            self._recount(coded, ok, version)
        return self._counts > 0

    def changed(self, coded: CodedScores, ok: BoolColumn, key: Hashable, codes: list[int]) -> Set[int] | None:
        """The feasible rows that have another code than when `key` named them, or one of these. None if these are
        others than the former. As of the last count, of few codes."""
        moved = () if key == coded.key else coded.moved_rows if key == coded.previous_key else None
        if moved is None or self._codes is None:
            return None
        rows = {row for row, _, _ in moved if ok.item(row)} if moved else _NOWHERE
        for code in codes:
            number = self._codes[code]
            if number > len(rows) or number > len([row for row in rows if coded.codes.item(row) == code]):
                return None
        return rows

    def _follow(self, codes: dict[int, int], coded: CodedScores, ok: BoolColumn) -> None:
        """Some rows have other codes than when they were counted."""
        for row, old, new in coded.moved_rows:
            if ok.item(row):
                codes[new] = codes.get(new, 0) + 1
                codes[old] -= 1
                if not codes[old]:
                    del codes[old]
        self._of, self._counts = (coded.key, self._of[1]), None
        if len(codes) > _MOST:
            self._codes = None

    def _recount(self, coded: CodedScores, ok: BoolColumn, version: int) -> None:
        counts = self._counts = self._count(coded, ok, version)
        codes = counts.nonzero()[0]
        few = len(codes) <= _MOST
        self._codes = dict(zip(codes.tolist(), counts[codes].tolist(), strict=True)) if few else None
        self._of = (coded.key, version)

    def _count(self, coded: CodedScores, ok: BoolColumn, version: int) -> Any:
        if self._closed[0] != version:
            self._closed = (version, _few_closed(ok))
        rows, closed, size = coded.rows, self._closed[1], len(coded.values)
        if rows is None or closed is None:
            return np.bincount(coded.codes[ok.nonzero()[0]], minlength=size)
        return rows - np.bincount(coded.codes[closed], minlength=size) if len(closed) else rows


def _few_closed(ok: BoolColumn) -> Any:
    """The rows that are not feasible; None if they are many."""
    return (~ok).nonzero()[0] if FEW * (len(ok) - np.count_nonzero(ok)) <= len(ok) else None
