"""Choosing among equals. Each node draws a lot, and the lot stands below the score in one number: the largest number
is the best node, ties included, so that no list of ties is ever made.

A lot comes from the node's name, the class and how many pods the node runs: it does not depend on the order in which
nodes arrived, and it is drawn anew when something is placed there, so that equal nodes fill evenly.
"""

import zlib
from typing import Any

import numpy as np

from kubenexus.framework.profile import TieBreak
from kubenexus.state.derived import Derivation
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.resources import PODS
from kubenexus.state.view import Nodes

BITS = 32  # of a rank that belong to the lot
_WORD = (1 << BITS) - 1
_GOLDEN = 0x9E3779B1  # spreads neighbouring numbers far apart
_BUSY = 1 << (BITS - 1)


class Lots:
    """One for each class. `many` and `one` give the same number for a row."""

    def __init__(self, tie_break: TieBreak, seed: int, signature: bytes) -> None:
        self._tie_break = tie_break
        self._salt = zlib.crc32(signature, seed & _WORD) | 1
        self._column_salt = np.uint32(self._salt)
        self._by_name = tie_break is TieBreak.NAME
        self._in_use = tie_break is TieBreak.IN_USE
        self._ranks: tuple[int, Any] = (-1, None)

    def many(self, columns: NodeColumns, rows: Any) -> Any:
        """For a slice or an array of rows."""
        if self._by_name:
            return self._names(columns)[rows]
        if isinstance(rows, slice):
            mixed = columns.derived.all(_MIXED, columns)[rows]
        else:
            mixed = columns.derived.some(_MIXED, columns, rows)
        lots = mixed * self._column_salt  # modulo 2**32: what is carried out of it is not missed
        if self._in_use:
            lots >>= 1
            lots |= (columns.resources.used[PODS, rows] > 0).astype(np.uint32) << (BITS - 1)
        return lots

    def one(self, columns: NodeColumns, row: int) -> int:
        if self._by_name:
            return int(self._names(columns)[row])
        pods = columns.resources.used.item(PODS, row)
        lot = _mix(pods, columns.lot.item(row)) * self._salt & _WORD
        if self._in_use:
            lot = lot >> 1 | (_BUSY if pods > 0 else 0)
        return lot

    def _names(self, columns: NodeColumns) -> Any:
        """The first name draws the highest lot. Sorted again when nodes came or went."""
        if self._ranks[0] != columns.cluster_version:
            ranks = np.zeros(columns.size, np.int64)
            for rank, name in enumerate(sorted(columns.row_of)):
                ranks[columns.row_of[name]] = _BUSY - rank
            self._ranks = (columns.cluster_version, ranks)
        return self._ranks[1]


def _mix(pods: int, lot: int) -> int:
    """A node's name and its number of pods, mixed: what all classes' lots have in common."""
    mixed = (pods * _GOLDEN ^ lot) & _WORD
    return mixed ^ mixed >> 15


def _mixed(nodes: Nodes) -> Any:
    mixed = nodes.used("pods").astype(np.uint32) * np.uint32(_GOLDEN) ^ nodes.columns.lot[nodes.where].astype(np.uint32)
    return mixed ^ mixed >> 15


_MIXED = Derivation("lots", _mixed, lambda node: _mix(node.uses[PODS], node.columns.lot.item(node.row)))
