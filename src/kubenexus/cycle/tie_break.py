"""Tie-break numbers: the low bits of a rank, below the score.

The largest rank is the best node, ties included, so that no list of ties is made: 51 instead of 73 µs for a warm
decision on 5,000 equal nodes (docs/adr/0002). The number of a node comes from its name, the class and the number of its
pods. It does not depend on the order in which nodes arrived, and it changes with each placement there, so that equal
nodes fill evenly.
"""

import zlib
from typing import Any

import numpy as np

from kubenexus.framework.profile import TieBreak
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.resources import PODS

TIE_BREAK_BITS = 32  # the low bits of a rank that hold the tie-break number
_WORD = (1 << TIE_BREAK_BITS) - 1
_BUSY = 1 << (TIE_BREAK_BITS - 1)


class TieBreaker:
    """The tie-break numbers of one class. `for_rows` and `for_row` return the same number for a row."""

    __slots__ = ("_by_name", "_column_salt", "_in_use", "_ranks", "_salt")

    def __init__(self, tie_break: TieBreak, seed: int, signature: bytes) -> None:
        self._salt = zlib.crc32(signature, seed & _WORD) | 1
        self._column_salt = np.array(self._salt, np.uint32)
        self._by_name = tie_break is TieBreak.NAME
        self._in_use = tie_break is TieBreak.IN_USE
        self._ranks: tuple[int, Any] = (-1, None)

    def for_rows(self, columns: NodeColumns, rows: Any) -> Any:
        """Returns those of a slice or an array of rows, in `TIE_BREAK_BITS` bits. The caller may overwrite them."""
        if self._by_name:
            return self._names(columns)[rows].copy()
        numbers = columns.tie_break[rows] * self._column_salt  # modulo 2**32
        if self._in_use:
            numbers >>= 1
            numbers |= (columns.resources.used[PODS][rows] > 0).astype(np.uint32) << (TIE_BREAK_BITS - 1)
        return numbers

    def for_row(self, columns: NodeColumns, row: int) -> int:
        """Returns that of one row."""
        if self._by_name:
            return int(self._names(columns)[row])
        number: int = columns.tie_break.item(row) * self._salt & _WORD
        if self._in_use:
            number = number >> 1 | (_BUSY if columns.resources.used.item(PODS, row) > 0 else 0)
        return number

    def _names(self, columns: NodeColumns) -> Any:
        """Returns numbers in the order of names, the first name highest. Sorted again when nodes came or went."""
        if self._ranks[0] != columns.cluster_version:
            ranks = np.zeros(columns.size, np.int64)
            for rank, name in enumerate(sorted(columns.row_of)):
                ranks[columns.row_of[name]] = _BUSY - rank
            self._ranks = (columns.cluster_version, ranks)
        return self._ranks[1]
