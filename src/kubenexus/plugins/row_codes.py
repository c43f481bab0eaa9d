"""The code of each row for scores that take few values, kept up to date with the pods."""

from typing import Any

import numpy as np

from kubenexus.framework.extension_points import CodedScores
from kubenexus.framework.pod_class import PodClass
from kubenexus.state.pod_counter import Steps
from kubenexus.state.view import Nodes

_NO_CLASS, _SEVERAL = -1, -2


class RowCodes:
    """Codes, and the number of rows with each.

    The tables of classes hold the array of codes. If one class has it, its next call moves codes in place, because a
    copy of all rows takes longer than to move one. If several classes have it, the next call that moves codes makes a
    copy.
    """

    __slots__ = ("_before", "_holder", "_key", "_moved", "codes", "rows")

    def __init__(self, codes: Any, size: int) -> None:
        self.codes = codes
        self.rows: Any = np.bincount(codes, minlength=size)
        self._key = object()  # identifies the present codes
        self._before: Any = None  # the previous key, and the rows that moved since
        self._moved: list[tuple[int, int, int]] = []
        self._holder = _NO_CLASS  # the id of the class that has the codes; a deleted class has no table either

    def as_scores(self, values: Any, nodes: Nodes, asker: PodClass) -> CodedScores:
        """Returns what a plugin's `score` returns for class `asker`. `values` has the value of each code."""
        if nodes.rows is not None:
            return CodedScores(codes=self.codes[nodes.rows], values=values)
        self._holder = id(asker) if self._holder in (_NO_CLASS, id(asker)) else _SEVERAL
        return CodedScores(
            codes=self.codes,
            values=values,
            key=self._key,
            rows=self.rows,
            previous_key=self._before,
            moved_rows=self._moved,
        )

    def move(self, steps: Steps, asker: PodClass) -> bool:
        """Adds to the codes of some rows, in a call for class `asker`.

        Returns False if a code would be out of range. Some rows may have moved then, and the codes are to be discarded.
        """
        self._begin(asker)
        codes, rows, most = self.codes, self.rows, len(self.rows)
        for row, by in steps:
            old = codes.item(row)
            new = old + by
            if not 0 <= new < most:
                return False
            codes[row] = new
            rows[old] -= 1
            rows[new] += 1
            self._moved.append((row, old, new))
        return True

    def move_all(self, where: Any, by: int, asker: PodClass) -> bool:
        """Does the same for many rows, by the same number."""
        self._begin(asker)
        self._before = None  # too many rows to list them
        codes = self.codes[where] + by
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(self.rows):
            return False
        self.codes[where] = codes
        self.rows = np.bincount(self.codes, minlength=len(self.rows))
        return True

    def _begin(self, asker: PodClass) -> None:
        self._before, self._key, self._moved = self._key, object(), []
        if self._holder not in (_NO_CLASS, id(asker)):
            self.codes, self.rows, self._holder = self.codes.copy(), self.rows.copy(), _NO_CLASS
