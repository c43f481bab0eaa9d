"""Pods that wait for a node count there for everybody of no higher priority, as upstream counts them.

On such a row a pod must fit both with the waiting pods and without. The waiting ones are laid on the columns, the
filters look at just those rows, and everything is taken back.
"""

from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.cycle.class_table import ClassTable
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.view import Nodes


class NominatedResult:
    """The rows where this pod yields to pods nominated there, and what the filters said with those counted in."""

    def __init__(self, rows: Any, filters: list[FilterColumn]) -> None:
        self.rows = rows
        self.filters = filters


def filter_with_nominated_pods(
    pod: Pod, table: ClassTable, snapshot: Snapshot, seated: frozenset[str] = frozenset()
) -> NominatedResult | None:
    """None when no nominated pod stands in this pod's way. `counted_keys` are members of its job that have their place
    in the plan already, and so no longer wait."""
    waiting = snapshot.nominees()
    if not waiting:
        return None
    columns = snapshot.nodes
    answers = []
    for node, nominees in waiting.items():
        standing = [nominee for nominee in nominees if _counts(nominee, pod) and nominee.key not in seated]
        if standing and node in columns.row_of:
            table.work.rows += len(standing) + 1  # each is laid on the row, which is asked about then
            answers.append((columns.row_of[node], _with(standing, columns.row_of[node], table, snapshot)))
    answers = [(row, bits) for row, bits in answers if any(bits)]
    if not answers:
        return None
    filters = [FilterColumn(column.plugin, column.traits, column.reasons) for column in table.filters]
    for i, column in enumerate(filters):
        column.fill(np.array([bits[i] for _, bits in answers], np.uint64))
    return NominatedResult(np.array([row for row, _ in answers], np.int64), filters)


def _with(nominees: list[PodRecord], row: int, table: ClassTable, snapshot: Snapshot) -> list[int]:
    """What each filter says of one row with these pods on it. Rows are looked at one by one, since upstream counts a
    nominated pod only for the node it waits for, however far its affinity reaches."""
    with snapshot.attempt() as transaction:
        for nominee in nominees:
            transaction.add_pod(row, nominee)
        view = Nodes(snapshot.nodes, np.array([row]))
        answers = [column.ask(table.pod, view) for column in table.filters]
    return [bits if isinstance(bits, int) else int(bits[0]) for bits in answers]


def _counts(nominee: PodRecord, pod: Pod) -> bool:
    return nominee.priority >= pod.spec.priority and nominee.uid != pod.metadata.uid
