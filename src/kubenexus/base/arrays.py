"""Exact integer arithmetic over columns, with floats where these are exact.

Scores must equal kube-scheduler's. It computes them with Go's integers, whose division of non-negative numbers rounds
down.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

IntColumn = NDArray[np.int64]
BoolColumn = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)

# Amounts are capped here, not at 2**63 - 1, so that the sum of two still fits in int64.
AMOUNT_CAP = 2**62 - 1
# Below this, 100 * amount is exact in float64 and a correctly rounded quotient has the right integer part: it is at
# most 100, so its rounding error (under 100 * 2**-53) is less than the 1 / whole to the next integer.
FLOAT_EXACT_MAX = 2**53 // 100


def any_true(mask: Any) -> bool:
    """Returns whether the mask is true anywhere. Much faster than `mask.any()`, and faster than counting."""
    return bool(mask.size and mask.item(mask.argmax()))


def grow(array: NDArray[Scalar], size: int, fill: float = 0, axis: int = -1) -> NDArray[Scalar]:
    """Returns a copy of the array with `size` entries along `axis`, by default the last; new entries are `fill`."""
    shape = [*array.shape]
    shape[axis] = size
    # `zeros` takes no memory for pages that are not written to; `full` writes to all of them.
    grown = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    np.moveaxis(grown, axis, 0)[: array.shape[axis]] = np.moveaxis(array, axis, 0)
    return grown


_HUNDRED = np.array(100.0)  # as an array: NumPy converts a Python number slowly


def percent(part: Any, whole: Any) -> Any:
    """Returns `100 * part // whole` as uint8, for columns with 0 <= part <= whole and whole not 0. If the columns are
    floats (up to FLOAT_EXACT_MAX), `part` is overwritten."""
    if whole.dtype.kind == "f":
        part *= _HUNDRED
        part /= whole
        return part.astype(np.uint8)
    # 100 * part could overflow int64: use Python's integers, row by row. Only nodes with petabytes get here.
    exact = [100 * int(p) // int(w) for p, w in zip(part.flat, whole.flat, strict=True)]
    return np.array(exact, np.uint8).reshape(part.shape)


class AmountVector:
    """Amounts of some resources, as a list and as a column vector to add to a table with a row for each resource."""

    __slots__ = ("_cells", "_column", "names", "values")

    def __init__(self, amounts: Mapping[str, int]) -> None:
        self.names = tuple(amounts)
        self.values = [min(amount, AMOUNT_CAP) for amount in amounts.values()]
        self._cells: tuple[object, list[tuple[int, int]]] = (None, [])
        self._column: Any = None

    def cells(self, rows: list[int]) -> list[tuple[int, int]]:
        """Returns (index of the resource, amount) pairs, given the indices of `names`."""
        if self._cells[0] is not rows:
            self._cells = (rows, list(zip(rows, self.values, strict=True)))
        return self._cells[1]

    def within(self, limits: list[float]) -> bool:
        """Returns whether no amount exceeds its limit."""
        return all([amount <= limit for amount, limit in zip(self.values, limits, strict=True)])  # noqa: C419

    def like(self, table: Any) -> Any:
        """Returns the column vector in the table's dtype."""
        if self._column is None or self._column.dtype != table.dtype:
            self._column = np.array(self.values, table.dtype)[:, None]
        return self._column
