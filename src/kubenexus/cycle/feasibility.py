"""Which rows of a class's table are feasible: rows on which the pod can run."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.state.nodes import NodeColumns

INFEASIBLE = -1  # the rank of a row that is not feasible
# As arrays: NumPy takes its time to look at a Python number.
_INFEASIBLE, _NO_REASON = np.array(INFEASIBLE), np.array(0, np.uint8)
_NO_ROWS: BoolColumn = np.zeros(0, np.bool_)


class Feasibility(msgspec.Struct, gc=False, eq=False):
    """`rows[n]` says whether row n is feasible; `count` rows are.

    A row is feasible if its node exists, is not blocked, and no filter gave a reason against it. `version` moves when
    this set or a reason against a row moves.
    """

    rows: BoolColumn = _NO_ROWS
    count: int = 0
    version: int = 0

    def compute(self, filters: list[FilterColumn], columns: NodeColumns) -> None:
        """Computes all rows from what the filters hold."""
        reasons: Any = None
        for column in filters:
            if column.bits is not None:
                reasons = column.bits if reasons is None else reasons | column.bits
        if reasons is None:
            rows, self.count = columns.alive[: columns.size].copy(), columns.count
        else:
            rows = reasons == _NO_REASON
            if columns.count != columns.size:
                rows &= columns.alive[: columns.size]
            self.count = int(np.count_nonzero(rows))
        if columns.blocked_count:
            rows &= ~columns.blocked[: columns.size]
            self.count = int(np.count_nonzero(rows))
        self.rows = rows
        self.version += 1

    def update(self, filters: list[FilterColumn], columns: NodeColumns, rows: Any) -> tuple[bool, BoolColumn | None]:
        """Computes some rows again. Returns whether any row's feasibility moved, and which of `rows` are feasible now;
        None if all of them are."""
        refused = _refused(filters, columns, rows)
        if refused is None and self.count == len(self.rows):  # all rows were feasible, and still are
            return False, None
        ok = np.ones(len(rows), np.bool_) if refused is None else ~refused
        moved = bool(np.count_nonzero(ok != self.rows[rows]))
        if moved:
            self.rows[rows] = ok
            self.count = int(np.count_nonzero(self.rows))
        if moved or refused is not None:  # a row that stays refused may have another reason now
            self.version += 1
        return moved, None if refused is None else ok

    def update_row(self, filters: list[FilterColumn], columns: NodeColumns, row: int) -> bool:
        """Computes one row again, as plain numbers. Returns whether its feasibility moved."""
        ok = bool(columns.alive[row]) and not columns.blocked[row]
        for column in filters:
            if column.bits is not None and column.bits.item(row):
                ok = False
                break
        if self.rows.item(row) == ok:
            return False
        self.rows[row] = ok
        self.count += 1 if ok else -1
        self.version += 1
        return True

    def hide_infeasible(self, rank: IntColumn) -> IntColumn:
        """Returns `rank`, in which the ranks of infeasible rows are overwritten."""
        if self.count != len(rank):
            np.putmask(rank, ~self.rows, _INFEASIBLE)
        return rank


def _refused(filters: list[FilterColumn], columns: NodeColumns, rows: Any) -> BoolColumn | None:
    """Returns which of the rows are not feasible; None if all are."""
    refused: Any = None
    if columns.count != columns.size or columns.blocked_count:
        refused = ~columns.alive[rows] | columns.blocked[rows]
    for column in filters:
        if column.bits is not None:
            more = column.bits[rows] != 0
            refused = more if refused is None else refused | more
    return refused  # type: ignore[no-any-return]
