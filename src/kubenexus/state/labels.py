"""Node labels as columns of codes. A column exists for each label key that some rule ever asked about."""

import numpy as np
from numpy.typing import NDArray

from kubenexus.base.intern import ABSENT, Interner

CodeColumn = NDArray[np.int32]


class LabelColumn:
    """One label key: `codes[n]` is the value's code on row n, ABSENT where the node has no such label."""

    __slots__ = ("codes", "values")

    def __init__(self, capacity: int) -> None:
        self.codes: CodeColumn = np.zeros(capacity, np.int32)
        self.values = Interner()

    def set(self, row: int, value: str | None) -> None:
        self.codes[row] = ABSENT if value is None else self.values.code(value)


class LabelColumns:
    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._of_row: list[dict[str, str]] = []
        self._columns: dict[str, LabelColumn] = {}
        self._pool: dict[str, str] = {}

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for column in self._columns.values():
            wider: CodeColumn = np.zeros(capacity, np.int32)
            wider[: len(column.codes)] = column.codes
            column.codes = wider

    def of_row(self, row: int) -> dict[str, str]:
        return self._of_row[row] if row < len(self._of_row) else {}

    def set(self, row: int, labels: dict[str, str]) -> None:
        while len(self._of_row) <= row:
            self._of_row.append({})
        self._of_row[row] = {self._one(key): self._one(value) for key, value in labels.items()}
        for key, column in self._columns.items():
            column.set(row, labels.get(key))

    def column(self, key: str) -> LabelColumn:
        """The column of a label key, made now if nobody asked before."""
        column = self._columns.get(key)
        if column is None or len(column.values) > 1024 + 2 * len(self._of_row):
            column = self._columns[key] = self._read(key)
        return column

    def _read(self, key: str) -> LabelColumn:
        """Also the way to drop values that no node has any more: nodes come and go, hostnames with them."""
        column = LabelColumn(self._capacity)
        for row, labels in enumerate(self._of_row):
            column.set(row, labels.get(key))
        return column

    def _one(self, text: str) -> str:
        """One string object for equal strings: 5,000 nodes carry the same twenty keys."""
        if len(self._pool) > 65536:
            self._pool.clear()
        return self._pool.setdefault(text, text)
