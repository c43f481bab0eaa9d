"""Scores with a number for each row."""

from typing import Any

import numpy as np

from kubenexus.base.arrays import BoolColumn, grow
from kubenexus.cycle.scores.representation import ClassScores
from kubenexus.cycle.scores.scale import SUMS
from kubenexus.cycle.tie_break import TIE_BREAK_BITS


class DenseScores(ClassScores):
    """A column of raw scores. `raw` belongs to the table: repairs write into it."""

    raw: Any

    def at(self, row: int) -> int:
        return int(self.raw.item(row))

    def take(self, rows: Any) -> Any:
        return self.raw[rows].astype(np.int64)

    def put(self, rows: Any, raw: Any, size: int) -> "DenseScores":
        held = self.raw
        if not isinstance(raw, int) and raw.dtype != held.dtype:
            raw = raw.astype(held.dtype)  # quicker than the cast of each element in the assignment
        held[rows] = raw
        return self

    def stretch(self, size: int) -> None:
        self.raw = grow(self.raw, size)

    def measure(self, ok: BoolColumn, version: int) -> None:
        self.extremes = (self._largest(ok),) if self.scale.by_largest else self.scale.extremes_of(self.raw[ok])

    def _largest(self, ok: BoolColumn) -> int:
        """Returns the largest raw score of a feasible row, at least 0."""
        if not len(ok):
            return 0
        top = int(self.raw.argmax())  # mostly a feasible row: then no second column is made
        return max(self.raw.item(top), 0) if ok.item(top) else int((self.raw * ok).max(initial=0))

    def points_at(self, row: int) -> int:
        raw, scale = self.raw.item(row), self.scale
        if scale.plugin.normalize.apply is None:
            return int(raw)
        if scale.by_largest:
            return int(scale.normalized(raw, self.extremes))
        return int(scale.normalized(np.array([raw], np.int64), self.extremes)[0])

    def part_at(self, row: int) -> int:
        scale = self.scale
        if scale.is_normalized or scale.plugin.normalize.apply is None:
            return scale.weight * int(self.raw.item(row))
        return scale.weight * self.points_at(row)

    def part(self, rows: Any) -> Any:
        points, weight = self._points(rows), self.scale.weight
        return points if weight == 1 else np.multiply(points, weight, dtype=SUMS)

    def rank_part(self, rows: Any) -> Any:
        return np.multiply(self._points(rows), self.scale.weight << TIE_BREAK_BITS, dtype=np.int64)

    def _points(self, rows: Any) -> Any:
        raw = self.raw[rows]
        return raw if self.scale.is_normalized else self.scale.normalized(raw, self.extremes)
