"""Trial placements. They are written in place, so that later pods of a plan see earlier ones, and rolled back exactly.

with ledger.transaction() as transaction:      # rolls back unless committed
    for pod, node in plan:
        transaction.place(pod, node, footprint)
    transaction.commit(now)                    # all pods become Assumed in one step
"""

from types import TracebackType
from typing import Protocol, Self

from msgspec.structs import replace

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.state.claims.assigned import claim_allocations
from kubenexus.state.claims.store import ClaimAllocation, ClaimChoice
from kubenexus.state.footprint import Footprint
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord, PodStage, pod_record
from kubenexus.state.undo_log import UndoLog
from kubenexus.state.volumes.pod_volumes import VolumeChoice


class TransactionTarget(Protocol):
    """The part of the ledger that a transaction uses."""

    nodes: NodeColumns

    def commit_records(self, records: list[PodRecord]) -> None:
        """Enters pods that already count on their rows."""


class Transaction:
    """A set of trial placements and removals. Rows are recorded as changed when written and when restored, so that
    caches repair them."""

    def __init__(self, target: TransactionTarget) -> None:
        self._target = target
        self._nodes = target.nodes
        self._undo = UndoLog()
        self._records: list[PodRecord] = []
        self._rows: list[int] = []
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._open:
            self.rollback()

    def add_pod(self, row: int, record: PodRecord) -> None:
        """Counts a pod that will not be committed: a nominated pod, or a gang member during planning. A pod that
        already counts on a row then counts twice."""
        self._nodes.add_pod(row, record if record.slot < 0 else replace(record, slot=-1), self._undo)
        self._rows.append(row)

    def remove_pod(self, row: int, record: PodRecord) -> None:
        """Removes a pod of the ledger from its row: a victim, in the dry run of preemption. The transaction must be
        rolled back."""
        self._nodes.remove_pod(row, record, self._undo)
        self._rows.append(row)

    def restore_pod(self, row: int, record: PodRecord) -> None:
        """Adds a pod again that `remove_pod` removed."""
        self._nodes.add_pod(row, record, self._undo)

    def exchange_claims(self, row: int, old: tuple[ClaimAllocation, ...], fresh: tuple[ClaimAllocation, ...]) -> None:
        """Takes back what a pod of this transaction brings for its claims, and counts something else instead, or
        nothing. The transaction must be rolled back."""
        claims = self._nodes.claims
        claims.leave(old)
        self._undo.call(lambda: claims.enter(old, trial=True))
        claims.enter(fresh, trial=True)
        self._undo.call(lambda: claims.leave(fresh))
        self._nodes.usage_changed(row)
        self._rows.append(row)

    def lift_reserved(self, row: int, footprint: Footprint) -> None:
        """Counts reserved capacity no longer, in a decision for its owner. The transaction must be rolled back."""
        self._nodes.count_reserved(row, footprint, -1, self._undo)
        self._rows.append(row)

    def place(
        self,
        pod: Pod,
        node: str,
        footprint: Footprint,
        takes: tuple[DeviceShare, ...] = (),
        picks: tuple[VolumeChoice, ...] = (),
        claims: tuple[ClaimChoice, ...] = (),
    ) -> None:
        """Places a pod on a node until commit or rollback."""
        record = pod_record(pod, node, PodStage.ASSUMED, footprint)
        record.device_shares, record.volume_choices = takes, picks
        if claims:
            record.claims = claim_allocations(pod, claims, self._nodes.claims)
        self.add_pod(self._nodes.row_of[node], record)
        self._records.append(record)

    def place_without_row(self, record: PodRecord) -> None:
        """Places a pod on a node that is gone: the pod counts when a node of that name comes."""
        self._records.append(record)

    def commit(self, now: float) -> list[PodRecord]:
        """Makes all placed pods Assumed in one step. The columns do not change."""
        for record in self._records:
            record.assumed_at = now
        self._target.commit_records(self._records)
        self._open = False
        return self._records

    def rollback(self) -> None:
        """Restores every cell to its old value."""
        self._undo.restore()
        for row in self._rows:
            self._nodes.usage_changed(row)
        self._open = False
