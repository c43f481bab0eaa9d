"""Scores that are the same on all rows."""

import functools
from typing import Any

import numpy as np

from kubenexus.base.arrays import BoolColumn
from kubenexus.cycle.scores.dense import DenseScores
from kubenexus.cycle.scores.representation import ClassScores
from kubenexus.cycle.tie_break import TIE_BREAK_BITS
from kubenexus.framework.decision import PluginScore
from kubenexus.framework.extension_points import Normalize
from kubenexus.framework.plugin_results import FAILURES, plugin_error


class UniformScores(ClassScores):
    """One raw score for all rows. Ranks do without it: it changes no order."""

    raw: int
    _shown: PluginScore | None = None

    def at(self, row: int) -> int:
        return self.raw

    def take(self, rows: Any) -> int:
        return self.raw

    def put(self, rows: Any, raw: Any, size: int) -> ClassScores:
        """Returns a dense column as soon as a row differs."""
        if isinstance(raw, int) and raw == self.raw:
            return self
        column = np.full(size, self.raw, self.scale.dtype)
        return DenseScores(self.scale, self.extremes, column).put(rows, raw, size)

    def stretch(self, size: int) -> None:
        """Does nothing: a new row has the same score."""

    def measure(self, ok: BoolColumn, version: int) -> None:
        self.extremes = self._on_all_rows()[0]

    def plugin_score(self) -> PluginScore:
        """Returns the plugin's score on every row, as decisions record it."""
        if self._shown is None:
            self._shown = self._on_all_rows()[1]
        return self._shown

    def points_at(self, row: int) -> int:
        return self.plugin_score().normalized

    def part_at(self, row: int) -> int:
        shown = self._shown or self.plugin_score()
        return shown.normalized * shown.weight

    def part(self, rows: Any) -> int:
        return self.part_at(0)

    def rank_part(self, rows: Any) -> int:
        return self.part_at(0) << TIE_BREAK_BITS

    def _on_all_rows(self) -> tuple[tuple[int, ...], PluginScore]:
        plugin = self.scale.plugin
        try:
            return _on_all_rows(plugin.name, plugin.normalize, self.raw, self.scale.weight)
        except FAILURES as error:
            raise plugin_error(plugin, error) from error


@functools.lru_cache(maxsize=1024)
def _on_all_rows(plugin: str, normalize: Normalize, raw: int, weight: int) -> tuple[tuple[int, ...], PluginScore]:
    """Returns the extremes of a score that is the same on all rows, and the plugin's score there.

    Neither depends on which rows there are, and most classes get the same from a plugin.
    """
    column = np.array([raw], np.int64)
    extremes = () if normalize.extremes is None else normalize.extremes(column)
    normalized = raw if normalize.apply is None else int(normalize.apply(column, extremes)[0])
    return extremes, PluginScore(plugin, int(normalize.displayed(raw)), normalized, weight)
