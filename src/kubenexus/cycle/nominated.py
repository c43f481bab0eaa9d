"""Pods that wait for a node count there for everybody of no higher priority, as upstream counts them.

On such a row a pod must fit both with the waiting pods and without. The waiting ones are laid on the columns, the
filters look at just those rows, and everything is taken back.
"""

from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.cycle.columns import FilterColumn
from kubenexus.cycle.table import ClassTable
from kubenexus.state.pods import Nominee
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.view import Nodes


class Yielding:
    """The rows where this pod yields to pods nominated there, and what the filters said with those counted in."""

    def __init__(self, rows: Any, filters: list[FilterColumn]) -> None:
        self.rows = rows
        self.filters = filters


def yields(pod: Pod, table: ClassTable, snapshot: Snapshot) -> Yielding | None:
    """None when no nominated pod stands in this pod's way."""
    waiting = snapshot.nominees()
    if not waiting:
        return None
    columns = snapshot.nodes
    laid = {
        columns.row_of[node]: [n for n in nominees if _counts(n, pod)]
        for node, nominees in waiting.items()
        if node in columns.row_of
    }
    laid = {row: nominees for row, nominees in laid.items() if nominees}
    if not laid:
        return None
    rows = np.array(sorted(laid), np.int64)
    with snapshot.attempt() as attempt:
        for row, nominees in laid.items():
            for nominee in nominees:
                attempt.lay(row, nominee.footprint)
        filters = [_asked(column, table, Nodes(columns, rows)) for column in table.filters]
    refused = np.zeros(len(rows), np.bool_)
    for column in filters:
        if column.bits is not None:
            refused |= column.bits != 0
    if not refused.any():
        return None
    for column in filters:
        if column.bits is not None:
            column.bits = column.bits[refused]
    return Yielding(rows[refused], filters)


def _counts(nominee: Nominee, pod: Pod) -> bool:
    return nominee.priority >= pod.spec.priority and nominee.uid != pod.metadata.uid


def _asked(column: FilterColumn, table: ClassTable, view: Nodes) -> FilterColumn:
    answer = FilterColumn(column.plugin, column.traits, column.reasons)
    answer.fill(answer.ask(table.pod, view))
    return answer
