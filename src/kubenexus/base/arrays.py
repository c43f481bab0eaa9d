"""Exact integer arithmetic over columns, as fast as floats can do it.

Scores must come out equal to kube-scheduler's last digit, and those are Go's integers: division of non-negative
numbers rounds down.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntColumn = NDArray[np.int64]
BoolColumn = NDArray[np.bool_]

# Amounts are capped here, not at 2**63 - 1, so that the sum of two of them still fits in int64.
AMOUNT_CAP = 2**62 - 1
# Below this, 100 * amount is exact in float64 and a correctly rounded quotient has the right integer part:
# it is at most 100, so its rounding error (under 100 * 2**-53) is less than the 1 / whole to the next integer.
FLOAT_EXACT_MAX = 2**53 // 100


def any_true(mask: Any) -> bool:
    """Whether it is true anywhere. Much quicker than `mask.any()`, and somewhat than counting."""
    return bool(mask.size and mask.item(mask.argmax()))


_HUNDRED = np.array(100.0)  # as an array: NumPy takes its time to look at a Python number


def percent(part: Any, whole: Any) -> Any:
    """`100 * part // whole` for columns with 0 <= part <= whole, whole not 0, in bytes. Floats (see EXACT) are
    overwritten."""
    if whole.dtype.kind == "f":
        part *= _HUNDRED
        part /= whole
        return part.astype(np.uint8)
    # 100 * part could leave int64: Python's integers, row by row. Only petabytes on a node come here.
    exact = [100 * int(p) // int(w) for p, w in zip(part.flat, whole.flat, strict=True)]
    return np.array(exact, np.uint8).reshape(part.shape)


class AmountVector:
    """What a pod asks for of some resources: a list, and a column vector to add to a table of them."""

    __slots__ = ("_cells", "_column", "names", "values")

    def __init__(self, amounts: Mapping[str, int]) -> None:
        self.names = tuple(amounts)
        self.values = [min(amount, AMOUNT_CAP) for amount in amounts.values()]
        self._cells: tuple[object, list[tuple[int, int]]] = (None, [])
        self._column: Any = None

    def cells(self, rows: list[int]) -> list[tuple[int, int]]:
        """(row of the resource, amount), given the list of rows that stands for `names`."""
        if self._cells[0] is not rows:
            self._cells = (rows, list(zip(rows, self.values, strict=True)))
        return self._cells[1]

    def within(self, limits: list[float]) -> bool:
        """Whether none of the amounts is more than its limit."""
        return all([amount <= limit for amount, limit in zip(self.values, limits, strict=True)])  # noqa: C419

    def like(self, table: Any) -> Any:
        """The column vector in the table's own kind of number."""
        if self._column is None or self._column.dtype != table.dtype:
            self._column = np.array(self.values, table.dtype)[:, None]
        return self._column
