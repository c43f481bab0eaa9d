"""Writes the decision of a large job into the ledger in portions.

A gang of 5,000 takes longer than one turn of the event loop may. Its caller enters a portion in each turn, makes no
decision in between, and submits the binds after the last portion. Watch events do come in between. They leave the same
state as if the whole gang had been entered before them: a member that was deleted, or bound by another scheduler, is
left out, and a node that is gone keeps its pods without a row. Members without a record are not bound, and if fewer
than the gang needs are left, none is (`bind.job_progress`).
"""

from collections.abc import Callable
from itertools import islice

from kubenexus.api.core import Pod
from kubenexus.framework.decision import Decision, PodPlacement
from kubenexus.framework.job import Job
from kubenexus.plan.gang.backtracking import member_record
from kubenexus.plan.reserved_capacity import own_capacity
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import StaleSnapshot
from kubenexus.state.transaction import Transaction

Placed = list[tuple[Pod, PodPlacement]]


class PortionedCommit:
    """The placements of a decision that are not in the ledger yet. `records` are those that are. Raises StaleSnapshot
    if the ledger has changed since the decision's snapshot: it is made right after `decide`."""

    def __init__(self, decision: Decision, job: Job, ledger: Ledger, now: float) -> None:
        if decision.generation != ledger.generation:
            raise StaleSnapshot(f"decision of generation {decision.generation}, ledger at {ledger.generation}")
        self._job, self._ledger, self._now = job, ledger, now
        self._pods = {pod.key: pod for pod in job.pods}
        self._left, self._count = iter(decision.placements), len(decision.placements)
        self.records: list[PodRecord] = []

    @property
    def ended(self) -> bool:
        return not self._count

    def next(self, most: int, still_waits: Callable[[Pod], bool]) -> Placed:
        """Takes the next `most` placements, and returns those whose pods still wait and are on no node."""
        self._count -= min(most, self._count)
        found = [(self._pods[each.pod], each) for each in islice(self._left, most)]
        return [(pod, each) for pod, each in found if each.pod not in self._ledger.pods and still_waits(pod)]

    def enter(self, placed: Placed) -> None:
        """Writes placements into the ledger as Assumed, in one transaction: all of them, or none."""
        with self._ledger.transaction() as transaction:
            for pod, placement in placed:
                self._place(transaction, pod, placement)
            self.records += transaction.commit(self._now)

    def claim(self) -> None:
        """Lets the pods that were entered claim what is reserved for them. Called after the last portion."""
        if self._ledger.reservations:
            here = [record for record in self.records if self._ledger.pods.get(record.key) is record]
            self._ledger.claim(here, own_capacity(self._job, self._ledger.reservations))

    def _place(self, transaction: Transaction, pod: Pod, placement: PodPlacement) -> None:
        given = placement.assignment
        if placement.node in self._ledger.nodes.row_of:
            transaction.place(
                pod, placement.node, placement.footprint, given.device_shares, given.volumes, given.claims
            )
        else:  # gone since the decision; the pod counts again if the node comes back
            transaction.place_without_row(member_record(pod, placement, self._ledger.nodes))
