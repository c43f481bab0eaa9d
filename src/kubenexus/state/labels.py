"""Node labels as columns of codes. A column exists for each label key that some rule ever asked about."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubenexus.api.selectors import Op, Requirement
from kubenexus.base.intern import ABSENT, Interner

CodeColumn = NDArray[np.int32]
_MOST_COLUMNS = 256  # pods may ask for any key; no cluster has so many that matter
_MOST_POOLED = 8192


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

    def set(self, row: int, labels: dict[str, str]) -> bool:
        """Whether the labels are others than before."""
        while len(self._of_row) <= row:
            self._of_row.append({})
        if self._of_row[row] == labels:
            return False
        self._of_row[row] = {self._one(key): self._one(value) for key, value in labels.items()}
        for key, column in self._columns.items():
            column.set(row, labels.get(key))
        return True

    def column(self, key: str) -> LabelColumn:
        """The column of a label key, made now if nobody asked before. Codes mean something only together with the
        column they came from: it is made anew when it holds too many values that no node has any more, or when it was
        dropped because many other keys were asked for since."""
        column = self._columns.get(key)
        if column is None or len(column.values.names) > 1024 + 2 * len(self._of_row):
            while len(self._columns) >= _MOST_COLUMNS:
                del self._columns[next(iter(self._columns))]
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
        if len(self._pool) > _MOST_POOLED:
            self._pool.clear()
        return self._pool.setdefault(text, text)


def holds(wanted: Requirement, codes: Any, column: LabelColumn) -> Any:
    """Where a requirement on a label holds: a comparison of codes."""
    match wanted.op:
        case Op.EXISTS:
            return codes != ABSENT
        case Op.DOES_NOT_EXIST:
            return codes == ABSENT
        case Op.IN if len(wanted.values) == 1:
            return codes == column.values.find(wanted.values[0])
        case Op.IN:
            return _one_of(codes, [column.values.find(value) for value in wanted.values])
        case Op.NOT_IN:
            return ~_one_of(codes, [column.values.find(value) for value in wanted.values])
    # Comparing as numbers: each distinct value is judged once, then looked up.
    accepted = [code != ABSENT and wanted.accepts(name) for code, name in enumerate(column.values.names)]
    return np.array(accepted)[codes]


def _one_of(codes: Any, wanted: list[int]) -> Any:
    """A few comparisons are ten times quicker than NumPy's way with sets."""
    if len(wanted) > 8:
        return np.isin(codes, wanted)
    found = codes == wanted[0] if wanted else np.zeros(len(codes), np.bool_)
    for code in wanted[1:]:
        found |= codes == code
    return found
