"""Plans a gang without some victims, in a transaction that is rolled back. The number of plans is limited."""

from collections.abc import Iterable
from typing import Any, Final

from kubenexus.framework.decision import PodPlacement
from kubenexus.framework.job import Job
from kubenexus.plan.gang.planner import GangPlanner
from kubenexus.plan.preemption.node_trial import ROWS_PER_MOVE
from kubenexus.plan.preemption.victim_pool import VictimPool
from kubenexus.state.snapshot import Snapshot

MAX_MOVES: Final = 3_000  # pods that are removed from their nodes in one decision: about 60 ms
_ROWS: Final = 150_000  # rows that all plans of one decision may look at
_MAX_PLANS: Final = 300

Placements = tuple[PodPlacement, ...]


class GangTrials:
    """Counts what is left of the limits. A plan of a gang of several classes, or whose members limit each other, counts
    as several."""

    def __init__(
        self, job: Job, planner: GangPlanner, snapshot: Snapshot, pool: VictimPool, price: int, within: Any = None
    ) -> None:
        self._within = within
        self._job, self._planner, self._snapshot, self._pool = job, planner, snapshot, pool
        self._plans = max(3, min(_MAX_PLANS, _ROWS // max(snapshot.nodes.size, 1)) // price)
        self.moves = MAX_MOVES

    @property
    def left(self) -> int:
        """How many more plans are allowed."""
        return self._plans if self.moves > 0 else 0

    def plan(self, victims: Iterable[int]) -> Placements:
        """Returns the placements of the gang without these victims; none if it does not fit."""
        removed = [(self._pool.record(index), int(self._pool.rows[index])) for index in sorted(victims)]
        self._plans -= 1
        self._planner.work.rows += ROWS_PER_MOVE * len(removed)
        self.moves -= len(removed)
        with self._snapshot.attempt() as transaction:
            for record, row in removed:
                transaction.remove_pod(row, record)
            return self._planner.plan(self._job, self._snapshot, self._within).placements
