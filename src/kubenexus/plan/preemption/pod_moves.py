"""Consolidation: pods that only move. Whether each of them fits on another node once the job has its own nodes."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.framework.decision import PodPlacement
from kubenexus.framework.job import SINGLE_POD_VIEW, Job
from kubenexus.plan.place_pod import PodPlacer
from kubenexus.plan.preemption.victim_pool import VictimPool
from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.transaction import Transaction


class PodMoves:
    """Tries moves for one job, in transactions that are rolled back."""

    def __init__(self, job: Job, pod_placer: PodPlacer, snapshot: Snapshot, pool: VictimPool) -> None:
        self._job, self._pod_placer, self._snapshot, self._pool = job, pod_placer, snapshot, pool

    def fit_beside(self, moved: Iterable[int], placements: tuple[PodPlacement, ...]) -> bool:
        """Returns whether the moved pods fit beside the placed members of a gang."""
        members = {pod.key: pod for pod in self._job.pods}
        with self._snapshot.attempt() as transaction:
            records = self._remove(moved, transaction)
            for placement in placements:
                _place(transaction, members[placement.pod], placement)
            return self._all_fit(records, transaction)

    def fit_beside_pod(self, moved: Iterable[int], row: int) -> bool:
        """Returns whether the moved pods fit beside the job's only pod, which gets this row."""
        within = np.zeros(self._snapshot.nodes.size, np.bool_)
        within[row] = True
        with self._snapshot.attempt() as transaction:
            records = self._remove(moved, transaction)
            if not self._fits(self._job.pods[0], transaction, within):
                return False
            return self._all_fit(records, transaction)

    def _remove(self, moved: Iterable[int], transaction: Transaction) -> list[PodRecord]:
        """Removes the pods from their nodes, and returns them, the largest first."""
        found = [(self._pool.record(index), int(self._pool.rows[index])) for index in sorted(moved)]
        for record, row in found:
            transaction.remove_pod(row, record)
        return sorted((record for record, _ in found), key=_size, reverse=True)

    def _all_fit(self, records: list[PodRecord], transaction: Transaction) -> bool:
        return all(record.pod is not None and self._fits(record.pod, transaction) for record in records)

    def _fits(self, pod: Pod, transaction: Transaction, within: Any = None) -> bool:
        """Places a pod on its best node, if there is one."""
        placement = self._pod_placer.place(pod, self._snapshot, SINGLE_POD_VIEW, within).placement
        if placement is None:
            return False
        _place(transaction, pod, placement)
        return True


def _place(transaction: Transaction, pod: Pod, placement: PodPlacement) -> None:
    given = placement.assignment
    transaction.place(pod, placement.node, placement.footprint, given.device_shares, given.volumes, given.claims)


def _size(record: PodRecord) -> tuple[tuple[str, int], ...]:
    """Orders pods by extended resources, of which there are few on a node, then by the others."""
    amounts = record.footprint.amounts
    return tuple(sorted(amounts, key=lambda each: ("/" not in each[0], each[0])))
