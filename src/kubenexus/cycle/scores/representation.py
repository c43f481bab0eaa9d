"""The interface of the three representations of a class's scores."""

from abc import abstractmethod
from collections.abc import Set
from typing import Any

import msgspec

from kubenexus.base.arrays import BoolColumn
from kubenexus.cycle.scores.scale import SUMS, ScoreScale


class ClassScores(msgspec.Struct, gc=False, eq=False):
    """The raw scores of one plugin on all rows, and the extremes of the last `measure`.

    `rows` selects rows of the table: a slice or an array of indices. A *part* is what the plugin adds to a total:
    the points of a row times the plugin's weight. Parts are computed with the extremes of the last `measure`.
    """

    scale: ScoreScale
    extremes: tuple[int, ...]

    # --- raw scores -------------------------------------------------------------------------------------------------

    @abstractmethod
    def at(self, row: int) -> int:
        """Returns the raw score of a row."""

    @abstractmethod
    def take(self, rows: Any) -> Any:
        """Returns the raw scores of some rows: an int64 column, or an int if they are the same on all rows."""

    @abstractmethod
    def put(self, rows: Any, raw: Any, size: int) -> "ClassScores":
        """Writes the raw scores of some rows, or of one; `size` is the number of rows of the table.

        Returns the scores to keep from now on: these, or others if this representation cannot hold the result.
        """

    @abstractmethod
    def stretch(self, size: int) -> None:
        """Adds rows up to `size`. The repair that follows writes their scores."""

    # --- points -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def measure(self, ok: BoolColumn, version: int) -> None:
        """Computes the extremes over the feasible rows `ok`. Equal versions mean equal feasible rows."""

    @abstractmethod
    def points_at(self, row: int) -> int:
        """Returns the points of a row, from the same arithmetic on columns that ranks it."""

    @abstractmethod
    def part_at(self, row: int) -> int:
        """Returns the part of a row."""

    @abstractmethod
    def part(self, rows: Any) -> Any:
        """Returns the parts of some rows."""

    @abstractmethod
    def rank_part(self, rows: Any) -> Any:
        """Returns the parts of some rows, shifted to where ranks have their score. The caller may overwrite them."""

    def static_part(self) -> Any:
        """Returns the parts of all rows. The column may be shared with other classes and read-only."""
        return self.part(slice(None)).astype(SUMS)

    # --- sums -------------------------------------------------------------------------------------------------------

    def add_to_ranks(self, ranks: Any) -> Any:
        """Returns ranks of all rows with this plugin's parts added. `ranks` is not changed."""
        parts = self.rank_part(slice(None))
        parts += ranks  # into the column that was just made: no further memory is touched
        return parts

    def rows_to_resum(self, ok: BoolColumn) -> Set[int] | None:
        """Returns the feasible rows whose part differs from the part in their rank; None if any row's may."""
        return None

    def mark_summed(self) -> None:
        """Records that the ranks of all feasible rows contain the present parts."""
