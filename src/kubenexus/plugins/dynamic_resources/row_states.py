"""`RowStates`: two numbers for each row, one for the devices of its pools and one for those that are held.

Rows with equal numbers get equal answers, but for the names of devices. So 5,000 nodes with the same machine are a few
different states, which NumPy finds, and each is searched once. Only rows whose pools or allocations changed are looked
at again. All classes whose claims read the same attributes share one object.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from kubenexus.base.arrays import grow
from kubenexus.plugins.dynamic_resources.candidates import PoolShape, Reads, ShapeTable, pool_state
from kubenexus.state.claims.pools import Pool
from kubenexus.state.claims.store import ClaimStore
from kubenexus.state.nodes import NodeColumns

WORD: Final = 64  # devices of a node that a word holds; rows with more are searched
_WORD: Final = (1 << WORD) - 1
_FEW: Final = 4  # rows up to which plain numbers are faster than NumPy
_SPARE: Final = 4096  # numbers beyond one for each row, before all are given again
_ROW_BYTES, _SHAPE_BYTES, _HELD_BYTES = 40, 1024, 512
_NO_LABELS: Final[Mapping[str, str]] = {}
_NO_ROWS: Final = np.zeros(0, np.int64)
# What was found in one pass, by identity: the states of pools, and the numbers of tuples of pools. Nodes that see the
# same pools share both (`PoolBuilder`). None if each slice is for one node.
_Known: TypeAlias = dict[int, Any] | None


class RowStates:
    """Columns over all rows, brought up to date by `refresh`. Numbers change their meaning when `generation` does."""

    def __init__(self, reads: Reads) -> None:
        self.generation = 0
        self.shapes: NDArray[np.int64] = _NO_ROWS  # the number of the shapes of a row's pools
        self.held: NDArray[np.int64] = _NO_ROWS  # the number of the set of devices that are held
        self.words: NDArray[np.uint64] = np.zeros(0, np.uint64)  # devices that are held as a whole, by position
        self.examples: list[tuple[Pool, ...]] = []  # by number of shapes: pools that have them
        self._reads = reads
        self._table = ShapeTable(reads)
        self._pools: list[tuple[Pool, ...]] = []
        self._marks: tuple[int, int, int] = (-1, -1, -1)
        self._shape_numbers: dict[Any, int] = {}
        self._shapes: list[tuple[PoolShape, ...]] = []
        self._held_numbers: dict[Any, int] = {}

    def refresh(self, columns: NodeColumns) -> int:
        """Brings the columns up to date. Returns the number of rows that were looked at."""
        claims = columns.claims
        marks = (claims.version, claims.changes.mark, columns.node_changes.mark)
        if marks == self._marks:
            return 0
        rows = self._changed_rows(columns)
        most = columns.size + _SPARE
        if len(self._held_numbers) > most or len(self._shape_numbers) > most:
            self._forget()
            rows = range(columns.size)
        self._marks = marks
        if len(self.shapes) < columns.size:
            self._grow(columns)
        return self._set(rows, columns)

    def pools_of(self, row: int) -> tuple[Pool, ...]:
        """Returns the pools of a row."""
        return self._pools[row]

    def pools(self, row: int) -> tuple[tuple[Pool, ...], tuple[PoolShape, ...]]:
        """Returns the pools of a row, and their shapes."""
        return self._pools[row], self._shapes[self.shapes.item(row)]

    @property
    def held_bytes(self) -> int:
        """The memory that this object takes, about."""
        return _ROW_BYTES * len(self.shapes) + _SHAPE_BYTES * len(self._shapes) + _HELD_BYTES * len(self._held_numbers)

    def _changed_rows(self, columns: NodeColumns) -> Iterable[int]:
        version, allocated, nodes = self._marks
        if version != columns.claims.version:
            return range(columns.size)
        of_claims = columns.claims.changes.rows_since(allocated)
        of_nodes = columns.node_changes.rows_since(nodes)
        if of_claims is None or of_nodes is None:
            return range(columns.size)
        return cast("list[int]", of_claims.tolist() + of_nodes.tolist())

    def _set(self, rows: Iterable[int], columns: NodeColumns) -> int:
        """Finds the numbers of those rows that are nodes. Returns how many they are."""
        known: _Known = {} if columns.claims.labels_matter else None
        where, found = [], []
        for row in rows:
            if columns.alive.item(row):
                where.append(row)
                found.append(self._numbers(row, columns, known))
        if len(where) <= _FEW:
            for row, numbers in zip(where, found, strict=True):
                self.shapes[row], self.held[row], self.words[row] = numbers
        else:
            self.shapes[where] = [each[0] for each in found]
            self.held[where] = [each[1] for each in found]
            self.words[where] = np.array([each[2] for each in found], np.uint64)
        return len(where)

    def _numbers(self, row: int, columns: NodeColumns, known: _Known) -> tuple[int, int, int]:
        """Returns what the columns have for a row. `known` is what was found just now for others."""
        claims = columns.claims
        pools = claims.pools(columns.names[row], _NO_LABELS if known is None else columns.labels.of_row(row))
        before, self._pools[row] = self._pools[row], pools
        if known and id(pools) in known:
            found: tuple[int, int, int] = known[id(pools)]
            return found
        shapes = self.shapes.item(row) if pools is before else self._number_of(pools, row, columns)
        if len(pools) == 1 and known is None:  # as nearly always
            key = pool_state(pools[0], claims.allocated)
            word = key & _WORD if isinstance(key, int) else _word(pools, (key,))
        else:
            key = tuple([_state_of(pool, claims, known) for pool in pools])
            word = _word(pools, key)
        number = self._held_numbers.get(key)
        if number is None:
            number = self._held_numbers[key] = len(self._held_numbers)
        found = shapes, number, word
        if known is not None:
            known[id(pools)] = found
        return found

    def _number_of(self, pools: tuple[Pool, ...], row: int, columns: NodeColumns) -> int:
        shapes = tuple([self._table.of(each) for each in pools])
        own: Any = None
        if any(pool.selects_by_device for pool in pools):
            # Devices with nodes of their own: which of them a node can use follows from its name and labels.
            own = (columns.names[row], tuple(sorted(columns.labels.of_row(row).items())))
        key = (shapes, own, self._table.joint(pools))
        number = self._shape_numbers.get(key)
        if number is None:
            number = self._shape_numbers[key] = len(self._shapes)
            self._shapes.append(shapes)
            self.examples.append(pools)
        return number

    def _grow(self, columns: NodeColumns) -> None:
        self.shapes = grow(self.shapes, columns.capacity, -1)
        self.held = grow(self.held, columns.capacity, -1)
        self.words = grow(self.words, columns.capacity, 0)
        self._pools += [_NO_POOLS] * (columns.capacity - len(self._pools))

    def _forget(self) -> None:
        self.generation += 1
        self._table = ShapeTable(self._reads)
        self._shape_numbers, self._held_numbers = {}, {}
        self._shapes, self.examples = [], []
        self._pools = [_NO_POOLS] * len(self._pools)


_NO_POOLS: Final[Any] = object()  # of a row that was not looked at: no pools are a tuple, too


def distinct(states: RowStates, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns a row of each state that occurs among some rows, and for each row the position of its own there."""
    keys = states.shapes[rows] << 32 | states.held[rows]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], inverse


def _state_of(pool: Pool, claims: ClaimStore, known: _Known) -> Any:
    if known is None:
        return pool_state(pool, claims.allocated)
    if id(pool) not in known:
        known[id(pool)] = pool_state(pool, claims.allocated)
    return known[id(pool)]


def _word(pools: Sequence[Pool], states: Sequence[Any]) -> int:
    """Returns the devices of a node that are held as a whole, as a word: bit i is device i. Further ones are left
    out."""
    word = start = 0
    for pool, state in zip(pools, states, strict=True):
        if isinstance(state, int):
            word |= state << start
        else:
            for position, (whole, _, _) in state[0]:
                word |= whole << start + position
        start += len(pool.positions)
    return word & _WORD
