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
from kubenexus.state.view import Nodes, OneNode

BITS = 32  # of a rank that belong to the lot
_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15  # spreads neighbouring numbers far apart
_LOT = np.uint64(64 - BITS)
_BUSY = 1 << (BITS - 1)


class Lots:
    """One for each class. `many` and `one` give the same number for a row."""

    def __init__(self, tie_break: TieBreak, seed: int, signature: bytes) -> None:
        self._tie_break = tie_break
        self._salt = np.uint64(zlib.crc32(signature, seed & 0xFFFFFFFF) * _GOLDEN & _WORD | 1)
        self._ranks: tuple[int, Any] = (-1, None)

    def many(self, columns: NodeColumns, rows: Any) -> Any:
        """For a slice or an array of rows, as int64."""
        if self._tie_break is TieBreak.NAME:
            return self._by_name(columns)[rows].copy()  # the caller adds scores to it
        if isinstance(rows, slice):
            mixed = columns.derived.all(_MIXED, columns)[rows]
        else:
            mixed = columns.derived.some(_MIXED, columns, rows)
        lots = mixed * self._salt
        lots >>= _LOT
        if self._tie_break is TieBreak.IN_USE:
            lots >>= np.uint64(1)
            lots |= (columns.resources.used[PODS, rows] > 0).astype(np.uint64) << np.uint64(BITS - 1)
        return lots.view(np.int64)

    def one(self, columns: NodeColumns, row: int) -> int:
        if self._tie_break is TieBreak.NAME:
            return int(self._by_name(columns)[row])
        pods = columns.resources.used.item(PODS, row)
        lot = (_mix(pods, columns.lot.item(row)) * int(self._salt) & _WORD) >> (64 - BITS)
        if self._tie_break is TieBreak.IN_USE:
            lot = lot >> 1 | (_BUSY if pods > 0 else 0)
        return lot

    def _by_name(self, columns: NodeColumns) -> Any:
        """The first name draws the highest lot. Sorted again when nodes came or went."""
        if self._ranks[0] != columns.cluster_version:
            ranks = np.zeros(columns.size, np.int64)
            for rank, name in enumerate(sorted(columns.row_of)):
                ranks[columns.row_of[name]] = _BUSY - rank
            self._ranks = (columns.cluster_version, ranks)
        return self._ranks[1]


def _mixed(nodes: Nodes) -> Any:
    """Names and numbers of pods, mixed: what all classes' lots have in common."""
    mixed = nodes.used("pods").astype(np.uint64)
    mixed *= np.uint64(_GOLDEN)
    mixed ^= nodes.columns.lot[nodes.where]
    return mixed


def _mixed_one(node: OneNode) -> int:
    return _mix(node.uses[PODS], node.columns.lot.item(node.row))


_MIXED = Derivation("lots", _mixed, _mixed_one)


def _mix(pods: int, lot: int) -> int:
    return (pods * _GOLDEN ^ lot) & _WORD
