"""What one Score plugin returned for one class, on all rows."""

from collections.abc import Set
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import BoolColumn, grow
from kubenexus.cycle import plugin_output
from kubenexus.cycle.plugin_output import check_score_range, sanitize_scores
from kubenexus.cycle.scores.coded import CodedClassScores
from kubenexus.cycle.scores.dense import DenseScores
from kubenexus.cycle.scores.representation import ClassScores
from kubenexus.cycle.scores.scale import ScoreScale
from kubenexus.cycle.scores.uniform import UniformScores
from kubenexus.framework.decision import PluginScore
from kubenexus.framework.extension_points import CodedScores, Score
from kubenexus.framework.job import JobView
from kubenexus.framework.plugin_results import FAILURES, PluginError, call_plugin, plugin_error
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.profile import PluginTraits
from kubenexus.state.view import Nodes


class ScoreColumn(msgspec.Struct, gc=False, eq=False):
    """Calls the plugin, and holds its scores (`values`) in the representation that fits what it returned.

    `active` is False while the plugin skips the class. `uniform_score` is set by the table for scores that are the
    same on all rows, and None otherwise.
    """

    plugin: Score
    traits: PluginTraits
    scale: ScoreScale
    values: ClassScores
    active: bool = True
    uniform_score: PluginScore | None = None
    unusable: Any = None  # the rows for which a plugin that is not built in returned no usable number
    _shown: tuple[int, tuple[int, ...], PluginScore] | None = None  # the last `shown_at`, with raw score and extremes

    @classmethod
    def of(cls, plugin: Score, weight: int, traits: PluginTraits, is_normalized: bool, default: int) -> "ScoreColumn":
        """Returns the column of a plugin that was not called yet: `default` on all rows."""
        scale = ScoreScale(plugin, weight, traits.trusted, is_normalized)
        return cls(plugin, traits, scale, UniformScores(scale, (), default))

    @property
    def uniform(self) -> UniformScores | None:
        """The scores, if they are the same on all rows."""
        values = self.values
        return values if isinstance(values, UniformScores) else None

    def ask(self, pod: PodClass, nodes: Nodes, job: JobView) -> Any:
        """Returns what the plugin returns for these rows: scores, SKIP or a Verdict."""
        if not self.traits.trusted:
            return plugin_output.scored(
                call_plugin(self.plugin, self.plugin.score, pod, nodes.locked(), job), self.plugin.name
            )
        try:
            return self.plugin.score(pod, nodes, job)
        except FAILURES as error:
            raise plugin_error(self.plugin, error) from error

    def fill(self, raw: Any, width: int) -> None:
        """Takes the scores of all rows, of which there are `width`. A column belongs to the table from now on."""
        scale, extremes = self.scale, self.values.extremes
        if isinstance(raw, CodedScores):
            if raw.key is None:
                raw.key = object()
            if isinstance(self.values, CodedClassScores):
                self.values.replace(raw)  # keeps the counts of codes, which the plugin's `moved_rows` bring up to date
            else:
                self.values = CodedClassScores(scale, extremes, raw)
            return
        if not scale.trusted:
            raw, self.unusable = sanitize_scores(raw, width, scale.is_normalized, self.plugin.name)
        if isinstance(raw, int):
            self.values = UniformScores(scale, extremes, raw)
        else:
            self.values = DenseScores(scale, extremes, raw.astype(scale.dtype, copy=False))

    def put(self, rows: Any, raw: Any, size: int) -> bool:
        """Takes the scores of some rows (an index or an array of them). Returns whether scores that were the same on
        all rows no longer are."""
        if not self.traits.trusted:
            raw = self._cleaned(rows, raw, size)
        before = self.values
        self.values = before.put(rows, raw, size)
        return self.values is not before and isinstance(before, UniformScores)

    def _cleaned(self, rows: Any, raw: Any, size: int) -> Any:
        raw, unusable = sanitize_scores(raw, len(rows), self.scale.is_normalized, self.plugin.name)
        if self.unusable is None and unusable is not None:
            self.unusable = np.zeros(size, np.bool_)
        if self.unusable is not None:
            self.unusable[rows] = False if unusable is None else unusable
        return raw

    def verify(self, ok: BoolColumn) -> None:
        """Raises PluginError if a feasible row has no usable number, or points that are not 0..100."""
        if self.unusable is not None and (self.unusable & ok).any():
            raise PluginError(self.plugin.name, plugin_output.UNUSABLE)
        values = self.values
        uniform = isinstance(values, UniformScores)
        points = values.points_at(0) if uniform else self.scale.normalized(values.take(ok), values.extremes)
        check_score_range(points, self.plugin.name)

    def measure(self, ok: BoolColumn, version: int) -> bool:
        """Computes the extremes over the feasible rows `ok`. Returns whether they moved."""
        if self.scale.is_normalized or self.plugin.normalize.extremes is None:
            return False
        values = self.values
        before = values.extremes
        try:
            values.measure(ok, version)
        except FAILURES as error:
            raise plugin_error(self.plugin, error) from error
        return values.extremes != before

    def rows_to_resum(self, ok: BoolColumn) -> Set[int] | None:
        """See `ClassScores.rows_to_resum`."""
        return self.values.rows_to_resum(ok)

    def at(self, row: int) -> int:
        """Returns the raw score of a row."""
        return self.values.at(row)

    def part_at(self, row: int) -> int:
        """Returns what the plugin adds to the total of a row."""
        return self.values.part_at(row)

    def shown_at(self, row: int) -> PluginScore:
        """Returns the plugin's score on a row, as decisions record it: the last object again if nothing changed."""
        values = self.values
        raw, known = values.at(row), self._shown
        if known is None or known[0] != raw or known[1] != values.extremes:
            points = raw if self.plugin.normalize.apply is None else values.points_at(row)
            shown = PluginScore(self.plugin.name, self.scale.displayed(raw), points, self.scale.weight)
            known = self._shown = (raw, values.extremes, shown)
        return known[2]

    def stretch(self, size: int) -> None:
        """Adds rows up to `size`. The repair that follows writes their scores."""
        self.values.stretch(size)
        if self.unusable is not None:
            self.unusable = grow(self.unusable, size)
