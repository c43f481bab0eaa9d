"""From the raw scores of a plugin to points of 0..100."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.cycle import plugin_output
from kubenexus.framework.extension_points import HIGHER_IS_BETTER, LOWER_IS_BETTER, Score
from kubenexus.framework.plugin_results import FAILURES, call_plugin, plugin_error

SUMS = np.int32  # a sum of weighted scores has 31 bits (see framework.profile)


class ScoreScale(msgspec.Struct, gc=False, eq=False, frozen=True):
    """How the raw scores of one plugin are normalised, and its weight.

    `trusted` marks a built-in plugin. The results of other plugins are checked. `is_normalized` marks raw scores that
    are points already.
    """

    plugin: Score
    weight: int
    trusted: bool
    is_normalized: bool

    @property
    def dtype(self) -> type[np.integer[Any]]:
        """The type of a column of raw scores: a byte a row for points of 0..100, that of sums for other points, and the
        full range for everything else. A class keeps its columns: those of a new one are fresh memory, and each page
        of it takes as long as the arithmetic."""
        if not self.trusted or self.plugin.normalize.apply is not None:
            return np.int64
        return np.uint8 if self.is_normalized else SUMS

    @property
    def by_largest(self) -> bool:
        """Whether the only extreme is the largest raw score, at least 0."""
        normalize = self.plugin.normalize
        return normalize is HIGHER_IS_BETTER or normalize is LOWER_IS_BETTER

    def extremes_of(self, raw: Any) -> tuple[int, ...]:
        """Returns the extremes of these raw scores, as the plugin's `normalize` defines them."""
        reduce = self.plugin.normalize.extremes
        if reduce is None:
            return ()
        found = call_plugin(self.plugin, reduce, raw)
        return found if self.trusted else plugin_output.extremes(found, self.plugin.name)

    def normalized(self, raw: Any, extremes: tuple[int, ...]) -> Any:
        """Returns the points of these raw scores: a column for a column, a number for a number."""
        apply = self.plugin.normalize.apply
        if apply is None:
            return raw
        try:
            points = apply(raw, extremes)
        except FAILURES as error:
            raise plugin_error(self.plugin, error) from error
        return points if self.trusted else plugin_output.points(raw, points, self.plugin.name)

    def displayed(self, raw: int) -> int:
        """Returns a raw score as explanations show it."""
        try:
            return int(self.plugin.normalize.displayed(raw))
        except FAILURES as error:
            raise plugin_error(self.plugin, error) from error
