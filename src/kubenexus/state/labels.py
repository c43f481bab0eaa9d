"""Labels of nodes or pods as columns of codes, one column for each label key that a rule reads."""

from collections import OrderedDict
from collections.abc import KeysView
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubenexus.api.selectors import Operator, Requirement, parse_int64
from kubenexus.base.intern import ABSENT, Interner

CodeColumn = NDArray[np.int32]
# A pod may name any key. There are as many columns as these bytes hold, and always more than one pod may need
# (`framework.pod_limits`): so a decision never drops a column that it reads itself.
_MAX_BYTES = 64 << 20
_MOST_COLUMNS, _LEAST_COLUMNS = 4096, 64
_MAX_POOLED = 8192
_UNUSED_VALUES = 256  # values that no row has any more, and that a column may hold besides twice those it has
_MAX_SHARED = 256  # labels of a row: a row with more hardly shares them with others


class LabelColumn:
    """One label key: `codes[n]` is the value's code on row n, ABSENT where the node has no such label."""

    __slots__ = ("_numbers", "codes", "values")

    def __init__(self, capacity: int) -> None:
        self.codes: CodeColumn = np.zeros(capacity, np.int32)
        self.values = Interner()
        self._numbers: tuple[Any, Any] = (np.zeros(0, np.bool_), np.zeros(0, np.int64))

    def set(self, row: int, value: str | None) -> None:
        self.codes[row] = ABSENT if value is None else self.values.code(value)

    def widen(self, capacity: int) -> None:
        wider: CodeColumn = np.zeros(capacity, np.int32)
        wider[: len(self.codes)] = self.codes
        self.codes = wider

    def numbers(self) -> tuple[Any, Any]:
        """Returns by code whether the value is a number, and which. Parsed once, until there are more values: a pod may
        compare with a thousand numbers, and a node's name is one of five thousand values."""
        names = self.values.names
        if len(self._numbers[0]) != len(names):
            read = [None, *[parse_int64(name) for name in names[1:]]]
            known = np.array([number is not None for number in read])
            self._numbers = known, np.array([number or 0 for number in read], np.int64)
        return self._numbers


class LabelColumns:
    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._of_row: list[dict[str, str]] = []
        self._columns: OrderedDict[str, LabelColumn] = OrderedDict()
        self._rows_with: dict[str, int] = {}  # how many rows have each key
        self._nowhere = LabelColumn(capacity)  # of every key that no row has
        self._pool: dict[str, str] = {}
        self.reads = 0  # columns that were built, each from all rows
        self.changes = 0  # how often the labels of a row changed

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for column in (self._nowhere, *self._columns.values()):
            column.widen(capacity)

    def of_row(self, row: int) -> dict[str, str]:
        return self._of_row[row] if row < len(self._of_row) else {}

    @property
    def keys(self) -> KeysView[str]:
        """The keys that some row has."""
        return self._rows_with.keys()

    def rows_with(self, key: str) -> int:
        """Returns how many rows have a label of this key."""
        return self._rows_with.get(key, 0)

    def set(self, row: int, labels: dict[str, str]) -> bool:
        """Sets the labels of a row. Returns whether they changed."""
        while len(self._of_row) <= row:
            self._of_row.append({})
        before = self._of_row[row]
        if before == labels:
            return False
        self.changes += 1
        many = len(labels) > _MAX_SHARED
        self._of_row[row] = dict(labels) if many else {self._one(k): self._one(v) for k, v in labels.items()}
        columns, rows_with = self._columns, self._rows_with
        for key in before:
            if key not in labels:
                if rows_with[key] == 1:
                    del rows_with[key]
                else:
                    rows_with[key] -= 1
                if key in columns:
                    columns[key].set(row, None)
        for key, value in self._of_row[row].items():
            if key not in before:
                rows_with[key] = rows_with.get(key, 0) + 1
            if key in columns:
                columns[key].set(row, value)
                if self._outgrown(key, columns[key]):
                    del columns[key]  # read again when a rule needs it
        return True

    def column(self, key: str) -> LabelColumn:
        """Returns the column of a label key; builds it if there is none. Codes are valid only with the column that they
        came from: another one is built when it held too many values that no row has any more, or when it was dropped
        because many other keys were read since. A key that no row has costs nothing, and drops no column.
        """
        column = self._columns.get(key)
        if column is None or self._outgrown(key, column):
            if not self._rows_with.get(key):
                self._columns.pop(key, None)
                return self._nowhere
            column = self._columns[key] = self._read(key)
            self._drop_old()
        elif len(self._columns) > _LEAST_COLUMNS // 2:
            self._columns.move_to_end(key)
        return column

    def _outgrown(self, key: str, column: LabelColumn) -> bool:
        """Whether the column holds too many values that no row has any more. To build it again takes time by rows, and
        at least so many new values have come since it was built."""
        return len(column.values.names) > _UNUSED_VALUES + 2 * self._rows_with.get(key, 0)

    def _drop_old(self) -> None:
        """Drops the columns that were read the longest ago."""
        most = max(_LEAST_COLUMNS, min(_MOST_COLUMNS, _MAX_BYTES // (4 * self._capacity)))
        while len(self._columns) > most:
            self._columns.popitem(last=False)

    def _read(self, key: str) -> LabelColumn:
        """Builds a column from all rows, with only the values that rows have now."""
        self.reads += 1
        column = LabelColumn(self._capacity)
        code = column.values.code
        codes = [code(labels[key]) if key in labels else ABSENT for labels in self._of_row]
        column.codes[: len(codes)] = codes
        return column

    def _one(self, text: str) -> str:
        """Returns one string object for equal strings: 5,000 nodes have the same twenty keys."""
        if len(self._pool) > _MAX_POOLED:
            self._pool.clear()
        return self._pool.setdefault(text, text)


def matching(wanted: Requirement, codes: Any, column: LabelColumn) -> Any:
    """Returns where a requirement on a label holds, by comparing codes."""
    match wanted.op:
        case Operator.EXISTS:
            return codes != ABSENT
        case Operator.DOES_NOT_EXIST:
            return codes == ABSENT
        case Operator.IN if len(wanted.values) == 1:
            return codes == column.values.find(wanted.values[0])
        case Operator.IN:
            return _one_of(codes, [column.values.find(value) for value in wanted.values])
        case Operator.NOT_IN:
            return ~_one_of(codes, [column.values.find(value) for value in wanted.values])
    # As numbers: each distinct value is compared once, then looked up.
    known, numbers = column.numbers()
    if wanted.number is None:
        return np.zeros(len(codes), np.bool_)
    accepted = known & (numbers > wanted.number if wanted.op is Operator.GT else numbers < wanted.number)
    return accepted[codes]


def _one_of(codes: Any, wanted: list[int]) -> Any:
    """Returns where a code is one of these. A few comparisons are ten times quicker than `np.isin`."""
    if len(wanted) > 8:
        return np.isin(codes, wanted)
    found = codes == wanted[0] if wanted else np.zeros(len(codes), np.bool_)
    for code in wanted[1:]:
        found |= codes == code
    return found
