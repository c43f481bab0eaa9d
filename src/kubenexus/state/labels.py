"""Labels of nodes or pods as columns of codes, one column for each label key that a rule reads."""

from collections import OrderedDict
from collections.abc import Collection, KeysView
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubenexus.api.selectors import Operator, Requirement, parse_int64
from kubenexus.base.arrays import grow
from kubenexus.base.intern import ABSENT, Interner

CodeColumn = NDArray[np.int32]
# A pod may name any key. There are as many columns as these bytes hold, and always more than one pod may need
# (`framework.pod_limits`): so a decision never drops a column that it reads itself.
_MAX_BYTES = 64 << 20
_MOST_COLUMNS, _LEAST_COLUMNS = 4096, 64
_MAX_POOLED = 8192
_UNUSED_VALUES = 256  # values that no row has any more, and that a column may hold besides twice those it has
_MAX_SHARED = 256  # labels of a row: a row with more hardly shares them with others
_BITS = tuple(1 << i for i in range(64))
# A key is common if more than one row in 16 has it. It takes long to read, so its column is kept from then on.
_COMMON, _LEAST_COMMON = 16, 64
MOST_KEPT = 32


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

    def without_unused(self) -> "LabelColumn":
        """Returns the same column with only the values that rows have now. Needs no labels of rows."""
        used = np.bincount(self.codes, minlength=len(self.values)) > 0
        used[ABSENT] = True
        column, names = LabelColumn(0), self.values.names
        column.values = Interner([names[code] for code in np.flatnonzero(used)[1:].tolist()])
        column.codes = (np.cumsum(used, dtype=np.int32) - np.int32(1))[self.codes]
        return column

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
    """The labels of rows, and a column for each key that a rule reads.

    A column is built from the rows that may have its key. Each row has two words with a bit for each of its keys: a row
    that lacks a bit of the key does not have the key. So a key of few rows costs little however many rows there are.

    Columns that are `kept` are built at once and never dropped: those of the keys in `always`, and with `keep_common`
    those of common keys, up to `MOST_KEPT`.
    """

    def __init__(self, capacity: int, *, always: Collection[str] = (), keep_common: bool = False) -> None:
        self._capacity = capacity
        self._of_row: list[dict[str, str]] = []
        self._low, self._high = np.zeros(capacity, np.uint64), np.zeros(capacity, np.uint64)
        self._columns: OrderedDict[str, LabelColumn] = OrderedDict()
        self._rows_with: dict[str, int] = {}  # how many rows have each key
        self._nowhere = LabelColumn(capacity)  # of every key that no row has
        self._pool: dict[str, str] = {}
        self._always = frozenset(always)
        self._kept = set(always)
        self._most_kept = MOST_KEPT if keep_common else 0
        self._many = _many(capacity)
        self.reads = 0  # columns that were built
        self.rows_read = 0  # rows whose labels were looked at for these
        self.changes = 0  # how often the labels of a row changed
        for key in self._always:
            self._columns[key] = LabelColumn(capacity)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        self._low, self._high = grow(self._low, capacity), grow(self._high, capacity)
        self._many = _many(capacity)
        self._forget_uncommon()
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
        self._take(row, [key for key in before if key not in labels])
        columns, rows_with = self._columns, self._rows_with
        low = high = 0
        common: list[str] = []
        for key, value in self._of_row[row].items():
            hashed = hash(key)
            low |= _BITS[hashed & 63]
            high |= _BITS[hashed >> 6 & 63]
            if key not in before:
                rows = rows_with[key] = rows_with.get(key, 0) + 1
                if rows > self._many and key not in self._kept:
                    common.append(key)
            if key in columns:
                column = columns[key]
                column.set(row, value)
                if len(column.values.names) > _UNUSED_VALUES and self._outgrown(key, column):
                    self._shrink(key)
        self._low[row], self._high[row] = low, high
        for key in common:
            self._keep(key)
        return True

    def _take(self, row: int, keys: list[str]) -> None:
        """Takes the labels of these keys from a row."""
        columns, rows_with = self._columns, self._rows_with
        for key in keys:
            if rows_with[key] == 1:
                del rows_with[key]
            else:
                rows_with[key] -= 1
            if key in columns:
                columns[key].set(row, None)

    def column(self, key: str) -> LabelColumn:
        """Returns the column of a label key; builds it if there is none. Codes are valid only with the column that they
        came from: another one is built when it held too many values that no row has any more, or when it was dropped
        because many other keys were read since. A key that no row has costs nothing, and drops no column.
        """
        column = self._columns.get(key)
        if column is None:
            if not self._rows_with.get(key):
                return self._nowhere
            column = self._columns[key] = self._read(key)
            self._drop_old()
        elif self._outgrown(key, column):
            column = self._columns[key] = column.without_unused()
        elif len(self._columns) > _LEAST_COLUMNS // 2:
            self._columns.move_to_end(key)
        return column

    def _outgrown(self, key: str, column: LabelColumn) -> bool:
        """Whether the column holds too many values that no row has any more. To make another takes time by values, and
        at least so many new ones have come since it was built."""
        return len(column.values.names) > _UNUSED_VALUES + 2 * self._rows_with.get(key, 0)

    def _shrink(self, key: str) -> None:
        if key in self._kept:
            self._columns[key] = self._columns[key].without_unused()
        else:
            del self._columns[key]  # read again when a rule needs it

    def _keep(self, key: str) -> None:
        """Keeps the column of a key that has become common, if there are not too many. To build it takes time by a
        sixteenth of the rows, as it is done before more rows have the key."""
        if len(self._kept) < self._most_kept:
            self._kept.add(key)
            if key not in self._columns:
                self._columns[key] = self._read(key)

    def _forget_uncommon(self) -> None:
        common = {key for key in self._kept if 2 * self._rows_with.get(key, 0) > self._many}
        self._kept = common | self._always

    def _drop_old(self) -> None:
        """Drops the columns that were read the longest ago, of those that are not kept."""
        most = max(_LEAST_COLUMNS, min(_MOST_COLUMNS, _MAX_BYTES // (4 * self._capacity)))
        if len(self._columns) <= most:
            return
        self._forget_uncommon()
        loose = [key for key in self._columns if key not in self._kept]
        for key in loose[: len(self._columns) - most]:
            del self._columns[key]

    def _read(self, key: str) -> LabelColumn:
        """Builds a column from all rows, with only the values that rows have now."""
        self.reads += 1
        column, hashed = LabelColumn(self._capacity), hash(key)
        low, high = np.uint64(_BITS[hashed & 63]), np.uint64(_BITS[hashed >> 6 & 63])
        rows = np.flatnonzero((self._low & low).astype(np.bool_) & (self._high & high).astype(np.bool_))
        self.rows_read += len(rows)
        code, of_row = column.values.code, self._of_row
        column.codes[rows] = [code(of_row[row][key]) if key in of_row[row] else ABSENT for row in rows.tolist()]
        return column

    def _one(self, text: str) -> str:
        """Returns one string object for equal strings: 5,000 nodes have the same twenty keys."""
        if len(self._pool) > _MAX_POOLED:
            self._pool.clear()
        return self._pool.setdefault(text, text)


def _many(capacity: int) -> int:
    return max(_LEAST_COMMON, capacity // _COMMON)


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
