"""The filters on one row, while pods are removed from it and put back."""

from typing import Any, Final

import numpy as np

from kubenexus.cycle.class_cache import ClassCache, ClassifiedPod
from kubenexus.cycle.class_table import ClassTable
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.framework.verdict import Verdict, code_of
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.transaction import Transaction
from kubenexus.state.view import Nodes, OneNode
from kubenexus.state.volumes.pod_volumes import has_scheduled_volumes

ROWS_PER_MOVE: Final = 20  # rows that are computed in the time in which a pod is removed or put back: 20 µs


class NodeTrial:
    """One node in a dry run. All changes are made in `transaction`, which the caller rolls back, so every filter sees
    them: those that look beyond the row (affinity, spreading, volumes) read counters that follow each change."""

    def __init__(
        self,
        classified: ClassifiedPod,
        class_cache: ClassCache,
        row: int,
        snapshot: Snapshot,
        transaction: Transaction,
        nominated: list[PodRecord],
    ) -> None:
        self.row = row
        self._pod = classified.pod
        self._class_cache = class_cache
        self._table: ClassTable = classified.table
        self._pod_class = classified.table.pod
        self._has_volumes = has_scheduled_volumes(classified.pod)
        self._outdated = False  # whether a pod with volumes left or came since `_pod_class` was signed
        self._snapshot = snapshot
        self._columns: NodeColumns = snapshot.nodes
        self._transaction = transaction
        self._nominated = nominated
        # Filters whose answer follows from the node alone do not change when a pod is put back.
        self._moving = [column for column in self._table.filters if column.traits.repaired or column.traits.stamped]

    def remove(self, pod: PodRecord, row: int | None = None) -> None:
        """Removes a pod from the node, or from another row."""
        self._table.work.rows += ROWS_PER_MOVE
        self._transaction.remove_pod(self.row if row is None else row, pod)
        self._outdated |= self._has_volumes and pod.mounts is not None

    def restore(self, pod: PodRecord, row: int | None = None) -> None:
        """Adds a pod again that `remove` removed."""
        self._table.work.rows += ROWS_PER_MOVE
        self._transaction.restore_pod(self.row if row is None else row, pod)
        self._outdated |= self._has_volumes and pod.mounts is not None

    def refusal(self) -> Verdict | None:
        """Returns the first refusal of the row as it is now, or None if the pod fits there.

        It has to fit both beside the pods that are nominated there and without them, as in a decision.
        """
        return self._refusal(self._table.filters)

    def still_fits(self) -> bool:
        """Returns whether the pod fits, after it did before some pods were put back."""
        return self._refusal(self._moving) is None

    def _refusal(self, filters: list[FilterColumn]) -> Verdict | None:
        if self._nominated:
            volumes = self._has_volumes and any(nominee.mounts is not None for nominee in self._nominated)
            with self._snapshot.attempt() as beside:
                for nominee in self._nominated:
                    beside.add_pod(self.row, nominee)
                self._outdated |= volumes
                refused = self._first_refusal(filters)
            self._outdated |= volumes
            if refused is not None:
                return refused
        return self._first_refusal(filters)

    def _first_refusal(self, filters: list[FilterColumn]) -> Verdict | None:
        self._table.work.rows += 1
        if self._outdated:
            self._pod_class = self._class_cache.signed_again(self._pod, self._pod_class, self._columns)
            self._outdated = False
        one, some = OneNode(self._columns, self.row), Nodes(self._columns, np.array([self.row]))
        for column in filters:
            bits: Any = column.ask(self._pod_class, one if column.traits.supports_one_node else some)
            found = bits if isinstance(bits, int) else int(bits[0])
            if found:
                reasons = column.reasons.read(found)
                texts = tuple(sorted(reason.text for reason in reasons))
                return Verdict(code_of(reasons), texts, column.plugin.name)
        return None
