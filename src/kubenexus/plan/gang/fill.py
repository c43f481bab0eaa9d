"""Places a number of members on the fewest rows."""

from typing import Any

import numpy as np

from kubenexus.base.arrays import IntColumn

_RANKS = 44  # bits of a rank: a score above the tie break


def fill_fewest_rows(
    rows: Any, capacity: IntColumn, rank: IntColumn, members: int, groups: Any
) -> list[tuple[int, int]]:
    """Returns pairs of row and members, the largest rows first.

    Among rows of equal size those of the group with most of them come first, so that few groups are touched, and of
    equally large groups that with the best rank. Then come those of the best rank. The last members go to the smallest
    row that holds them. The caller passes rows that hold all members. There are few sizes, even with many rows, so
    sizes are counted instead of sorting rows.
    """
    size = np.minimum(capacity, members)
    held = np.bincount(size, minlength=members + 1) * np.arange(members + 1)
    down = held[::-1].cumsum()
    least = members - int((down >= members).argmax())  # the smallest size that is needed
    large = np.flatnonzero(size > least)
    left = members - int(size[large].sum())
    full, rest = divmod(left, least)
    equal = _first(np.flatnonzero(size == least), full, rank, groups)
    taken = [*zip(rows[large].tolist(), size[large].tolist(), strict=True)]
    taken += [(row, least) for row in rows[equal].tolist()]
    if rest:
        size[large] = size[equal] = 0
        taken.append((int(rows[_snug(size, rest, rank)]), rest))
    return taken


def _first(equal: Any, number: int, rank: IntColumn, groups: Any) -> Any:
    """Returns `number` of these rows."""
    if number >= len(equal):
        return equal
    if not number:
        return equal[:0]
    own = groups[equal]
    often = np.bincount(own)
    ranks = rank[equal]
    best = np.zeros(len(often), ranks.dtype)
    np.maximum.at(best, own, ranks)
    order = np.empty(len(often), np.int64)
    order[np.lexsort((-best, -often))] = np.arange(len(often))
    keys = (order[own] << _RANKS) - ranks
    return equal[np.argpartition(keys, number - 1)[:number]]


def _snug(size: IntColumn, rest: int, rank: IntColumn) -> int:
    """Returns the smallest row that holds the last members, the best ranked of those."""
    holding = np.flatnonzero(size >= rest)
    smallest = holding[size[holding] == size[holding].min()]
    return int(smallest[rank[smallest].argmax()])
