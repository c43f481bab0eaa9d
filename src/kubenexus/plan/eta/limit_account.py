"""What is left of the limits of queues while a simulation plays: jobs take from them and give back."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kubenexus.plan.eta.queue_model import ModelJob, QueueModel, RunningPod, Uses


class LimitAccount:
    """`any`: there are limits at all. A tier is closed to a job that could not be there as a whole, as in
    `plan.tier_limits`, and a job counts as a whole in each tier that it is on."""

    def __init__(self, model: QueueModel) -> None:
        self._left, self._tiers = list(model.limits), model.tiers
        self.any = bool(self._left)

    def skips(self, job: ModelJob, *, fits: bool) -> bool:
        """Returns whether others pass the job for now: it is beyond a limit, or fits only where one is reached."""
        return not self._allows(job.uses) or (not fits and bool(self._closed(job)))

    def open_rows(self, job: ModelJob, capacity: Any) -> Any:
        """Returns the capacity without the rows of tiers that are closed to the job."""
        closed = self._closed(job)
        return np.where(np.isin(self._tiers, closed), 0, capacity) if closed else capacity

    def take(self, job: ModelJob, pods: Sequence[RunningPod]) -> Uses:
        """Counts a job that starts on these rows. Returns what it gives back at its end."""
        uses = job.uses
        if job.tiers:
            there = {int(self._tiers[pod.row]) for pod in pods}
            uses = (*uses, *(use for tier in job.tiers if tier.tier in there for use in tier.uses))
        for number, amount in uses:
            self._left[number] -= amount
        return uses

    def give(self, uses: Uses) -> None:
        for number, amount in uses:
            self._left[number] += amount

    def _allows(self, uses: Uses) -> bool:
        return all(self._left[number] >= amount for number, amount in uses)

    def _closed(self, job: ModelJob) -> list[int]:
        return [each.tier for each in job.tiers if not self._allows(each.uses)]
