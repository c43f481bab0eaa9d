"""Checks decisions against a reservation with an expected start: jobs that may run longer take only what is spare."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.gang.placement_sums import largest_placement
from kubenexus.plan.gang.replacement import held_for, replacements
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.snapshot import Snapshot


class BackfillCheck:
    """As `ReservationCheck`, for a reservation that states what is spare on its nodes. Reads nothing but that."""

    def __init__(self, reservation: Reservation, snapshot: Snapshot) -> None:
        self._reservation, self._snapshot = reservation, snapshot
        self._generation = snapshot.generation

    def still(self, reservation: Reservation, snapshot: Snapshot) -> bool:
        """Whether the check holds for this reservation and snapshot."""
        return self._reservation is reservation and self._generation == snapshot.generation

    def is_delayed_by(self, decision: Decision, job: Job) -> bool:
        """Whether the decision takes what the first job needs on its nodes at its expected start. Replacements of lost
        members, within the capacity that is held for them, never do."""
        again = replacements(decision.placements, held_for(job, self._snapshot)) if job.hold_keys else set[str]()
        sums: dict[tuple[str, str], int] = {}
        for each in decision.placements:
            if each.node in self._reservation.spare and each.uid not in again:
                for name, amount in (*each.footprint.amounts, ("pods", 1)):
                    sums[each.node, name] = sums.get((each.node, name), 0) + amount
        spare = self._reservation.spare
        return any(amount > spare[node].get(name, amount) for (node, name), amount in sums.items() if amount)

    def alternative_rows(self, decision: Decision, job: Job) -> Iterator[Any]:
        """Yields masks of rows to try instead: first those where one pod of the job takes only what is spare, or where
        capacity is held for the job; then the rows that the reservation does not use."""
        columns, spare, largest = self._snapshot.nodes, self._reservation.spare, largest_placement(decision)
        harmed = [node for node, left in spare.items() if _exceeds(largest, left)]
        yield self.own(job) | ~_rows(harmed, columns)
        yield ~_rows(spare, columns)

    def own(self, job: Job) -> Any:
        """Returns the rows where the ledger holds capacity of lost members for the job."""
        return _rows(held_for(job, self._snapshot), self._snapshot.nodes)


def _exceeds(wanted: Mapping[str, int], left: Mapping[str, int]) -> bool:
    return any(amount > left.get(name, amount) for name, amount in wanted.items() if amount)


def _rows(nodes: Any, columns: NodeColumns) -> Any:
    mask = np.zeros(columns.size, np.bool_)
    mask[[columns.row_of[node] for node in nodes if node in columns.row_of]] = True
    return mask
