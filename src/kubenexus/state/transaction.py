"""Tentative placements: written in place, so that later members of a plan see earlier ones, and taken back exactly.

with ledger.attempt() as attempt:      # rolls back unless kept
    for pod, node in plan:
        attempt.place(pod, node, footprint)
    attempt.keep(now)                  # all of it becomes Assumed in one step
"""

from types import TracebackType
from typing import Protocol, Self

from msgspec.structs import replace

from kubenexus.api.core import Pod
from kubenexus.state.devices import DeviceShare
from kubenexus.state.footprint import Footprint
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord, PodStage, pod_record
from kubenexus.state.undo_log import UndoLog
from kubenexus.state.volumes.pod_volumes import VolumeChoice


class TransactionTarget(Protocol):
    """The ledger's side of an attempt."""

    nodes: NodeColumns

    def commit_records(self, records: list[PodRecord]) -> None:
        """Take over pods whose footprints are already on their rows."""


class Transaction:
    """One tentative plan. Rows are noted as changed when written and again when restored, so caches repair them."""

    def __init__(self, keeper: TransactionTarget) -> None:
        self._keeper = keeper
        self._nodes = keeper.nodes
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
        """Count a pod that nobody will keep: one nominated there, or a member while planning. Twice, if it counts on a
        row already."""
        self._nodes.add_pod(row, record if record.slot < 0 else replace(record, slot=-1), self._undo)
        self._rows.append(row)

    def place(
        self,
        pod: Pod,
        node: str,
        footprint: Footprint,
        takes: tuple[DeviceShare, ...] = (),
        picks: tuple[VolumeChoice, ...] = (),
    ) -> None:
        """Put a pod on a node, to be kept or not."""
        record = pod_record(pod, node, PodStage.ASSUMED, footprint)
        record.device_shares, record.volume_choices = takes, picks
        self.add_pod(self._nodes.row_of[node], record)
        self._records.append(record)

    def commit(self, now: float) -> list[PodRecord]:
        """Everything placed becomes Assumed at once; the bytes stay as they are."""
        for record in self._records:
            record.assumed_at = now
        self._keeper.commit_records(self._records)
        self._open = False
        return self._records

    def rollback(self) -> None:
        """Restore every cell to the value it had."""
        self._undo.restore()
        for row in self._rows:
            self._nodes.usage_changed(row)
        self._open = False
