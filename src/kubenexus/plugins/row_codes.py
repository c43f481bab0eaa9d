"""The code of each row for scores that take few values, as it moves with the pods."""

from typing import Any

import numpy as np

from kubenexus.framework.extension_points import CodedScores
from kubenexus.framework.pod_class import PodClass
from kubenexus.state.pod_counter import Steps
from kubenexus.state.view import Nodes

_NOBODY, _SEVERAL = -1, -2


class RowCodes:
    """Codes, and how many rows have each.

    Tables hold on to the codes they were given. A class that alone has them sees them move when it asks again; where
    several have them, whoever asks next is given others. Copying all rows takes longer than moving one.
    """

    __slots__ = ("_before", "_holder", "_key", "_moved", "codes", "rows")

    def __init__(self, codes: Any, size: int) -> None:
        self.codes = codes
        self.rows: Any = np.bincount(codes, minlength=size)
        self._key = object()  # names the codes as they are now
        self._before: Any = None  # the key before, and which rows moved since
        self._moved: list[tuple[int, int, int]] = []
        self._holder = _NOBODY  # the class that has them, by its id: if that class is gone, so is its table

    def as_scores(self, values: Any, nodes: Nodes, asker: PodClass) -> CodedScores:
        """To be returned by a plugin's `score`; `values` are those of each code."""
        if nodes.rows is not None:
            return CodedScores(self.codes[nodes.rows], values)
        self._holder = id(asker) if self._holder in (_NOBODY, id(asker)) else _SEVERAL
        return CodedScores(self.codes, values, self._key, self.rows, None, self._before, self._moved)

    def move(self, steps: Steps, asker: PodClass) -> bool:
        """Rows have other codes from now on, because this class asks. Whether there are such codes; if not, some may
        have moved."""
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
        """The same of several rows by the same."""
        self._begin(asker)
        self._before = None  # too many to name them
        codes = self.codes[where] + by
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(self.rows):
            return False
        self.codes[where] = codes
        self.rows = np.bincount(self.codes, minlength=len(self.rows))
        return True

    def _begin(self, asker: PodClass) -> None:
        self._before, self._key, self._moved = self._key, object(), []
        if self._holder not in (_NOBODY, id(asker)):
            self.codes, self.rows, self._holder = self.codes.copy(), self.rows.copy(), _NOBODY
