"""The sums in a class's ranks, in four parts that change at different times.

| part | changes with | held in |
|---|---|---|
| uniform: scores that are the same on all rows | nothing; ranks do without it | `RowSums.uniform` |
| static: scores that depend on the node alone | a changed node | `RowSums.static_sum` |
| usage: scores that depend on what runs on the row | a placement there | added up each time |
| stamped: scores that look beyond a row | a placement anywhere | `StampedSums` |

The first three are the row's own; the ranks made of them are `StampedSums.base_rank` if any plugin is stamped.
"""

from collections.abc import Hashable, Set
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import IntColumn, grow
from kubenexus.cycle.feasibility import INFEASIBLE
from kubenexus.cycle.scores.column import ScoreColumn
from kubenexus.cycle.scores.scale import SUMS
from kubenexus.cycle.tie_break import TIE_BREAK_BITS
from kubenexus.framework.extension_points import Stamped

_SHIFT = np.array(TIE_BREAK_BITS)  # as an array: NumPy takes its time to look at a Python number
_NO_RANKS: IntColumn = np.zeros(0, np.int64)


class RowSums(msgspec.Struct, gc=False, eq=False):
    """The scores of a class that depend on the row alone, sorted by when they change."""

    usage: list[ScoreColumn] = []
    static: list[ScoreColumn] = []
    static_sum: Any = None  # the sum of the static parts of each row; None without static scores
    uniform: int = 0
    outdated: bool = False  # a uniform score no longer is: `sort` is to be called again

    def sort(self, scores: list[ScoreColumn]) -> None:
        """Takes the active scores that are not stamped. Their extremes are up to date."""
        self.usage, self.static, self.uniform, self.outdated = [], [], 0, False
        for score in scores:
            uniform = score.uniform
            score.uniform_score = None if uniform is None else uniform.plugin_score()
            if score.uniform_score is not None:
                self.uniform += score.uniform_score.normalized * score.uniform_score.weight
            elif score.traits.usage:
                self.usage.append(score)
            else:
                self.static.append(score)
        self.static_sum = None
        for score in self.static:
            part = score.values.static_part()
            self.static_sum = part if self.static_sum is None else self.static_sum + part

    def ranks(self, rows: Any, tie_breaks: Any) -> IntColumn:
        """Returns the sums of some rows, without the uniform part, above their tie-break numbers."""
        total: Any = None if self.static_sum is None else self.static_sum[rows]
        for score in self.usage:
            part = score.values.part(rows)
            total = part if total is None else np.add(total, part, dtype=SUMS)
        if total is None:
            return tie_breaks.astype(np.int64)  # type: ignore[no-any-return]
        rank = total.astype(np.int64)
        rank <<= _SHIFT
        return np.bitwise_or(rank, tie_breaks, out=rank)  # type: ignore[no-any-return]

    def total_at(self, row: int) -> int:
        """Returns the sum of a row, without the uniform part."""
        total: int = 0 if self.static_sum is None else self.static_sum.item(row)
        for score in self.usage:
            total += score.values.part_at(row)
        return total

    def update_static(self, rows: Any) -> None:
        """Adds up the static parts of some rows again, whose nodes changed."""
        if self.static_sum is not None:
            if not self.static_sum.flags.writeable:  # shared with other classes
                self.static_sum = self.static_sum.copy()
            self.static_sum[rows] = sum(score.values.part(rows) for score in self.static)

    def stretch(self, size: int) -> None:
        """Adds rows up to `size`."""
        if self.static_sum is not None:
            self.static_sum = grow(self.static_sum, size)


class StampedSums(msgspec.Struct, gc=False, eq=False):
    """The plugins of a class that look beyond a row, with their scores.

    `columns` has the scores of all of them, `summed` of those that do not skip the class. `stamps` holds, by plugin and
    extension point, the stamp of the cached result. `feasible_version` is the version of the feasible rows that
    the scores were last computed for. `base_rank` is empty without stamped plugins.
    """

    plugins: list[Stamped]
    columns: list[ScoreColumn] = []
    summed: list[ScoreColumn] = []
    base_rank: IntColumn = _NO_RANKS
    stamps: dict[tuple[str, str], Hashable] = {}
    feasible_version: int = 0

    def ranks(self) -> IntColumn:
        """Returns the ranks of all rows: `base_rank` and the parts of the stamped scores."""
        self.summed = [score for score in self.columns if score.active]
        rank = self.base_rank
        for score in self.summed:
            rank = score.values.add_to_ranks(rank)
        return rank if self.summed else rank.copy()

    def add_parts(self, rows: Any, rank: Any) -> Any:
        """Returns the ranks of some rows, from their ranks without the stamped scores."""
        for score in self.summed:
            rank = rank + score.values.rank_part(rows)
        return rank

    def add_parts_at(self, row: int, rank: int) -> int:
        """Returns the same for one row, as a plain number."""
        for score in self.summed:
            rank += score.values.part_at(row) << TIE_BREAK_BITS
        return rank

    def resum(self, rank: IntColumn, rows: Set[int]) -> None:
        """Writes the ranks of these feasible rows. The parts of all other feasible rows are what they were."""
        for row in rows:
            rank[row] = self.add_parts_at(row, self.base_rank.item(row))
        for score in self.summed:
            score.values.mark_summed()

    def stretch(self, size: int) -> None:
        """Adds rows up to `size`; the repair that follows writes their ranks."""
        if self.plugins:
            self.base_rank = grow(self.base_rank, size, fill=INFEASIBLE)
