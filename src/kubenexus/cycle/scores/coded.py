"""Scores that take few values: a code for each row, a value for each code."""

from collections.abc import Hashable, Set
from typing import Any

import numpy as np

from kubenexus.base.arrays import BoolColumn, grow
from kubenexus.cycle.scores.code_counts import CodeCounts
from kubenexus.cycle.scores.coded_cache import cache_of
from kubenexus.cycle.scores.dense import DenseScores
from kubenexus.cycle.scores.representation import ClassScores
from kubenexus.cycle.scores.scale import SUMS
from kubenexus.cycle.tie_break import TIE_BREAK_BITS
from kubenexus.framework.extension_points import CodedScores

_SHIFT = np.array(TIE_BREAK_BITS)  # as an array: NumPy takes its time to look at a Python number
_FEW_VALUES = 16  # for which the search for the largest one on a feasible row is worth sharing between classes


class CodedClassScores(ClassScores):
    """The `CodedScores` that a plugin returned for one class, which other classes may have too.

    Normalising concerns the values, not the rows. While feasible rows have few codes, the parts of these codes are
    plain numbers (`_parts`), and `CodeCounts` finds the rows whose rank a placement changes.
    """

    coded: CodedScores
    _counts: CodeCounts | None = None
    _parts: dict[int, int] | None = None  # by code, while feasible rows have few codes
    _values: Any = None  # the part of each code, once computed with the present extremes
    _summed: tuple[Hashable, Any] = (None, None)  # the codes' key, and parts or values, that the ranks contain

    def replace(self, coded: CodedScores) -> None:
        """Takes what the plugin returned for all rows now. `measure` is to be called next."""
        self.coded, self._values, self._parts = coded, None, None

    def at(self, row: int) -> int:
        return int(self.coded.values.item(self.coded.codes.item(row)))

    def take(self, rows: Any) -> Any:
        return self.coded.values[self.coded.codes[rows]]

    def put(self, rows: Any, raw: Any, size: int) -> DenseScores:
        """Returns a dense column: the codes belong to the plugin."""
        return DenseScores(self.scale, self.extremes, self.take(slice(None))).put(rows, raw, size)

    def stretch(self, size: int) -> None:
        self.coded = CodedScores(codes=grow(self.coded.codes, size), values=self.coded.values, key=object())

    # --- points -----------------------------------------------------------------------------------------------------

    def measure(self, ok: BoolColumn, version: int) -> None:
        before = self.extremes
        if self.scale.by_largest and len(self.coded.values) <= _FEW_VALUES:
            self.extremes = (cache_of(self.coded).max_feasible(ok),)
        else:
            self.extremes = self._extremes(ok, version)
        if self.extremes != before:
            self._values = None

    def _extremes(self, ok: BoolColumn, version: int) -> tuple[int, ...]:
        """Returns the extremes of the values that feasible rows have, and computes the parts of few codes."""
        normalize, values = self.scale.plugin.normalize, self.coded.values
        if self._counts is None:
            self._counts = CodeCounts()
        apply_few = normalize.apply_few
        codes = None if apply_few is None else self._counts.few(self.coded, ok, version)
        if codes is None or apply_few is None:
            self._parts, reduce = None, normalize.extremes
            return () if reduce is None else reduce(values[self._counts.present(self.coded, ok, version)])
        extremes, points = apply_few([*map(values.item, codes)])
        self._parts = {code: self.scale.weight * point for code, point in zip(codes, points, strict=True)}
        return extremes

    def points_at(self, row: int) -> int:
        return self.part_at(row) // max(self.scale.weight, 1)

    def part_at(self, row: int) -> int:
        code = self.coded.codes.item(row)
        part = None if self._parts is None else self._parts.get(code)
        return int(self._part_by_code().item(code)) if part is None else part

    def part(self, rows: Any) -> Any:
        return self._part_by_code().take(self.coded.codes[rows])

    def rank_part(self, rows: Any) -> Any:
        return (self._part_by_code() << _SHIFT).take(self.coded.codes[rows])

    def static_part(self) -> Any:
        return cache_of(self.coded).memo(
            ("column", self.extremes, self.scale.weight),
            lambda: self._part_by_code().take(self.coded.codes).astype(SUMS),
        )

    def _part_by_code(self) -> Any:
        if self._values is None:
            if self.coded.cache is None:
                self._values = self._weighted_values()
            else:
                key = ("values", self.extremes, self.scale.weight)
                self._values = cache_of(self.coded).memo(key, self._weighted_values)
        return self._values

    def _weighted_values(self) -> Any:
        return self.scale.normalized(self.coded.values, self.extremes) * self.scale.weight

    # --- sums -------------------------------------------------------------------------------------------------------

    def add_to_ranks(self, ranks: Any) -> Any:
        """With few codes only their parts are computed: the others are on no feasible row, and ranks there are
        overwritten."""
        self.mark_summed()
        if self._parts is None:
            parts = (self._part_by_code() << _SHIFT).take(self.coded.codes)
        elif len(same := {*self._parts.values()}) == 1:
            return np.array(same.pop() << TIE_BREAK_BITS) + ranks
        else:
            by_code = np.zeros(len(self.coded.values), np.int64)
            for code, part in self._parts.items():
                by_code[code] = part << TIE_BREAK_BITS
            parts = by_code.take(self.coded.codes)
        parts += ranks
        return parts

    def rows_to_resum(self, ok: BoolColumn) -> Set[int] | None:
        """Extremes may move and change no part: where all rows are equal, equally many pods more are worth the same."""
        (key, known), parts = self._summed, self._parts
        if parts is None:
            same = key == self.coded.key and not isinstance(known, dict)
            return frozenset() if same and np.array_equal(known, self._part_by_code()) else None
        if not isinstance(known, dict) or self._counts is None:
            return None
        return self._counts.changed(self.coded, ok, key, [code for code in parts if known.get(code) != parts[code]])

    def mark_summed(self) -> None:
        self._summed = (self.coded.key, self._part_by_code() if self._parts is None else self._parts)
