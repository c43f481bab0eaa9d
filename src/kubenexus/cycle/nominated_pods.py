"""Counts nominated pods on their nodes, as kube-scheduler does.

A nominated pod waits for a node that is not free yet. A pod of no higher priority must fit there both with it and
without it. The nominated pods are added to the columns, the filters compute just these rows, and the columns are
restored.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.cycle.class_table import ClassTable
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.view import Nodes


class NominatedResult:
    """The rows where a pod does not fit beside the pods nominated there, and the filters' reasons on these rows."""

    def __init__(self, rows: Any, filters: list[FilterColumn]) -> None:
        self.rows = rows
        self.filters = filters


def filter_with_nominated_pods(
    pod: Pod, table: ClassTable, snapshot: Snapshot, seated: frozenset[str] = frozenset(), *, everywhere: bool = True
) -> NominatedResult | None:
    """Returns the rows that nominated pods take from this pod; None if there are none.

    `seated` are keys of members of its job that the plan has placed already. They are not counted again. `everywhere`:
    also rows that the pod does not fit anyway, for kube-scheduler's reasons there. That costs 0.15 ms for each
    nominated pod, and nearly all of them wait on rows that are full.
    """
    waiting = snapshot.nominees()
    if not waiting:
        return None
    columns = snapshot.nodes
    answers = []
    for node in waiting if everywhere else _on_feasible_rows(waiting, table, columns):
        row = columns.row_of.get(node)
        if row is None:
            continue
        standing = [
            nominee for nominee in waiting[node].values() if counts_beside(nominee, pod) and nominee.key not in seated
        ]
        if standing:
            table.work.rows += len(standing) + 1  # each is added to the row, which is computed then
            answers.append((row, _with(standing, row, table, snapshot)))
    answers = [(row, bits) for row, bits in answers if any(bits)]
    if not answers:
        return None
    filters = [FilterColumn(column.plugin, column.traits, column.reasons) for column in table.filters]
    for i, column in enumerate(filters):
        column.fill(np.array([bits[i] for _, bits in answers], np.uint64))
    return NominatedResult(np.array([row for row, _ in answers], np.int64), filters)


def _on_feasible_rows(waiting: Mapping[str, Any], table: ClassTable, columns: NodeColumns) -> list[str]:
    """Returns the nodes with nominated pods that the class fits without them."""
    rows = np.flatnonzero(table.feasible)
    if len(rows) < len(waiting):
        return [name for name in map(columns.names.__getitem__, rows.tolist()) if name in waiting]
    row_of, feasible = columns.row_of, table.feasible
    return [node for node in waiting if (row := row_of.get(node)) is not None and feasible.item(row)]


def _with(nominees: list[PodRecord], row: int, table: ClassTable, snapshot: Snapshot) -> list[int]:
    """Returns the reasons of each filter against one row with these pods on it.

    Rows are computed one by one: kube-scheduler counts a nominated pod only on its own node, however far its affinity
    reaches.
    """
    with snapshot.attempt() as transaction:
        for nominee in nominees:
            transaction.add_pod(row, nominee)
        view = Nodes(snapshot.nodes, np.array([row]))
        answers = [column.ask(table.pod, view) for column in table.filters]
    return [bits if isinstance(bits, int) else int(bits[0]) for bits in answers]


def counts_beside(nominee: PodRecord, pod: Pod) -> bool:
    """Returns whether a nominated pod counts on its node when `pod` is tried there."""
    return nominee.priority >= pod.spec.priority and nominee.uid != pod.metadata.uid
