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
from kubenexus.state.cells import Undo
from kubenexus.state.devices import Take
from kubenexus.state.footprint import Footprint
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord, Stage, record_of
from kubenexus.state.volumes.mounts import Pick


class Keeper(Protocol):
    """The ledger's side of an attempt."""

    nodes: NodeColumns

    def adopt(self, records: list[PodRecord]) -> None:
        """Take over pods whose footprints are already on their rows."""


class Attempt:
    """One tentative plan. Rows are noted as changed when written and again when restored, so caches repair them."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._nodes = keeper.nodes
        self._undo = Undo()
        self._records: list[PodRecord] = []
        self._rows: list[int] = []
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._open:
            self.rollback()

    def lay(self, row: int, record: PodRecord) -> None:
        """Count a pod that nobody will keep: one nominated there, or a member while planning. Twice, if it counts on a
        row already."""
        self._nodes.put(row, record if record.slot < 0 else replace(record, slot=-1), self._undo)
        self._rows.append(row)

    def place(
        self,
        pod: Pod,
        node: str,
        footprint: Footprint,
        takes: tuple[Take, ...] = (),
        picks: tuple[Pick, ...] = (),
    ) -> None:
        """Put a pod on a node, to be kept or not."""
        record = record_of(pod, node, Stage.ASSUMED, footprint)
        record.takes, record.picks = takes, picks
        self.lay(self._nodes.row_of[node], record)
        self._records.append(record)

    def keep(self, now: float) -> list[PodRecord]:
        """Everything placed becomes Assumed at once; the bytes stay as they are."""
        for record in self._records:
            record.since = now
        self._keeper.adopt(self._records)
        self._open = False
        return self._records

    def rollback(self) -> None:
        """Restore every cell to the value it had."""
        self._undo.restore()
        for row in self._rows:
            self._nodes.use_changed(row)
        self._open = False
